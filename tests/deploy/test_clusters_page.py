"""docs/clusters.md names every field that there is, and its file is a cluster."""

import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from elbowroom.deploy import config
from elbowroom.runtime.workload import Behaviour, behaviour_of

PAGE = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text()
FILE, ANNOTATION = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
WORKLOAD = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("model", [config.Spec, config.Nodes, config.Apiserver, config.Scheduler, config.Machine, config.Ray])
def test_every_field_of_a_cluster_is_in_the_page_s_file(model: type[BaseModel]) -> None:
    names = [field.alias for field in model.model_fields.values()]
    assert [name for name in names if not re.search(rf"\b{name}:", FILE)] == []


def test_the_page_s_file_is_a_cluster_and_says_what_holds_without_it() -> None:
    written = config.parse(yaml.safe_load(FILE), "docs/clusters.md").spec
    (group,), plain = written.nodes, config.Spec()
    assert (group.count, group.name_prefix, group.capacity) == (3, plain.nodes[0].name_prefix, plain.nodes[0].capacity)
    for field in ("profile", "time_scale", "placement", "kubelets_per_process", "apiserver"):
        assert getattr(written, field) == getattr(plain, field), field


@pytest.mark.parametrize("field", WORKLOAD)
def test_what_the_page_says_of_a_container_is_heeded(field: str) -> None:
    value = {"memoryUsage": '"90%"', "exitCode": "3"}.get(field, "7")
    assert behaviour_of(f'{{"app": {{"{field}": {value}}}}}', "app", is_init=False) != Behaviour()
    assert behaviour_of("", "app", is_init=False) == Behaviour()


def test_the_page_tells_of_every_way_a_container_can_behave() -> None:
    told = dict.fromkeys(re.sub("([A-Z])", r"_\1", field).lower() for field in WORKLOAD)
    known = {
        "memory_bytes": "memory_usage",
        "memory_fraction": "memory_usage",
        "cpu_milli": "cpu_usage",
        "resize_failures": "resize_error",
    }
    assert set(told) == {known.get(field, field) for field in Behaviour.__dataclass_fields__}
    annotation = yaml.safe_load(ANNOTATION)["metadata"]["annotations"]["elbowroom.dev/workload"]
    found = behaviour_of(annotation, "app", is_init=False)
    assert (found.memory_fraction, found.resize_seconds) == (0.9, 3.0)
