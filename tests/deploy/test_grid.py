"""The machine drawn as a grid of CPUs."""

import pytest

from elbowroom.deploy.stories.grid import Grid, cpus_of, cpuset_of, owners_of, shown
from elbowroom.deploy.stories.telling import Teller

TWO = {"sockets": 2, "numaNodesPerSocket": 1, "coresPerNuma": 2, "threadsPerCore": 2}


def test_each_numa_node_has_a_row_for_each_thread_and_a_column_for_each_core() -> None:
    grid = Grid(TWO, frozenset([0, 4]), {1: "web", 5: "web", 2: "db"}, leaving=frozenset([5]))
    assert grid.rows() == [
        ["", "", "core 0", "core 1"],
        ["NUMA 0", "thread 0", " 0 r", " 1 web"],
        ["", "thread 1", " 4 r", " 5 (web)"],
        ["NUMA 1", "thread 0", " 2 db", " 3 ."],
        ["", "thread 1", " 6 .", " 7 ."],
    ]


def test_every_cpu_is_drawn_once() -> None:
    cells = [cell for row in Grid({"sockets": 2, "coresPerNuma": 3, "threadsPerCore": 2}).rows()[1:] for cell in row[2:]]
    assert sorted(int(cell.split()[0]) for cell in cells) == list(range(12))


def test_owners_have_colours_of_their_own_and_what_is_left_is_struck_out() -> None:
    grid = Grid(TWO, owners={1: "db", 2: "web"}, leaving=frozenset([2]))
    assert grid.style(" 3 .") == "dim" and grid.style("NUMA 0") == ""
    assert grid.style(" 1 db") != grid.style(" 2 web") and grid.style(" 2 (web)").endswith("strike")


@pytest.mark.parametrize("text", ["", "3", "0-3,8", "1-2,5-6,9"])
def test_lists_of_cpus_are_read_and_written(text: str) -> None:
    assert shown(cpus_of(text)) == text


def test_owners_and_sets_are_read_from_what_the_node_proxy_shows() -> None:
    resources = {"podResources": [{"name": "web", "containers": [{"name": "c", "cpuIds": [1, 5]}, {"name": "d", "cpuIds": None}]}]}
    assert owners_of(resources) == {1: "web", 5: "web"}
    cgroups = [{"pod": "web", "cpusetCpus": "0-7"}, {"pod": "web", "container": "c", "cpusetCpus": "1,5"}]
    assert (cpuset_of(cgroups, "web"), cpuset_of(cgroups, "none")) == ("1,5", "")


def test_a_grid_is_told_as_plain_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    grid = Grid(TWO, owners={1: "web"})
    Teller().rows(grid.rows(), style=grid.style)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["NUMA", "0", "thread", "0", "0", ".", "1", "web"] and len(lines) == 5
