"""The supervisor with real processes and tiny machines: up, down, deaths of every kind, and what each leaves behind."""

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import topology_that_fails

from elbowroom.client import BusClient
from elbowroom.deploy import config, control, launch, planning, supervisor
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home, make_sockets
from elbowroom.deploy.show import Progress
from elbowroom.deploy.supervisor import NODES_GIVE_WAY
from elbowroom.deploy.topology import CONTROL_PLANE
from elbowroom.testing.cluster import until

pytestmark = pytest.mark.processes
HERE = Path(__file__).parent


class Cluster:
    """A tiny cluster of its own home."""

    def __init__(self, root: Path, nodes: int = 2, per_process: int = 1, fail: dict[str, str] | None = None) -> None:
        self.home = Home("tiny", root)
        self._spec = {"nodes": [{"count": nodes}], "kubeletsPerProcess": per_process}
        self._fail = fail or {}

    def up(self, **changes: Any) -> None:
        cluster = config.overlay(config.Cluster(), {**self._spec, **changes})
        checked = planning.plan(self.home, cluster)
        topology = topology_that_fails(self._fail)
        plan = planning.Plan(self.home, cluster, checked.data, checked.port, topology, ("tiny",), (str(HERE),), asks_for_nodes=True)
        with Progress("tiny", quiet=True) as show:
            launch.start(plan, detach=True, show=show)

    def ask(self, **request: Any) -> Any:
        return control.ask(self.home.control(), request)["ok"]

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(do="status")
        return found

    def component(self, name: str) -> dict[str, Any]:
        return next((c for c in self.status()["components"] if c["name"] == name), {})

    def kill(self, name: str, word: str = "KILL", *, at: str | None = None, hits: int = 1, stay_dead: bool = False) -> None:
        self.ask(do="kill", component=name, signal=word, at=at, hits=hits, stayDead=stay_dead)

    def pids(self) -> list[int]:
        return [pid for c in self.status()["components"] if (pid := c["pid"])] + [self.home.state().pid]

    def down(self) -> None:
        if self.home.path.exists() and self.home.is_running():
            launch.down(self.home)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def one(**arguments: Any) -> Cluster:
        made.append(Cluster(tmp_path, **arguments))
        return made[-1]

    yield one
    for cluster in made:
        cluster.down()


