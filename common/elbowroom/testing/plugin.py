"""The pytest plugin: a cluster for the session, and a workspace for each test (docs/testing.md).

It is loaded by every pytest that runs where elbowroom is installed, so it imports nothing of elbowroom before a fixture is asked
for.
"""

import itertools
import shlex
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from elbowroom.testing.cluster import Cluster
    from elbowroom.testing.workspace import Workspace

UP = "elbowroom_up"
DEFAULT = "--nodes 2 --node-cpu 4 --node-memory 4Gi"
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(UP, "Options of 'elbowroom up' for the tests' cluster.", default=DEFAULT)
    parser.getgroup("elbowroom").addoption(
        "--elbowroom-up", metavar="OPTIONS", default=None, help=f"Options of 'elbowroom up' for the tests' cluster (ini: {UP})."
    )


@pytest.fixture(scope="session")
def elbowroom_options(pytestconfig: pytest.Config) -> list[str]:
    """The options of ``elbowroom up``; a conftest.py may say otherwise."""
    chosen = pytestconfig.getoption("--elbowroom-up")
    return shlex.split(pytestconfig.getini(UP) if chosen is None else chosen)


@pytest.fixture(scope="session")
def elbowroom_cluster(tmp_path_factory: pytest.TempPathFactory, elbowroom_options: list[str]) -> "Iterator[Cluster]":
    """A cluster of processes for all tests of the session."""
    from elbowroom.testing.cluster import running

    with running(tmp_path_factory.mktemp("elbowroom"), *elbowroom_options) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def elbowroom_kubeconfig(elbowroom_cluster: "Cluster") -> Path:
    """The session's cluster, for clients: the path of its kubeconfig (an administrator's)."""
    return elbowroom_cluster.kubeconfig


@pytest.fixture
def elbowroom(elbowroom_cluster: "Cluster", request: pytest.FixtureRequest) -> "Iterator[Workspace]":
    """A namespace of the test's own in the session's cluster, with what a test wants to do there."""
    from elbowroom.testing.workspace import Workspace, namespace_of

    with closing(elbowroom_cluster), Workspace(elbowroom_cluster, namespace_of(request.node.name, next(_numbers))) as workspace:
        yield workspace


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """How the pods stood when a test failed."""
    report = yield
    workspace = getattr(item, "funcargs", {}).get("elbowroom")
    if report.when == "call" and report.failed and workspace is not None:
        try:
            state = workspace.state()
        except (AssertionError, OSError) as why:
            state = f"cannot be read: {why}"
        report.sections.append((f"pods of namespace {workspace.namespace}", state))
    return report
