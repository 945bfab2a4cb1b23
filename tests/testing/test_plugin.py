"""What the pytest plugin adds to people's runs."""

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def only_ours(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner runs load no other plugin that happens to be installed: that takes seconds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p elbowroom.testing.plugin")


STAND_IN = """
    import pytest

    class Workspace:
        namespace = "mine"

        def state(self):
            {state}

    @pytest.fixture
    def elbowroom():
        return Workspace()
"""


def test_the_pods_are_told_when_a_test_fails(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STAND_IN.format(state="return 'a: Running'"))
    pytester.makepyfile("def test_it(elbowroom): assert False")
    pytester.runpytest_inprocess().stdout.fnmatch_lines(["*pods of namespace mine*", "a: Running"])


def test_a_cluster_that_cannot_be_asked_is_told_too(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STAND_IN.format(state="raise OSError('gone')"))
    pytester.makepyfile("def test_it(elbowroom): assert False")
    pytester.runpytest_inprocess().stdout.fnmatch_lines(["*pods of namespace mine*", "cannot be read: gone"])


def test_the_options_of_the_cluster_come_from_the_file_or_the_command_line(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nelbowroom_up = --nodes 1 --profile v1.37")
    pytester.makepyfile(
        ini="def test_it(elbowroom_options): assert elbowroom_options == ['--nodes', '1', '--profile', 'v1.37']",
        line="def test_it(elbowroom_options): assert elbowroom_options == ['--nodes', '5']",
    )
    assert pytester.runpytest_inprocess("ini.py").ret == 0
    assert pytester.runpytest_inprocess("line.py", "--elbowroom-up=--nodes 5").ret == 0


def test_a_run_that_asks_for_no_cluster_loads_none_of_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\n\ndef test_it(): assert not [m for m in sys.modules if m.startswith('elbowroom.deploy')]")
    assert pytester.runpytest_subprocess().ret == 0
