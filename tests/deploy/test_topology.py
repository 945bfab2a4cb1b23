"""Where machines listen and write, how nodes are packed, and where a cluster lives."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.api.gates import profile_of
from elbowroom.deploy import home as homes
from elbowroom.deploy.chaos.links import RelayedTopology
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home, State
from elbowroom.deploy.topology import Packing, Topology, hardware_of, is_node_name, metrics_url

SOCKETS = Path("/tmp/elbowroom-abcdefgh")
LONGEST_NAME = "n" + "-long" * 50


def a_topology(data: Path = Path("/data"), store: str = "sqlite") -> Topology:
    return Topology(SOCKETS, data, dict(profile_of("lab").as_config()), store)


def test_every_socket_path_is_short_enough_for_ipc_whatever_the_nodes_name() -> None:
    topology = a_topology()
    for address in (topology.runtime(LONGEST_NAME).bind, topology.apiserver({}).bind, topology.control_address):
        assert len(address.removeprefix("ipc://").encode()) <= homes.IPC_PATH_BYTES_MAX


def test_only_the_scheduler_is_told_its_configuration() -> None:
    told = replace(a_topology(), scheduler={"podMaxBackoffSeconds": 3})
    assert told.service("scheduler").config["config"] == {"podMaxBackoffSeconds": 3}
    assert "config" not in told.service("controllers").config


def test_a_kubelet_dials_the_api_server_and_the_runtime_of_its_node() -> None:
    topology = a_topology()
    assert topology.kubelet("n1").dial == {"apiserver": topology.apiserver({}).bind, "runtime/n1": topology.runtime("n1").bind}
    assert topology.runtime("n1").bind != topology.runtime("n2").bind


def test_nodes_that_share_a_process_share_its_connection_and_have_their_runtime_beside_them() -> None:
    topology = replace(a_topology(), kubelets_per_process=50)
    assert topology.kubelet("n1").dial == {
        "apiserver": f"trunk+{topology.apiserver({}).bind}",
        "runtime/n1": topology.runtime("n1").bind,
    }
    assert topology.runtime("n1").bind == "inproc://runtime/n1"
    kubelet, runtime = Packing(50).processes("n1")
    assert kubelet == runtime
    relayed = RelayedTopology(SOCKETS, Path("/data"), topology.profile, "sqlite", 50, relay="/tmp/relay")
    assert relayed.runtime("n1").bind.startswith("ipc://"), "a relay stands between sockets"


def test_a_node_is_forgotten_with_all_that_its_machines_kept(tmp_path: Path) -> None:
    topology = a_topology(tmp_path)
    for spec in (topology.kubelet("n1"), topology.runtime("n1"), topology.kubelet("n2")):
        Path(spec.disk.path).mkdir(parents=True)
    topology.forget(topology.kubelet("n1"))
    topology.forget(topology.runtime("n1"))
    assert [path.name for path in (tmp_path / "nodes").iterdir()] == ["n2"]


def test_a_store_in_memory_does_not_touch_the_nodes_of_one_on_disk(tmp_path: Path) -> None:
    kept = Path(a_topology(tmp_path).kubelet("n1").disk.path)
    kept.mkdir(parents=True)
    volatile = a_topology(tmp_path, "memory")
    Path(volatile.kubelet("n1").disk.path).mkdir(parents=True)
    volatile.forget_all_nodes()
    assert kept.exists() and not Path(volatile.kubelet("n1").disk.path).exists()


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("node-1", True),
        ("a.b", True),
        ("..", False),
        ("a/../b", False),
        ("", False),
        ("-a", False),
        ("A", False),
        ("a" * 254, False),
    ],
)
def test_only_a_name_that_the_api_lets_in_may_stand_in_a_path(name: str, fits: bool) -> None:
    assert is_node_name(name) is fits


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        ({}, {}),
        ({"elbowroom.dev/machine": '{"cgroupVersion": 1}'}, {"cgroup_version": 1}),
        ({"elbowroom.dev/kubelet-config": '{"cgroupDriver": "systemd"}'}, {"cgroup_driver": "systemd"}),
        ({"elbowroom.dev/machine": "not JSON", "elbowroom.dev/kubelet-config": "[]"}, {}),
        ({"elbowroom.dev/machine": '{"cgroupVersion": "two"}'}, {}),
        ({"elbowroom.dev/machine": '{"cgroupVersion": 3}'}, {}),
    ],
)
def test_a_runtime_learns_of_its_hardware_what_makes_sense(annotations: dict[str, str], wanted: dict[str, object]) -> None:
    assert hardware_of(annotations) == wanted


def test_metrics_are_where_the_fixed_surface_says() -> None:
    found = [metrics_url("https://s", name) for name in ("apiserver", "scheduler", "kubelet/n", "runtime/n", "controllers")]
    assert found == [
        "https://s/metrics",
        "https://s/elbowroom/scheduler/metrics",
        "https://s/api/v1/nodes/n/proxy/metrics",
        None,
        None,
    ]


def test_alone_each_machine_has_a_process_of_its_own_name() -> None:
    assert Packing(1).processes("n1") == ("kubelet/n1", "runtime/n1")


@given(st.integers(2, 5), st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=40))
def test_no_process_ever_holds_more_nodes_than_asked_for(per_process: int, events: list[tuple[str, bool]]) -> None:
    packing, place = Packing(per_process), dict[str, tuple[str, str]]()
    for node, comes in events:
        if comes:
            processes = packing.processes(node)
            assert place.setdefault(node, processes) == processes, "a node stays where it is"
        else:
            packing.leave(node)
            place.pop(node, None)
        kubelets = [kubelet for kubelet, _ in place.values()]
        assert all(kubelets.count(process) <= per_process for process in kubelets)


def test_sockets_get_a_private_directory_that_is_removed_and_nothing_else_is(tmp_path: Path) -> None:
    made = homes.make_sockets()
    assert made.stat().st_mode & 0o777 == 0o700
    homes.remove_sockets(str(made))
    assert not made.exists()
    homes.remove_sockets(str(tmp_path))
    assert tmp_path.exists()


def test_a_directory_with_a_long_path_is_passed_over_for_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    made = homes.make_sockets()
    made.rmdir()
    assert long not in made.parents


def test_a_home_tells_whether_it_lives_also_to_another_process(tmp_path: Path) -> None:
    home = Home("lab", tmp_path)
    home.make()
    assert not home.is_running() and home.path.stat().st_mode & 0o777 == 0o700
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        while (lock := home.lock()) is None:
            os.sched_yield()  # whoever looks whether it is taken holds it for a moment
        os.read(reading, 1)  # holds it until told
        os._exit(1 if lock.closed else 0)
    os.close(reading)
    try:
        while not home.is_running():
            os.sched_yield()
        assert homes.running(tmp_path)[0].name == "lab"
    finally:
        os.close(writing)
        assert os.waitpid(child, 0)[1] == 0
    assert not home.is_running()


def test_what_a_dead_supervisor_left_is_cleaned_up_and_its_port_kept(tmp_path: Path) -> None:
    home = Home("lab", tmp_path)
    home.make()
    sockets = homes.make_sockets()
    home.write_state(State(pid=4711, sockets=str(sockets), port=12345))
    assert home.clean_up_after_death() is True
    assert not sockets.exists() and home.state() == State(port=12345)
    assert home.clean_up_after_death() is False


def test_a_damaged_state_file_reads_as_none(tmp_path: Path) -> None:
    home = Home("lab", tmp_path)
    home.make()
    (home.path / "state.json").write_text('{"pid": 1, "surprise": 2}')
    assert home.state() == State()


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", "a" * 41, "-a"])
def test_a_name_that_is_no_plain_word_names_no_cluster(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot name a cluster"):
        Home(name, tmp_path)
