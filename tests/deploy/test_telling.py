"""What is told of stories and figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from elbowroom.deploy.bench.figures import Figure, percentile, shown
from elbowroom.deploy.bench.run import MEASURES, as_table
from elbowroom.deploy.show import Progress, status_text, table
from elbowroom.deploy.stories import layers
from elbowroom.deploy.stories.stage import condition, is_in_force
from elbowroom.deploy.stories.telling import Teller, UnmetError

GI = 1024**3


def a_pod(spec: str = "1Gi", actual: str = "1Gi", allocated: str = "1Gi", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "namespace": "default", "uid": "u", "generation": 2},
        "spec": {"nodeName": "n", "containers": [{"name": "main", "resources": {"requests": {"memory": spec}}}]},
        "status": {
            "observedGeneration": 2,
            "containerStatuses": [
                {"name": "main", "allocatedResources": {"memory": allocated}, "resources": {"requests": {"memory": actual}}}
            ],
            **status,
        },
    }


def test_a_step_that_did_not_happen_says_what_was_seen_instead(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnmetError), Teller().step("It rains."):
        raise UnmetError("the sun shines")
    assert capsys.readouterr().out == "  1. It rains.\n     NOT SO: the sun shines\n"


def test_steps_are_numbered_and_tell_what_was_seen(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    for word in ("One.", "Two."):
        with teller.step(word) as seen:
            seen.append("a fact")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("  1. One. (") and lines[2].startswith("  2. Two. (") and lines[1] == "     a fact"


@pytest.mark.parametrize(
    ("pod", "holds"),
    [
        (a_pod("3Gi", "3Gi"), True),
        (a_pod("3Gi", "1Gi"), False),
        (a_pod("1Gi", "3Gi"), False),
        (a_pod("3Gi", "3Gi", conditions=[{"type": "PodResizeInProgress", "status": "True"}]), False),
        (a_pod("3Gi", "3Gi", conditions=[{"type": "PodResizePending", "status": "True"}]), False),
        (a_pod("3Gi", "3Gi", observedGeneration=1), False),
    ],
)
def test_a_resize_is_in_force_when_asked_for_carried_out_and_reported(pod: dict[str, Any], holds: bool) -> None:
    assert is_in_force(pod, 3 * GI) is holds


def test_a_condition_is_found_by_its_fields() -> None:
    pod = a_pod(conditions=[{"type": "PodResizePending", "status": "True", "reason": "Deferred"}])
    assert condition(pod, "PodResizePending", reason="Deferred") and not condition(pod, "PodResizePending", reason="Infeasible")


def test_the_four_layers_are_read_where_each_really_is(tmp_path: Path) -> None:
    kubelet = tmp_path / "nodes" / "n" / "kubelet"
    kubelet.mkdir(parents=True)
    entries = {"entries": {"u": {"ContainerResources": {"main": {"requests": {"memory": "2Gi"}}}}}}
    (kubelet / "actuated_pods_state").write_text(json.dumps({"data": json.dumps(entries), "checksum": 1}))
    cgroups = [
        {"namespace": "default", "pod": "a", "memoryMax": 5},
        {"namespace": "default", "pod": "a", "container": "main", "memoryMax": 7},
    ]
    found = layers.of(a_pod("4Gi", actual="1Gi", allocated="3Gi"), "main", tmp_path, cgroups)
    assert found == layers.Layers(desired=4 * GI, allocated=3 * GI, actuated=2 * GI, actual=1 * GI, cgroup_max=7)
    assert not found.all_are(4 * GI)
    assert layers.rows(found, found)[3][:3] == ("actuated", "2Gi", "2Gi")


def test_a_layer_that_says_nothing_is_none(tmp_path: Path) -> None:
    assert layers.of(a_pod(), "main", tmp_path, []).actuated is None


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table([("A", "B"), ("long", "x")]) == "A     B\nlong  x"


def test_status_is_shown_as_a_table() -> None:
    component = {"name": "apiserver", "kind": "apiserver", "pid": None, "state": "dead", "restarts": 3, "metrics": None}
    status = {
        "name": "lab",
        "kubeconfig": "K",
        "server": "S",
        "history": "H",
        "components": [component],
        "nodes": {"total": 2, "ready": 1},
    }
    assert status_text(status).splitlines()[0] == "cluster     lab: 1 of 2 nodes Ready"
    assert status_text(status).splitlines()[-1].split() == ["apiserver", "dead", "-", "3"]


def test_progress_is_plain_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("lab") as show:
        show.tell({"event": "nodes", "ready": 1, "total": 2})
        show.tell({"event": "nodes", "ready": 1, "total": 2})
        show.tell({"event": "ready", "kubeconfig": "/k", "nodes": 2, "seconds": 1.0})
        show.tell({"event": "note", "text": "mind the gap"})
    told = capsys.readouterr()
    assert told.out == "nodes Ready: 1/2\ncluster lab: 2 nodes Ready after 1.0 s\nkubeconfig: /k\n"
    assert told.err == "mind the gap\n"


@pytest.mark.parametrize(("more", "value", "ratio"), [(True, 300.0, 3.0), (False, 25.0, 4.0), (True, 50.0, 0.5)])
def test_a_ratio_above_one_means_better_than_the_peer(more: bool, value: float, ratio: float) -> None:
    assert Figure("f", "what", value, "x", 100.0, more_is_better=more).ratio == ratio


def test_a_figure_without_a_peer_has_no_ratio() -> None:
    figure = Figure("f", "what", 3.0, "ms", limit=0.1, limit_is="light")
    assert figure.ratio is None
    assert as_table([figure]).splitlines()[1].split("  ")[-1].strip() == "0.10 ms (light)"


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert (percentile([3, 1, 2], 0.5), percentile([1, 2, 3, 4], 0.99), percentile([7], 0.5)) == (2, 4, 7)


def test_numbers_are_shown_with_about_three_figures() -> None:
    assert [shown(n) for n in (1234.5, 12.34, 1.234, 0.01234, None)] == ["1,234", "12.3", "1.23", "0.0123", "-"]


def test_figures_have_names_of_their_own() -> None:
    names = [measure.name for measure in MEASURES]
    assert len(set(names)) == len(names)
    assert all(m.alone or m.on_ten or m.on_any for m in MEASURES)
