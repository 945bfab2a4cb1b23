"""A cluster as actors of Ray on two raylets: what ``ray_story`` saw happen to it, looked at from all sides.

Ray listens at all addresses, so it gets a network that has none but loopback; and processes of its own to number, so that nothing
of it can be left.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_story import NO_RAY

pytestmark = [pytest.mark.processes, pytest.mark.timeout(400)]
ALONE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
STORY = Path(__file__).with_name("ray_story.py")
NODES = [f"node-{number}" for number in range(1, 7)]


def why_not() -> str:
    """Why that cannot be had here; "" if it can."""
    if importlib.util.find_spec("ray") is None:
        return "Ray is not installed"
    try:
        tried = subprocess.run([*ALONE, "sh", "-c", "ip link set lo up"], capture_output=True, text=True)
    except OSError as why:
        return f"no unshare: {why}"
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.strip()}"


@pytest.fixture(scope="module")
def facts() -> Iterator[dict[str, Any]]:
    why = why_not()
    if why:
        pytest.skip(why)
    with tempfile.TemporaryDirectory(prefix="eb") as folder:  # a short path: Ray puts sockets there
        home = Path(folder)
        environment = {
            **os.environ,
            "HOME": folder,
            "ELBOWROOM_HOME": str(home / "clusters"),
            "RAY_TMPDIR": folder,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        told = subprocess.run(
            [*ALONE, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, str(STORY), str(home / "clusters")],
            env=environment,
            capture_output=True,
            text=True,
        )
        if told.returncode == NO_RAY:
            pytest.skip(told.stderr[-300:])
        assert told.returncode == 0, told.stderr[-4000:]
        yield json.loads(told.stdout)


def machines_of(facts: dict[str, Any], kind: str) -> list[str]:
    return [place["node"] for name, place in facts["up"]["places"].items() if name.partition("/")[0] == kind]


def test_up_returns_when_all_nodes_are_ready_and_they_are_spread_over_the_raylets(facts: dict[str, Any]) -> None:
    assert facts["up"]["nodes"] == {"total": 6, "ready": 6}
    assert set(machines_of(facts, "kubelet")) == set(facts["raylets"])
    assert machines_of(facts, "kubelet") == machines_of(facts, "runtime")


def test_the_api_server_is_on_the_head_node(facts: dict[str, Any]) -> None:
    assert machines_of(facts, "apiserver") == [facts["head"]]


def test_status_shows_people_where_each_component_is(facts: dict[str, Any]) -> None:
    heading = next(line for line in facts["table"] if line.startswith("COMPONENT"))
    assert heading.split()[-3:] == ["RAY", "NODE", "IP"]
    row = next(line for line in facts["table"] if line.startswith("apiserver")).split()
    assert row[-2:] == [facts["head"][:12], "127.0.0.1"]


def test_a_resize_makes_room_by_preemption_although_the_nodes_actor_dies_in_the_middle(facts: dict[str, Any]) -> None:
    assert facts["preemption"] == {"low is left": False, "same container": True}
    assert facts["actor"] == {"another process": True, "same machine": True, "restarts": 1}


def test_kill_restarts_a_machine_alone_in_a_shared_process_and_ends_an_own_process(facts: dict[str, Any]) -> None:
    assert facts["kills"] == {"kubelet": [0, 1], "runtime": 0, "scheduler": True}


def test_what_a_dead_raylet_ran_begins_elsewhere(facts: dict[str, Any]) -> None:
    moved, elsewhere = set(facts["raylet"]["moved"]), set(facts["raylet"]["elsewhere"])
    assert facts["raylet"]["sleeper"] in moved
    assert moved <= elsewhere
    assert {f"kubelet/{node}" for node in NODES} <= elsewhere


def test_what_wakes_when_it_has_been_replaced_ends_and_nothing_that_was_recorded_breaks_an_invariant(facts: dict[str, Any]) -> None:
    assert facts["raylet"]["both alive"]
    assert facts["check"]["code"] == 0, facts["check"]["text"]


def test_down_leaves_neither_actors_nor_their_files(facts: dict[str, Any]) -> None:
    assert facts["down"] == {"code": 0, "files": False}
