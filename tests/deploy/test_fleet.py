"""The fleet: which processes there should be, and what is done about those that are not."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.deploy.fleet import BACKOFF_SECONDS, HEALTHY_SECONDS, STOP_SECONDS, Action, Fleet, Forget, Signal, Spawn, State, Tell
from elbowroom.host.spec import AddMachine, MachineSpec, PauseMachine, RemoveMachine, RestartMachine, ResumeMachine, Shutdown


def a_spec(name: str = "scheduler") -> MachineSpec:
    return MachineSpec(name, f"somewhere:{name}")


def a_fleet(*machines: str, process: str = "", identity: str = "u1") -> Fleet:
    fleet = Fleet()
    for machine in machines:
        fleet.want(a_spec(machine), kind=machine.partition("/")[0], process=process or machine, identity=identity)
    return fleet


def settle(fleet: Fleet, now: float = 0.0, first_pid: int = 100) -> None:
    """Carry out what the fleet asks for until it asks for nothing, everything going well."""
    pids = iter(range(first_pid, first_pid + 100))
    while actions := fleet.reconcile(now):
        for action in actions:
            match action:
                case Spawn(process, machines):
                    fleet.forked(process, next(pids))
                    fleet.started(process)
                    for spec in machines:
                        fleet.ready(now, spec.name, 1, {})
                case Tell(process, AddMachine(spec)):
                    fleet.ready(now, spec.name, 1, {})
                case Tell(_, RemoveMachine(name)):
                    fleet.ended(name, "removed")
                case Tell(process, Shutdown()):
                    fleet.exited(now, process, "ended")
                case Signal(process, _, signal.SIGKILL):
                    fleet.exited(now, process, "killed")


def test_what_is_wanted_is_spawned_once() -> None:
    fleet = a_fleet("scheduler")
    assert fleet.reconcile(0) == [Spawn("scheduler", (a_spec(),))]
    assert fleet.reconcile(0) == []
    assert fleet.state("scheduler") is State.STARTING


def test_a_component_runs_once_it_said_so() -> None:
    fleet = a_fleet("scheduler")
    settle(fleet)
    assert fleet.state("scheduler") is State.RUNNING
    assert fleet.pid("scheduler") == 100


def test_the_first_restart_comes_within_half_a_second_and_is_counted() -> None:
    fleet = a_fleet("scheduler")
    settle(fleet)
    fleet.exited(5.0, "scheduler", "signal 9")
    assert fleet.reconcile(5.0) == []
    assert fleet.state("scheduler") is State.RESTARTING
    assert fleet.due() is not None and 5.1 <= fleet.due() <= 5.5  # type: ignore[operator]
    assert fleet.reconcile(5.5) == [Spawn("scheduler", (a_spec(),))]
    assert fleet.components["scheduler"].restarts == 1


def test_one_that_dies_again_and_again_is_started_ever_later() -> None:
    fleet = a_fleet("scheduler")
    now, waits = 0.0, []
    for _ in range(8):
        assert fleet.reconcile(now)
        fleet.forked("scheduler", 7)
        fleet.exited(now, "scheduler", "exit code 1")
        due = fleet.due()
        assert due is not None
        waits.append(round(due - now, 3))
        now = due
    assert waits == [*BACKOFF_SECONDS, BACKOFF_SECONDS[-1], BACKOFF_SECONDS[-1]]


def test_a_life_of_some_length_clears_the_back_off() -> None:
    fleet = a_fleet("scheduler")
    now = 0.0
    for _ in range(3):
        fleet.reconcile(now)
        fleet.exited(now, "scheduler", "exit code 1")
        now = fleet.due() or now
    settle(fleet, now)
    now += HEALTHY_SECONDS
    fleet.exited(now, "scheduler", "exit code 1")
    assert fleet.due() == pytest.approx(now + BACKOFF_SECONDS[0])


def test_a_death_that_was_asked_for_is_no_failure() -> None:
    fleet = a_fleet("scheduler")
    settle(fleet)
    now = 0.0
    for _ in range(4):
        pid = fleet.pid("scheduler")
        assert fleet.kill("scheduler", signal.SIGKILL, stay_dead=False) == [Signal("scheduler", pid, signal.SIGKILL)]
        fleet.exited(now, "scheduler", "signal 9")
        assert fleet.due() == pytest.approx(now + BACKOFF_SECONDS[0])
        now += 1
        settle(fleet, now)


def test_one_killed_to_stay_dead_stays_dead_until_it_is_thawed() -> None:
    fleet = a_fleet("scheduler")
    settle(fleet)
    fleet.kill("scheduler", signal.SIGKILL, stay_dead=True)
    fleet.exited(1, "scheduler", "signal 9")
    assert fleet.reconcile(1000) == [] and fleet.due() is None
    assert fleet.state("scheduler") is State.DEAD
    assert fleet.kill("scheduler", signal.SIGCONT, stay_dead=False) == []
    assert [type(action) for action in fleet.reconcile(1000)] == [Spawn]


def test_a_failpoint_that_says_so_leaves_its_component_dead() -> None:
    fleet = a_fleet("scheduler", "apiserver")
    settle(fleet)
    assert fleet.arm("scheduler", stay_dead=True) == "scheduler"
    fleet.arm("apiserver", stay_dead=False)
    fleet.exited(1, "scheduler", "signal 9")
    fleet.exited(1, "apiserver", "signal 9")
    assert fleet.state("scheduler") is State.DEAD
    assert [action.process for action in fleet.reconcile(2) if isinstance(action, Spawn)] == ["apiserver"]


def test_a_component_no_longer_wanted_is_told_to_end_and_killed_if_it_does_not() -> None:
    fleet = a_fleet("kubelet/n")
    settle(fleet)
    fleet.unwant("kubelet/n", forget=True)
    assert fleet.reconcile(1) == [Tell("kubelet/n", Shutdown())]
    assert fleet.reconcile(1) == [] and fleet.due() == 1 + STOP_SECONDS
    assert fleet.reconcile(1 + STOP_SECONDS) == [Signal("kubelet/n", 100, signal.SIGKILL)]
    fleet.exited(4, "kubelet/n", "signal 9")
    assert fleet.reconcile(4) == [Forget("kubelet/n", a_spec("kubelet/n"))]
    assert fleet.processes() == {} and fleet.due() is None


def test_a_frozen_one_is_killed_at_once_since_it_would_not_hear() -> None:
    fleet = a_fleet("kubelet/n")
    settle(fleet)
    fleet.kill("kubelet/n", signal.SIGSTOP, stay_dead=False)
    assert fleet.state("kubelet/n") is State.FROZEN
    fleet.unwant("kubelet/n")
    assert fleet.reconcile(1) == [Signal("kubelet/n", 100, signal.SIGKILL)]


def test_thawing_ends_the_frost() -> None:
    fleet = a_fleet("kubelet/n")
    settle(fleet)
    fleet.kill("kubelet/n", signal.SIGSTOP, stay_dead=False)
    assert fleet.kill("kubelet/n", signal.SIGCONT, stay_dead=False) == [Signal("kubelet/n", 100, signal.SIGCONT)]
    assert fleet.state("kubelet/n") is State.RUNNING


def test_a_node_of_the_same_name_waits_for_the_former_ones_end_and_a_clean_disk() -> None:
    fleet = a_fleet("kubelet/n", identity="u1")
    settle(fleet)
    fleet.want(a_spec("kubelet/n"), kind="kubelet", process="kubelet/n", identity="u2")
    assert fleet.reconcile(1) == [Tell("kubelet/n", Shutdown())]
    fleet.exited(1, "kubelet/n", "ended")
    assert [type(action) for action in fleet.reconcile(2)] == [Forget, Spawn]


def test_machines_packed_together_come_and_go_inside_their_process() -> None:
    fleet = a_fleet("kubelet/a", "kubelet/b", process="kubelets-1")
    assert fleet.reconcile(0) == [Spawn("kubelets-1", (a_spec("kubelet/a"), a_spec("kubelet/b")))]
    fleet.forked("kubelets-1", 5)
    fleet.want(a_spec("kubelet/c"), kind="kubelet", process="kubelets-1", identity="u1")
    assert fleet.reconcile(0) == []  # it does not hear yet
    fleet.started("kubelets-1")
    assert fleet.reconcile(0) == [Tell("kubelets-1", AddMachine(a_spec("kubelet/c")))]
    fleet.unwant("kubelet/a", forget=True)
    assert fleet.reconcile(0) == [Tell("kubelets-1", RemoveMachine("kubelet/a"))]
    fleet.ended("kubelet/a", "removed")
    assert fleet.reconcile(0) == [Forget("kubelet/a", a_spec("kubelet/a"))]
    assert fleet.holds("kubelet/b") and fleet.holds("kubelet/c")


@pytest.mark.parametrize(
    ("number", "order"),
    [
        (signal.SIGKILL, RestartMachine("kubelet/a")),
        (signal.SIGTERM, RestartMachine("kubelet/a")),
        (signal.SIGSTOP, PauseMachine("kubelet/a")),
        (signal.SIGCONT, ResumeMachine("kubelet/a")),
    ],
)
def test_one_that_shares_its_process_is_signalled_inside_it(number: int, order: object) -> None:
    fleet = a_fleet("kubelet/a", "kubelet/b", process="kubelets-1")
    settle(fleet)
    assert fleet.kill("kubelet/a", number, stay_dead=False) == [Tell("kubelets-1", order)]  # type: ignore[arg-type]


def test_a_restart_inside_a_process_is_counted() -> None:
    fleet = a_fleet("kubelet/a", "kubelet/b", process="kubelets-1")
    settle(fleet)
    fleet.ended("kubelet/a", "restarted")
    assert fleet.state("kubelet/a") is State.STARTING
    fleet.ready(1, "kubelet/a", 2, {})
    assert (fleet.state("kubelet/a"), fleet.components["kubelet/a"].restarts) == (State.RUNNING, 1)
    assert fleet.components["kubelet/b"].restarts == 0


def test_a_machine_that_failed_inside_its_process_was_restarted_there() -> None:
    fleet = a_fleet("kubelet/a", "kubelet/b", process="kubelets-1")
    settle(fleet)
    fleet.ended("kubelet/a", "failed: disk full")
    fleet.ready(1, "kubelet/a", 2, {})
    assert (fleet.state("kubelet/a"), fleet.components["kubelet/a"].restarts) == (State.RUNNING, 1)
    assert fleet.reconcile(1) == []


def test_one_that_shares_its_process_can_stay_dead_alone() -> None:
    fleet = a_fleet("kubelet/a", "kubelet/b", process="kubelets-1")
    settle(fleet)
    assert fleet.kill("kubelet/a", signal.SIGKILL, stay_dead=True) == []
    assert fleet.reconcile(1) == [Tell("kubelets-1", RemoveMachine("kubelet/a"))]
    fleet.ended("kubelet/a", "removed")
    assert fleet.reconcile(1) == []
    assert (fleet.state("kubelet/a"), fleet.state("kubelet/b")) == (State.DEAD, State.RUNNING)
    fleet.kill("kubelet/a", signal.SIGCONT, stay_dead=False)
    assert fleet.reconcile(2) == [Tell("kubelets-1", AddMachine(a_spec("kubelet/a")))]


def test_a_word_of_a_life_that_is_over_makes_nobody_ready() -> None:
    fleet = a_fleet("kubelet/n", identity="u1")
    settle(fleet)
    fleet.want(a_spec("kubelet/n"), kind="kubelet", process="kubelet/n", identity="u2")
    fleet.ready(1, "kubelet/n", 1, {})
    assert not fleet.components["kubelet/n"].ready


NAMES = ("a", "b", "c")
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("want"), st.sampled_from(NAMES), st.sampled_from(("u1", "u2"))),
        st.tuples(st.just("unwant"), st.sampled_from(NAMES), st.booleans()),
        st.tuples(st.just("die"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("kill"), st.sampled_from(NAMES), st.sampled_from((signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT))),
        st.tuples(st.just("settle"), st.none(), st.none()),
    ),
    max_size=30,
)


@given(EVENTS, st.booleans())
def test_in_the_end_what_is_wanted_runs_and_nothing_else(events: list[tuple[str, str, object]], shared: bool) -> None:
    fleet, now = Fleet(), 0.0
    told: list[Action] = []
    for what, name, detail in events:
        now += 1
        machine = f"kubelet/{name}"
        process = "kubelets-1" if shared else machine
        match what:
            case "want":
                fleet.want(a_spec(machine), kind="kubelet", process=process, identity=str(detail))
            case "unwant":
                fleet.unwant(machine, forget=bool(detail))
            case "die" if process in fleet.processes():
                fleet.exited(now, process, "signal 9")
            case "kill" if machine in fleet.components and fleet.pid(machine):
                told += fleet.kill(machine, int(detail), stay_dead=False)  # type: ignore[call-overload]
                if told and isinstance(told[-1], Signal) and told[-1].signal == signal.SIGKILL:
                    fleet.exited(now, process, "signal 9")
            case "settle":
                settle(fleet, now)
    for due in (now + 100, now + 200):
        settle(fleet, due)
    for name, component in fleet.components.items():
        assert fleet.holds(name) and component.ready
    held = {name for name in ("kubelet/a", "kubelet/b", "kubelet/c") if fleet.holds(name)}
    assert held == set(fleet.components)
    assert fleet.due() is None