def eventually(fact: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Wait for a fact that has no watch."""
    deadline = time.monotonic() + seconds
    while not (found := fact()):
        assert time.monotonic() < deadline, "it did not come true"
        os.sched_yield()
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nodes_give_way_to_the_control_plane(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=1)
    cluster.up()
    niceness = {c["name"]: os.getpriority(os.PRIO_PROCESS, c["pid"]) for c in cluster.status()["components"]}
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    assert set(niceness) == {*CONTROL_PLANE, "kubelet/node-1", "runtime/node-1"}
    for name, found in niceness.items():
        assert found == mine + (0 if name in CONTROL_PLANE else NODES_GIVE_WAY), name


def test_up_returns_when_every_node_is_ready_and_each_component_is_a_process(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=2)
    cluster.up()
    status = cluster.status()
    assert status["nodes"] == {"total": 2, "ready": 2}
    assert [c["name"] for c in status["components"]] == [
        "apiserver",
        "scheduler",
        "controllers",
        "kubelet/node-1",
        "kubelet/node-2",
        "runtime/node-1",
        "runtime/node-2",
    ]
    assert {c["state"] for c in status["components"]} == {"running"}
    assert len({c["pid"] for c in status["components"]}) == 7
    assert status["dashboard"] is None and Path(status["history"]).is_dir()
    assert status["components"][3]["metrics"] == f"{status['server']}/api/v1/nodes/node-1/proxy/metrics"
    assert status["components"][2]["metrics"] is None


def test_down_leaves_no_process_no_socket_and_the_data(make: Callable[..., Cluster]) -> None:
    cluster = make()
    cluster.up()
    pids, sockets = cluster.pids(), Path(cluster.home.state().sockets)
    assert sockets.is_dir() and sockets.stat().st_mode & 0o777 == 0o700
    assert "is down" in launch.down(cluster.home)
    assert not any(map(is_alive, pids)) and not sockets.exists()
    assert (cluster.home.default_data / "nodes" / "node-1" / "kubelet" / "lives").read_bytes() == b"1"
    with pytest.raises(UserError, match="no cluster 'tiny' is running"):
        cluster.home.control()


def test_state_is_taken_up_again_at_the_same_port(make: Callable[..., Cluster]) -> None:
    cluster = make()
    cluster.up()
    before = cluster.status()["server"]
    cluster.down()
    cluster.up()
    assert cluster.status()["server"] == before
    lives = cluster.home.default_data / "nodes" / "node-1" / "kubelet" / "lives"
    until("the kubelet's second life is on its disk", lambda: lives.read_bytes() == b"2")


def test_up_says_which_nodes_of_before_are_not_as_asked(make: Callable[..., Cluster], capfd: pytest.CaptureFixture[str]) -> None:
    cluster = make(nodes=2)
    cluster.up()
    cluster.down()
    cluster.up(nodes=[{"count": 1}])
    assert capfd.readouterr().err == (
        "cluster tiny goes on from its data: node-2 is there too; "
        f"for a new one choose another --name, or remove {cluster.home.default_data} while it is down\n"
    )


def test_an_api_server_that_kept_all_in_memory_begins_anew_with_its_nodes(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=2)
    cluster.up(apiserver={"store": "memory"})
    for life in (1, 2):
        kubelets = [cluster.component(f"kubelet/node-{number}")["pid"] for number in (1, 2)]
        cluster.kill("apiserver")

        def are_new(before: list[int] = kubelets) -> bool:
            now = [cluster.component(f"kubelet/node-{number}").get("pid") for number in (1, 2)]
            return all(now) and not set(now) & set(before)

        eventually(are_new)
        eventually(lambda: cluster.status()["nodes"] == {"total": 2, "ready": 2})
        assert cluster.component("apiserver")["restarts"] == life


def test_up_on_a_running_name_is_refused(make: Callable[..., Cluster]) -> None:
    cluster = make()
    cluster.up()
    with pytest.raises(UserError, match="is up already"):
        cluster.up()


def test_a_supervisor_that_cannot_write_says_so(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=1)
    cluster.home.make()
    (cluster.home.path / "state.json.new").mkdir()
    with pytest.raises(UserError, match=r"the supervisor cannot go on: .*state\.json\.new: Is a directory"):
        cluster.up()
    assert not cluster.home.is_running()


def test_a_supervisor_that_cannot_begin_leaves_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    monkeypatch.setattr(supervisor, "make_sockets", lambda: made.append(make_sockets()) or made[-1])
    plan = planning.plan(Home("tiny", tmp_path), config.Cluster())
    (plan.home.path / "state.json.new").mkdir()
    with pytest.raises(IsADirectoryError):
        supervisor.run(plan, lambda event: None)
    assert made and not made[0].exists()


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} is in use"):
            planning.plan(Home("tiny", tmp_path), config.Cluster(), port=port)


def test_an_api_server_that_cannot_begin_ends_it_with_its_reason_and_nothing_is_left(make: Callable[..., Cluster]) -> None:
    cluster = make(fail={"apiserver": "the store is of version 7"})
    with pytest.raises(UserError, match="the store is of version 7"):
        cluster.up()
    assert not cluster.home.is_running()
    assert not cluster.home.state().sockets


def test_a_component_that_never_begins_ends_it_with_its_reason(make: Callable[..., Cluster]) -> None:
    cluster = make(fail={"kubelet/node-1": "no such option"})
    with pytest.raises(UserError, match=r"kubelet/node-1 cannot start: RuntimeError: no such option; its log"):
        cluster.up()
    assert not cluster.home.is_running()


@pytest.mark.parametrize("name", ["apiserver", "scheduler", "controllers", "kubelet/node-1", "runtime/node-1"])
def test_whoever_is_killed_is_started_again_within_half_a_second(make: Callable[..., Cluster], name: str) -> None:
    cluster = make()
    cluster.up()
    old = cluster.component(name)
    began = time.monotonic()
    cluster.kill(name)
    assert not is_alive(old["pid"])
    new = eventually(lambda: (c := cluster.component(name)) and c["state"] == "running" and c)
    assert time.monotonic() - began < 2.0
    assert new["pid"] != old["pid"] and new["restarts"] == 1


def test_a_death_nobody_asked_for_is_noticed_too(make: Callable[..., Cluster]) -> None:
    cluster = make()
    cluster.up()
    os.kill(cluster.component("scheduler")["pid"], signal.SIGKILL)
    assert eventually(lambda: cluster.component("scheduler")["restarts"] == 1 and cluster.component("scheduler")["pid"])


def test_one_that_is_to_stay_dead_does_and_comes_back_when_thawed(make: Callable[..., Cluster]) -> None:
    cluster = make()
    cluster.up()
    cluster.kill("scheduler", stay_dead=True)
    assert cluster.component("scheduler")["state"] == "dead" and cluster.component("scheduler")["pid"] is None
    with pytest.raises(UserError, match="no process now"):
        cluster.kill("scheduler")
    cluster.kill("scheduler", "CONT")
    assert eventually(lambda: cluster.component("scheduler")["state"] == "running")


def test_a_frozen_one_is_stopped_when_the_command_returns_and_goes_on_when_thawed(make: Callable[..., Cluster]) -> None:
    cluster = make()
    cluster.up()
    pid = cluster.component("scheduler")["pid"]
    cluster.kill("scheduler", "STOP")
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    assert cluster.component("scheduler")["state"] == "frozen"
    with pytest.raises(UserError, match="is frozen"):
        cluster.kill("scheduler", "TERM")
    cluster.kill("scheduler", "CONT")
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T"
    assert cluster.component("scheduler") | {"metrics": None} == {
        "name": "scheduler",
        "kind": "scheduler",
        "pid": pid,
        "state": "running",
        "restarts": 0,
        "metrics": None,
    }


def test_a_frozen_one_can_be_killed(make: Callable[..., Cluster]) -> None:
    cluster = make()
    cluster.up()
    cluster.kill("kubelet/node-1", "STOP")
    cluster.kill("kubelet/node-1", "KILL")
    assert eventually(lambda: cluster.component("kubelet/node-1")["state"] == "running")


def test_a_failpoint_kills_when_its_step_comes_for_the_nth_time(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=1)
    cluster.up()
    cluster.kill("apiserver", stay_dead=False)  # its kubelets' hellos are over: nothing reaches a step any more by itself
    eventually(lambda: cluster.component("apiserver")["state"] == "running")
    cluster.kill("runtime/node-1", at="T2", hits=2)
    address = next(Path(cluster.home.state().sockets).glob("runtime-*.sock"))

    async def calls(count: int) -> None:
        async with BusClient("", f"ipc://{address}", peer="runtime/node-1") as bus:
            for _ in range(count):
                await bus.call("anything", timeout=5)

    asyncio.run(calls(1))
    assert cluster.component("runtime/node-1")["restarts"] == 0
    asyncio.run(calls(1))
    assert eventually(lambda: cluster.component("runtime/node-1")["restarts"] == 1)


def test_one_that_is_to_die_at_a_step_of_its_start_dies_now_and_there(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=1)
    cluster.up()
    cluster.kill("kubelet/node-1", at="R1")
    assert eventually(lambda: cluster.component("kubelet/node-1")["restarts"] == 2)
    assert eventually(lambda: cluster.component("kubelet/node-1")["state"] == "running"), "and the next life passes it"


def test_an_unknown_component_or_step_is_refused_with_a_line(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=1)
    cluster.up()
    with pytest.raises(UserError, match="no component 'kubelet/node-9'; there is: apiserver, controllers, kubelet/node-1"):
        cluster.kill("kubelet/node-9")
    with pytest.raises(UserError, match="never passes a step 'K10'; it has K1 to K17"):
        cluster.kill("kubelet/node-1", at="K10")
    with pytest.raises(UserError, match="--at goes with"):
        cluster.kill("kubelet/node-1", "TERM", at="K4")


def bus(cluster: Cluster) -> BusClient:
    return BusClient("", f"ipc://{cluster.home.state().sockets}/apiserver.sock")


def test_a_node_that_anyone_creates_gets_its_processes_and_loses_them_and_their_disks(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=1)
    cluster.up()
    node = {"metadata": {"name": "extra", "annotations": {"elbowroom.dev/node": "emulated"}}}

    async def create_then_delete(delete: bool) -> None:
        async with bus(cluster) as client:
            await (client.delete("nodes", "extra") if delete else client.create("nodes", node))

    asyncio.run(create_then_delete(delete=False))
    disk = cluster.home.default_data / "nodes" / "extra"
    assert eventually(lambda: cluster.status()["nodes"] == {"total": 2, "ready": 2} and disk.exists())
    pids = [cluster.component(name)["pid"] for name in ("kubelet/extra", "runtime/extra")]
    asyncio.run(create_then_delete(delete=True))
    assert eventually(lambda: not any(map(is_alive, pids)) and not disk.exists())
    assert cluster.component("kubelet/extra") == {}


def test_a_node_without_the_annotation_gets_no_process(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=1)
    cluster.up()

    async def create() -> None:
        async with bus(cluster) as client:
            await client.create("nodes", {"metadata": {"name": "bare"}})

    asyncio.run(create())
    assert eventually(lambda: cluster.status()["nodes"] == {"total": 2, "ready": 1})
    assert cluster.component("kubelet/bare") == {}


def test_packed_nodes_share_processes_and_are_killed_alone(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=3, per_process=2)
    cluster.up()
    first, second, third = (cluster.component(f"kubelet/node-{n}") for n in (1, 2, 3))
    assert first["pid"] == second["pid"] != third["pid"]
    cluster.kill("kubelet/node-1")
    again = eventually(lambda: (c := cluster.component("kubelet/node-1"))["state"] == "running" and c)
    assert (again["pid"], again["restarts"]) == (first["pid"], 1)
    assert cluster.component("kubelet/node-2")["restarts"] == 0
    os.kill(first["pid"], signal.SIGKILL)
    assert eventually(lambda: cluster.component("kubelet/node-2")["restarts"] == 1 and cluster.component("kubelet/node-2")["pid"])
    assert cluster.component("kubelet/node-3")["restarts"] == 0


@pytest.mark.parametrize("frozen", ["kubelet/node-1", "apiserver"])
def test_down_ends_components_that_are_frozen_behind_the_supervisors_back(make: Callable[..., Cluster], frozen: str) -> None:
    cluster = make(nodes=1)
    cluster.up()
    pids = cluster.pids()
    os.kill(cluster.component(frozen)["pid"], signal.SIGSTOP)
    launch.down(cluster.home)
    assert not any(map(is_alive, pids))


def test_when_the_supervisor_is_killed_everything_dies_and_the_next_command_cleans_up(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=1)
    cluster.up()
    pids, sockets = cluster.pids(), Path(cluster.home.state().sockets)
    os.kill(cluster.home.state().pid, signal.SIGKILL)
    assert eventually(lambda: not any(map(is_alive, pids)))
    assert sockets.exists()
    assert "cleaned up" in launch.down(cluster.home)
    assert not sockets.exists()


def test_up_after_the_supervisor_was_killed_cleans_up_and_says_so(make: Callable[..., Cluster], capfd: Any) -> None:
    cluster = make(nodes=1)
    cluster.up()
    sockets = Path(cluster.home.state().sockets)
    os.kill(cluster.home.state().pid, signal.SIGKILL)
    eventually(lambda: not cluster.home.is_running())
    cluster.up()
    assert "cleaned up" in capfd.readouterr().err
    assert not sockets.exists() and cluster.status()["nodes"]["ready"] == 1


def test_down_ends_a_supervisor_that_hangs(make: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "DOWN_SECONDS", 0.5)
    cluster = make(nodes=1)
    cluster.up()
    pids = cluster.pids()
    os.kill(cluster.home.state().pid, signal.SIGSTOP)
    assert "was killed" in launch.down(cluster.home)
    assert eventually(lambda: not any(map(is_alive, pids)))


def test_two_clusters_live_side_by_side(tmp_path: Path) -> None:
    one, other = Cluster(tmp_path / "one", nodes=1), Cluster(tmp_path / "other", nodes=1)
    try:
        one.up()
        other.up()
        assert one.status()["server"] != other.status()["server"]
        one.down()
        assert other.status()["nodes"]["ready"] == 1
    finally:
        one.down()
        other.down()


def test_histories_are_written_where_status_says(make: Callable[..., Cluster]) -> None:
    cluster = make(nodes=1)
    cluster.up()
    history = Path(cluster.status()["history"])
    cluster.down()
    records = [json.loads(line) for file in history.glob("*.jsonl") for line in file.read_text().splitlines()]
    assert {r["proc"] for r in records if r["kind"] == "tiny.alive"} >= {"scheduler", "kubelet/node-1", "runtime/node-1"}
    assert {r["proc"] for r in records if r["kind"] == "end"} >= {"apiserver", "scheduler", "kubelet/node-1", "runtime/node-1"}
