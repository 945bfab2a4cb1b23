"""What placement on Ray decides without Ray being there: addresses, files, words, and the files for others' tools."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from elbowroom.deploy import actors, config, planning
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home
from elbowroom.deploy.show import status_text
from elbowroom.deploy.topology import Packing, Topology

ROOT = Path(__file__).resolve().parents[2]
HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed")


@pytest.fixture
def placement(tmp_path: Path) -> actors.Actors:
    return actors.Actors("", tmp_path)


def topology(tmp_path: Path) -> Topology:
    return Topology(tmp_path, tmp_path / "data", {}, "sqlite", kubelets_per_process=10)


def test_without_ray_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    cluster = config.overlay(config.Cluster(), {"placement": "ray"})
    with pytest.raises(UserError, match=r"^[^\n]*pip install 'elbowroom\[ray\]'$"):
        planning.plan(Home("none", tmp_path), cluster)
    assert not list(tmp_path.iterdir()), "nothing was made"


def test_an_address_of_ray_goes_with_placement_on_ray() -> None:
    with pytest.raises(UserError, match="ray: goes with placement: ray"):
        config.overlay(config.Cluster(), {"ray": {"address": "10.0.0.1:6379"}})
    cluster = config.overlay(config.Cluster(), {"placement": "ray", "ray": {"address": "10.0.0.1:6379", "cpusPerProcess": 1.5}})
    assert cluster.spec.ray == config.Ray(address="10.0.0.1:6379", cpus_per_process=1.5)


@needs_ray
def test_a_nodes_machines_meet_inside_their_process_and_reach_the_api_server_over_its_trunk(
    placement: actors.Actors, tmp_path: Path
) -> None:
    made = topology(tmp_path)
    kubelet = placement.housed(made.kubelet("n.1"), "uid-1")
    runtime = placement.housed(made.runtime("n.1"), "uid-1")
    assert kubelet.dial == {"apiserver": "trunk+", "runtime/n.1": runtime.bind}
    assert runtime.bind.startswith("inproc:") and not kubelet.bind


@needs_ray
def test_a_nodes_files_are_its_own_where_the_process_is_and_another_node_of_its_name_has_others(
    placement: actors.Actors, tmp_path: Path
) -> None:
    made = topology(tmp_path)
    paths = [
        placement.housed(spec, uid).disk.path for uid in ("uid-1", "uid-2") for spec in (made.kubelet("n.1"), made.runtime("n.1"))
    ]
    assert len(set(paths)) == 4 and not any(Path(path).is_absolute() for path in paths)
    kinds = [made.kubelet("n.1").disk.kind, made.runtime("n.1").disk.kind]
    assert [placement.housed(spec, "u").disk.kind for spec in (made.kubelet("n.1"), made.runtime("n.1"))] == kinds
    assert placement.housed(made.kubelet("n.1"), "uid-1").drivers[0].config["base"] == str(Path(paths[0]).parent)


@needs_ray
def test_the_control_plane_listens_at_its_machines_address_and_keeps_its_files(placement: actors.Actors, tmp_path: Path) -> None:
    made = topology(tmp_path)
    facade = {"port": 1}
    server = placement.housed(made.apiserver(facade), "")
    assert server == msgspec.structs.replace(made.apiserver(facade), bind="tcp://*:*")
    assert placement.housed(made.service("scheduler"), "").dial == {"apiserver": "trunk+"}


def test_kubelet_and_runtime_share_a_process_even_if_it_has_one_node() -> None:
    packing = Packing(1, together=True)
    assert [packing.processes(node) for node in ("a", "b")] == [("nodes-1", "nodes-1"), ("nodes-2", "nodes-2")]


def a_status(*places: Any) -> dict[str, Any]:
    ordinary = {"kind": "kubelet", "pid": 7, "state": "running", "restarts": 0, "metrics": None}
    components = [{"name": f"kubelet/n{number}", **ordinary, **place} for number, place in enumerate(places)]
    return {
        "name": "c",
        "server": "s",
        "kubeconfig": "k",
        "history": "h",
        "components": components,
        "nodes": {"ready": 1, "total": 1},
    }


def test_status_has_columns_for_the_place_only_where_there_are_places() -> None:
    here = status_text(a_status({}))
    assert "RAY NODE" not in here
    far = status_text(a_status({"place": {"node": "0123456789abcdef", "ip": "10.0.0.2"}}, {"place": None}))
    rows = [line.split() for line in far.splitlines()[-2:]]
    assert [row[-2:] for row in rows] == [["0123456789ab", "10.0.0.2"], ["-", "-"]]


@needs_ray
def test_the_file_for_ray_up_is_what_ray_takes() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    wanted = yaml.safe_load((ROOT / "deploy/ray/cluster.yaml").read_text())
    validate_config(prepare_config(wanted))


def test_the_manifest_for_kuberay_names_the_pinned_ray_and_the_image_of_the_other_file() -> None:
    cluster, policy = yaml.safe_load_all((ROOT / "deploy/ray/kuberay.yaml").read_text())
    pinned = re.search(r"^ray==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert pinned is not None and cluster["spec"]["rayVersion"] == pinned[1]
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    images = {container["image"] for group in groups for container in group["template"]["spec"]["containers"]}
    assert images == {yaml.safe_load((ROOT / "deploy/ray/cluster.yaml").read_text())["docker"]["image"]}
    assert policy["spec"]["podSelector"]["matchLabels"] == {"ray.io/cluster": cluster["metadata"]["name"]}


@pytest.mark.parametrize("address", ["127.0.0.1:1", "no-such-host.invalid:6379", "127.0.0.1:99999"])
def test_an_address_where_nobody_listens_is_told_at_once(address: str) -> None:
    with pytest.raises(UserError, match=f"no Ray at {address}: "):
        actors.look_for(address)


@pytest.mark.parametrize("address", ["", "auto", "local", "ray://head:10001"])
def test_other_addresses_are_rays_to_judge(address: str) -> None:
    actors.look_for(address)
