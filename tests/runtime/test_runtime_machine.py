"""The runtime stepped by a kubelet that only these tests know."""

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.api.gates import profile_of
from elbowroom.machine import Effect, Instant, Machine, Note, Persist, Received, Send, SetTimer, Step, TimerFired, seconds
from elbowroom.runtime.machine import build
from elbowroom.wire import (
    Call,
    Code,
    Message,
    Reply,
    StreamBookmark,
    StreamCancel,
    StreamCredit,
    StreamEvent,
    decode_value,
    encode_value,
)
from elbowroom.wire.cri import (
    ContainerEvent,
    ContainerId,
    ContainerState,
    CreateContainer,
    LinuxResources,
    PodStats,
    RunPodSandbox,
    RuntimeState,
    SandboxId,
    SandboxState,
    SetPodCgroup,
    StopContainer,
    UpdateContainerResources,
    UpdatePodSandboxResources,
    UpdateWorkload,
)

MI = 1024 * 1024
BEGIN = Instant(1_790_000_000_000_000_000)
KUBELET = "kubelet/n1"
POD_CPU = LinuxResources(cpu_shares=1024, cpu_quota=100_000, cpu_period=100_000, memory_limit_bytes=200 * MI)


class Rig:
    """A runtime, its disk, its clock and its timers."""

    def __init__(self, **config: Any) -> None:
        self.config = {"name": "runtime/n1", "node": "n1", "epoch": 1, "profile": profile_of("lab").as_config(), **config}
        self.now = BEGIN
        self.disk: dict[str, bytes] = {}
        self.timers: dict[str, Instant] = {}
        self.sent: list[tuple[str, Message]] = []
        self.effects: list[Effect] = []
        self.ids = 100
        self.machine: Machine = build(self.config, random.Random(1))
        self.carry(self.machine.start(self.now, {}))

    def carry(self, effects: Any) -> None:
        for effect in effects:
            self.effects.append(effect)
            match effect:
                case Persist(key, None):
                    self.disk.pop(key, None)
                case Persist(key, bytes(value)):
                    self.disk[key] = value
                case SetTimer(name, None):
                    self.timers.pop(name, None)
                case SetTimer(name, at) if at is not None:
                    self.timers[name] = at
                case Send(target, message):
                    self.sent.append((target, message))

    def restart(self, *, after: float = 0.0) -> None:
        """kill -9, and a new life ``after`` seconds later."""
        self.now = Instant(self.now + seconds(after))
        self.timers.clear()
        self.machine = build({**self.config, "epoch": 2}, random.Random(2))
        self.carry(self.machine.start(self.now, dict(self.disk)))

    def wait(self, amount: float) -> None:
        until = Instant(self.now + seconds(amount))
        while self.timers and min(self.timers.values()) <= until:
            name = min(self.timers, key=lambda n: (self.timers[n], n))
            self.now = max(self.now, self.timers.pop(name))
            self.carry(self.machine.step(self.now, TimerFired(name)))
        self.now = until

    def tell(self, message: Message, source: str = KUBELET) -> None:
        self.carry(self.machine.step(self.now, Received(source, message)))

    def ask(self, method: str, body: Any, **more: Any) -> int:
        self.ids += 1
        self.tell(Call(self.ids, method, encode_value(body), **more))
        return self.ids

    def reply(self, number: int) -> Reply | None:
        return next((m for _, m in self.sent if isinstance(m, Reply) and m.id == number), None)

    def did(self, method: str, body: Any, **more: Any) -> Reply:
        """The reply, which must come at once."""
        found = self.reply(self.ask(method, body, **more))
        assert found is not None, f"{method} is not answered"
        return found

    def ok(self, method: str, body: Any) -> bytes:
        reply = self.did(method, body)
        assert reply.code is Code.OK, reply.message
        return reply.body

    def pod(self, workload: dict[str, Any] | None = None, resources: LinuxResources = POD_CPU, **more: Any) -> None:
        """A sandbox ``s`` whose one container ``s_c_0`` (named c) runs, or is about to."""
        text = json.dumps({"c": workload or {}})
        self.ok("RunPodSandbox", RunPodSandbox("s", "uid-1", "a", "ns", text, resources))
        self.ok("CreateContainer", CreateContainer("s_c_0", "s", "c", 0, "pause", resources, **more))
        self.ask("StartContainer", ContainerId("s_c_0"))

    def sandboxes(self) -> tuple[SandboxState, ...]:
        return decode_value(self.ok("ListAll", None), RuntimeState).sandboxes

    @property
    def sandbox(self) -> SandboxState:
        """Seen without asking for ``PodState``, by which a kubelet gives up what it asked for."""
        return self.sandboxes()[0]

    @property
    def container(self) -> ContainerState:
        return self.sandbox.containers[0]

    def notes(self, name: str) -> list[dict[str, Any]]:
        return [dict(e.fields) for e in self.effects if isinstance(e, Note) and e.name == name]


def update(**values: Any) -> UpdateContainerResources:
    return UpdateContainerResources("s_c_0", LinuxResources(**values))


# ---------------------------------------------------------------- life of a container


def test_a_container_is_created_started_and_stopped() -> None:
    rig = Rig()
    rig.pod()
    assert rig.container.state == "running" and rig.container.started_at == BEGIN
    rig.ok("StopContainer", StopContainer("s_c_0", 30))
    assert (rig.container.state, rig.container.exit_code, rig.container.reason) == ("exited", 0, "Completed")
    assert rig.notes("rt.exit") == [
        {"pod": "ns/a", "uid": "uid-1", "container": "s_c_0", "name": "c", "code": 0, "reason": "Completed", "ran": True}
        | {"stopped": True, "told": BEGIN}
    ]


def test_a_start_is_answered_when_the_container_runs() -> None:
    rig = Rig()
    rig.pod({"startSeconds": 5})
    assert rig.container.state == "created"
    number = rig.ids - 1
    rig.wait(4.9)
    assert rig.reply(number) is None
    rig.wait(0.2)
    assert rig.reply(number) == Reply(number)
    assert rig.container.started_at == BEGIN + seconds(5)


def test_what_ignores_sigterm_is_killed_after_the_grace_period() -> None:
    rig = Rig()
    rig.pod({"stopSeconds": None})
    rig.ok("StopContainer", StopContainer("s_c_0", 4))
    rig.wait(3.9)
    assert rig.container.state == "running"
    rig.wait(0.2)
    assert (rig.container.state, rig.container.exit_code, rig.container.reason) == ("exited", 137, "Error")


def test_a_later_stop_may_hasten_the_kill_but_not_delay_it() -> None:
    rig = Rig()
    rig.pod({"stopSeconds": None})
    rig.ok("StopContainer", StopContainer("s_c_0", 10))
    rig.ok("StopContainer", StopContainer("s_c_0", 2))
    rig.ok("StopContainer", StopContainer("s_c_0", 60))
    rig.wait(2)
    assert rig.container.finished_at == BEGIN + seconds(2)


def test_an_orderly_end_takes_its_time() -> None:
    rig = Rig()
    rig.pod({"stopSeconds": 3})
    rig.ok("StopContainer", StopContainer("s_c_0", 30))
    rig.wait(30)
    assert (rig.container.exit_code, rig.container.finished_at) == (0, BEGIN + seconds(3))


def test_an_init_container_ends_at_once() -> None:
    rig = Rig()
    rig.pod(is_init=True)
    assert (rig.container.state, rig.container.exit_code) == ("exited", 0)
    assert rig.reply(rig.ids) is not None


def test_a_container_ends_by_itself_with_its_code() -> None:
    rig = Rig()
    rig.pod({"exitAfterSeconds": 6, "exitCode": 1})
    rig.wait(6)
    assert (rig.container.state, rig.container.exit_code, rig.container.reason) == ("exited", 1, "Error")


def test_a_stopped_sandbox_holds_nothing_that_runs_and_takes_nothing_new() -> None:
    rig = Rig()
    rig.pod({"stopSeconds": None})
    rig.ok("StopPodSandbox", SandboxId("s"))
    assert not rig.sandbox.ready and rig.container.exit_code == 137
    refused = rig.did("CreateContainer", CreateContainer("s_d_0", "s", "d", 0, "pause", LinuxResources()))
    assert refused.code is Code.FAILED_PRECONDITION
    rig.ok("RemovePodSandbox", SandboxId("s"))
    assert rig.sandboxes() == () and not any(key.startswith("sandbox/") for key in rig.disk)


def test_every_call_may_be_repeated() -> None:
    rig = Rig()
    calls: list[tuple[str, Any]] = [
        ("RunPodSandbox", RunPodSandbox("s", "uid-1", "a", "ns", "", POD_CPU)),
        ("CreateContainer", CreateContainer("s_c_0", "s", "c", 0, "pause", POD_CPU)),
        ("StartContainer", ContainerId("s_c_0")),
        ("UpdateContainerResources", update(memory_limit_bytes=100 * MI)),
        ("SetPodCgroup", SetPodCgroup("s", LinuxResources(cpu_quota=150_000))),
        ("UpdateWorkload", UpdateWorkload("s", '{"c": {"memoryUsage": "5Mi"}}')),
        ("UpdatePodSandboxResources", UpdatePodSandboxResources("s", LinuxResources(), POD_CPU)),
        ("StopContainer", StopContainer("s_c_0", 10)),
        ("RemoveContainer", ContainerId("s_c_0")),
        ("StopPodSandbox", SandboxId("s")),
        ("RemovePodSandbox", SandboxId("s")),
    ]
    for method, body in calls:
        once = rig.ok(method, body)
        disk = dict(rig.disk)
        assert rig.ok(method, body) == once
        assert rig.disk == disk, method
    assert len(rig.notes("rt.create")) == len(rig.notes("rt.exit")) == 1


# ---------------------------------------------------------------- resources


def test_an_update_leaves_what_it_does_not_say() -> None:
    rig = Rig()
    rig.pod()
    rig.ok("UpdateContainerResources", update(memory_limit_bytes=100 * MI))
    assert rig.container.resources == LinuxResources(1024, 100_000, 100_000, 100 * MI)
    assert rig.container.cgroup == rig.container.resources
    assert rig.notes("rt.cgroup")[-1]["limit"] == {"cpu": 1000, "memory": 100 * MI}


def test_the_read_back_is_what_was_asked_and_the_cgroup_what_the_kernel_made_of_it() -> None:
    rig = Rig(cgroup_driver="systemd")
    rig.pod()
    rig.ok("UpdateContainerResources", update(cpu_quota=12_345, memory_limit_bytes=100_000_000))
    assert (rig.container.resources.cpu_quota, rig.container.resources.memory_limit_bytes) == (12_345, 100_000_000)
    assert (rig.container.cgroup.cpu_quota, rig.container.cgroup.memory_limit_bytes) == (13_000, 99_999_744)


def test_an_unlimited_cgroup_reads_minus_one() -> None:
    rig = Rig()
    rig.pod(resources=LinuxResources(cpu_shares=2))
    assert (rig.sandbox.pod_cgroup.cpu_quota, rig.sandbox.pod_cgroup.memory_limit_bytes) == (-1, -1)
    rig.ok("SetPodCgroup", SetPodCgroup("s", LinuxResources(cpu_quota=50_000, memory_limit_bytes=64 * MI)))
    assert (rig.sandbox.pod_cgroup.cpu_quota, rig.sandbox.pod_cgroup.memory_limit_bytes) == (50_000, 64 * MI)
    rig.ok("SetPodCgroup", SetPodCgroup("s", LinuxResources(cpu_quota=-1, memory_limit_bytes=-1)))
    assert (rig.sandbox.pod_cgroup.cpu_quota, rig.sandbox.pod_cgroup.memory_limit_bytes) == (-1, -1)


def test_an_update_takes_its_resize_seconds_and_the_same_asked_again_joins_it() -> None:
    rig = Rig()
    rig.pod({"resizeSeconds": 4})
    first = rig.ask("UpdateContainerResources", update(cpu_quota=50_000))
    rig.wait(2)
    again = rig.ask("UpdateContainerResources", update(cpu_quota=50_000))
    assert rig.container.cgroup.cpu_quota == 100_000 and rig.reply(first) is None
    rig.wait(2)
    assert rig.container.cgroup.cpu_quota == 50_000
    assert rig.reply(first) == Reply(first) and rig.reply(again) == Reply(again)
    assert len(rig.notes("rt.update.begin")) == len(rig.notes("rt.update.end")) == 1


def test_updates_of_a_container_end_in_the_order_in_which_they_came() -> None:
    rig = Rig()
    rig.pod({"resizeSeconds": 4})
    rig.ask("UpdateContainerResources", update(cpu_quota=50_000))
    rig.ok("UpdateWorkload", UpdateWorkload("s", "{}"))
    last = rig.ask("UpdateContainerResources", update(cpu_quota=70_000))
    rig.wait(10)
    assert rig.reply(last) == Reply(last)
    assert rig.container.cgroup.cpu_quota == 70_000


def test_an_update_that_comes_after_its_deadline_changes_nothing() -> None:
    rig = Rig()
    rig.pod()
    late = rig.did("UpdateContainerResources", update(cpu_quota=50_000), deadline=BEGIN - 1)
    assert late.code is Code.DEADLINE_EXCEEDED
    assert rig.container.cgroup.cpu_quota == 100_000


def looked(rig: Rig, **more: Any) -> ContainerState:
    found = decode_value(rig.did("PodState", SandboxId("s"), **more).body, RuntimeState)
    return found.sandboxes[0].containers[0]


def test_who_looks_at_a_pod_gives_up_the_update_that_is_under_way() -> None:
    rig = Rig()
    rig.pod({"resizeSeconds": 4})
    first = rig.ask("UpdateContainerResources", update(cpu_quota=50_000))
    rig.wait(1)
    again = rig.ask("UpdateContainerResources", update(cpu_quota=50_000))
    rig.wait(1)
    assert looked(rig).cgroup.cpu_quota == 100_000
    assert {rig.reply(first).code, rig.reply(again).code} == {Code.CANCELLED}  # type: ignore[union-attr]
    rig.wait(10)
    assert rig.container.cgroup.cpu_quota == rig.container.resources.cpu_quota == 100_000
    assert [n["ok"] for n in rig.notes("rt.update.end")] == [False]
    newer = rig.ask("UpdateContainerResources", update(cpu_quota=70_000))
    rig.wait(4)
    assert rig.reply(newer) == Reply(newer) and rig.container.cgroup.cpu_quota == 70_000


def test_who_looks_at_a_pod_changes_nothing_of_another_nor_of_what_anybody_else_asked_for() -> None:
    rig = Rig()
    rig.pod({"resizeSeconds": 4})
    rig.ok("RunPodSandbox", RunPodSandbox("t", "uid-2", "b", "ns", "", POD_CPU))
    mine = rig.ask("UpdateContainerResources", update(cpu_quota=50_000))
    rig.ok("PodState", SandboxId("t"))
    rig.tell(Call(rig.ids + 5, "PodState", encode_value(SandboxId("s"))), source="somebody")
    rig.wait(4)
    assert rig.reply(mine) == Reply(mine) and rig.container.cgroup.cpu_quota == 50_000


@pytest.mark.parametrize("method", ["PodState", "SetPodCgroup", "UpdateWorkload"])
def test_a_change_that_arrives_after_something_newer_is_refused(method: str) -> None:
    rig = Rig()
    rig.pod()
    late = Call(rig.ids + 1, "UpdateContainerResources", encode_value(update(cpu_quota=50_000)))
    rig.ids += 1
    newer = {"PodState": SandboxId("s"), "SetPodCgroup": SetPodCgroup("s", POD_CPU), "UpdateWorkload": UpdateWorkload("s", "{}")}
    rig.ok(method, newer[method])
    rig.tell(late)
    refused = rig.reply(late.id)
    assert refused is not None and refused.code is Code.FAILED_PRECONDITION and refused.code.definite
    assert rig.container.cgroup.cpu_quota == 100_000 and not rig.notes("rt.update.begin")


def test_a_frame_that_comes_twice_is_answered_twice() -> None:
    rig = Rig()
    rig.pod()
    rig.ids += 1
    call = Call(rig.ids, "UpdateContainerResources", encode_value(update(cpu_quota=50_000)))
    for _ in range(2):
        rig.tell(call)
    assert [m for _, m in rig.sent if isinstance(m, Reply) and m.id == call.id] == [Reply(call.id)] * 2
    assert rig.container.cgroup.cpu_quota == 50_000


def test_a_new_life_that_lists_what_there_is_gives_up_what_the_one_before_asked_for() -> None:
    rig = Rig()
    rig.pod({"resizeSeconds": 4})
    rig.ask("UpdateContainerResources", update(cpu_quota=50_000), epoch=5)
    rig.did("ListAll", None, epoch=5)  # its own, after a gap in the events
    assert not rig.notes("rt.update.end")
    rig.did("ListAll", None, epoch=6)
    rig.wait(10)
    assert [n["ok"] for n in rig.notes("rt.update.end")] == [False]
    assert rig.container.cgroup.cpu_quota == 100_000
    rig.restart()
    assert rig.did("UpdateContainerResources", update(cpu_quota=60_000), epoch=5).code is Code.FAILED_PRECONDITION


def test_a_workload_lets_the_first_updates_fail() -> None:
    rig = Rig()
    rig.pod({"resizeError": 2})
    answers = [rig.did("UpdateContainerResources", update(cpu_quota=50_000)) for _ in range(3)]
    assert [a.code for a in answers] == [Code.UNKNOWN, Code.UNKNOWN, Code.OK]
    assert answers[0].message == 'the runtime refuses to update container "s_c_0"'
    assert [n["ok"] for n in rig.notes("rt.update.end")] == [False, False, True]


def test_a_workload_lets_every_update_fail_until_it_changes() -> None:
    rig = Rig()
    rig.pod({"resizeError": "always"})
    for _ in range(5):
        assert rig.did("UpdateContainerResources", update(cpu_quota=50_000)).code is Code.UNKNOWN
    rig.ok("UpdateWorkload", UpdateWorkload("s", "{}"))
    rig.ok("UpdateContainerResources", update(cpu_quota=50_000))


def test_on_v2_a_limit_below_usage_kills_the_container() -> None:
    rig = Rig(cgroup_version=2)
    rig.pod({"memoryUsage": "150Mi"})
    rig.ok("UpdateContainerResources", update(memory_limit_bytes=100 * MI))
    assert (rig.container.state, rig.container.exit_code, rig.container.reason) == ("exited", 137, "OOMKilled")
    assert rig.notes("rt.update.begin")[-1]["usage"] == 150 * MI


def test_on_v1_a_limit_below_usage_is_refused_and_harmless() -> None:
    rig = Rig(cgroup_version=1)
    rig.pod({"memoryUsage": "150Mi"})
    refused = rig.did("UpdateContainerResources", update(memory_limit_bytes=100 * MI))
    assert refused.code is Code.UNKNOWN and refused.message.endswith("device or resource busy")
    assert rig.container.state == "running" and rig.container.resources.memory_limit_bytes == 200 * MI
    busy = rig.did("SetPodCgroup", SetPodCgroup("s", LinuxResources(memory_limit_bytes=100 * MI)))
    assert busy.message.endswith("device or resource busy")


def test_on_v1_a_container_cannot_have_more_cpu_than_its_pod() -> None:
    rig = Rig(cgroup_version=1)
    rig.pod()
    assert rig.did("UpdateContainerResources", update(cpu_quota=200_000)).message.endswith("invalid argument")
    rig.ok("SetPodCgroup", SetPodCgroup("s", LinuxResources(cpu_quota=200_000)))
    rig.ok("UpdateContainerResources", update(cpu_quota=200_000))
    assert rig.did("SetPodCgroup", SetPodCgroup("s", LinuxResources(cpu_quota=100_000))).message.endswith("invalid argument")


def test_a_container_that_uses_more_than_its_limit_is_killed_when_it_starts() -> None:
    rig = Rig()
    rig.pod({"memoryUsage": "201Mi"})
    assert rig.container.reason == "OOMKilled" and rig.container.started_at == BEGIN


def test_what_a_container_may_swap_it_swaps_out_before_it_is_killed() -> None:
    rig = Rig()
    rig.pod({"memoryUsage": "120Mi"})
    swapping = LinuxResources(memory_limit_bytes=100 * MI, memory_swap_max=str(30 * MI))
    rig.ok("UpdateContainerResources", UpdateContainerResources("s_c_0", swapping))
    stats = decode_value(rig.ok("PodStats", SandboxId("s")), PodStats)
    assert rig.container.state == "running" and stats.memory_usage_bytes == 100 * MI
    rig.ok("UpdateWorkload", UpdateWorkload("s", '{"c": {"memoryUsage": "131Mi"}}'))
    assert rig.container.reason == "OOMKilled"


@pytest.mark.parametrize(("scores", "killed"), [((999, 3), "c"), ((3, 999), "d"), ((500, 500), "c")])
def test_whom_the_kernel_kills_for_the_pod_its_oom_score_decides_with_its_usage(scores: tuple[int, int], killed: str) -> None:
    rig = Rig()
    rig.ok("RunPodSandbox", RunPodSandbox("s", "uid-1", "a", "ns", "", POD_CPU))
    for name, score in zip("cd", scores, strict=True):
        rig.ok("CreateContainer", CreateContainer(f"s_{name}_0", "s", name, 0, "pause", LinuxResources(2, oom_score_adj=score)))
        rig.ok("StartContainer", ContainerId(f"s_{name}_0"))
    later = UpdateContainerResources("s_d_0", LinuxResources(oom_score_adj=1000))
    rig.ok("UpdateContainerResources", later)  # no update reaches a process that runs
    rig.ok("UpdateWorkload", UpdateWorkload("s", '{"c": {"memoryUsage": "120Mi"}, "d": {"memoryUsage": "90Mi"}}'))
    assert [c.name for c in rig.sandbox.containers if c.reason == "OOMKilled"] == [killed]


def test_memory_that_grows_over_the_pods_limit_kills_its_largest_container() -> None:
    rig = Rig()
    rig.pod({"memoryUsage": "120Mi"})
    rig.ok("CreateContainer", CreateContainer("s_d_0", "s", "d", 0, "pause", LinuxResources(cpu_shares=2)))
    rig.ok("StartContainer", ContainerId("s_d_0"))
    rig.ok("UpdateWorkload", UpdateWorkload("s", '{"c": {"memoryUsage": "120Mi"}, "d": {"memoryUsage": "90Mi"}}'))
    assert [(c.name, c.state, c.reason) for c in rig.sandbox.containers] == [("c", "exited", "OOMKilled"), ("d", "running", "")]


def test_usage_is_sampled_and_capped_by_the_quota() -> None:
    rig = Rig()
    rig.pod({"memoryUsage": "50%", "cpuUsage": "3"})
    stats = decode_value(rig.ok("PodStats", SandboxId("s")), PodStats)
    assert (stats.memory_usage_bytes, stats.containers[0].cpu_usage_milli) == (100 * MI, 1000)
    assert rig.notes("rt.usage")[-1]["sampled"] is True


def test_a_changed_workload_takes_effect_on_the_running_container() -> None:
    rig = Rig()
    rig.pod({"memoryUsage": "150Mi"})
    rig.wait(10)
    rig.ok("UpdateWorkload", UpdateWorkload("s", '{"c": {"memoryUsage": "50Mi", "exitAfterSeconds": 5, "exitCode": 3}}'))
    assert (rig.container.exit_code, rig.container.finished_at) == (3, BEGIN + seconds(10))


# ---------------------------------------------------------------- restarts


def test_containers_outlive_the_runtime() -> None:
    rig = Rig()
    rig.pod({"exitAfterSeconds": 100})
    rig.ok("UpdateContainerResources", update(memory_limit_bytes=100 * MI))
    before = rig.sandboxes()
    rig.restart(after=5)
    assert rig.sandboxes() == before


def test_what_was_due_while_the_runtime_was_away_happened_when_it_was_due() -> None:
    rig = Rig()
    rig.pod({"exitAfterSeconds": 6, "exitCode": 2})
    rig.restart(after=60)
    assert (rig.container.exit_code, rig.container.finished_at) == (2, BEGIN + seconds(6))


def test_a_pending_stop_goes_on_after_a_restart() -> None:
    rig = Rig()
    rig.pod({"stopSeconds": None})
    rig.ok("StopContainer", StopContainer("s_c_0", 10))
    rig.restart(after=4)
    rig.wait(5.9)
    assert rig.container.state == "running"
    rig.wait(0.2)
    assert rig.container.finished_at == BEGIN + seconds(10)


def test_a_start_under_way_goes_on_and_answers_who_asks_again() -> None:
    rig = Rig()
    rig.pod({"startSeconds": 5})
    rig.restart(after=1)
    again = rig.ask("StartContainer", ContainerId("s_c_0"))
    rig.wait(4)
    assert rig.reply(again) == Reply(again) and rig.container.started_at == BEGIN + seconds(5)


def test_failures_that_a_workload_has_had_are_remembered() -> None:
    rig = Rig()
    rig.pod({"resizeError": 1})
    assert rig.did("UpdateContainerResources", update(cpu_quota=50_000)).code is Code.UNKNOWN
    rig.restart()
    rig.ok("UpdateContainerResources", update(cpu_quota=50_000))


def test_an_older_incarnation_of_the_kubelet_is_refused_even_after_a_restart() -> None:
    rig = Rig()
    rig.pod()
    assert rig.did("UpdateContainerResources", update(cpu_quota=50_000), epoch=7).code is Code.OK
    rig.restart()
    old = rig.did("UpdateContainerResources", update(cpu_quota=60_000), epoch=6)
    assert old.code is Code.FAILED_PRECONDITION
    assert rig.container.cgroup.cpu_quota == 50_000


def test_a_change_is_durable_before_it_is_told() -> None:
    rig = Rig()
    rig.pod()
    rig.effects.clear()
    rig.tell(Call(9, "events", credit=10))
    rig.ok("UpdateContainerResources", update(cpu_quota=50_000))
    order = [
        f"step {e.label[:2]}"
        if isinstance(e, Step)
        else e.name
        if isinstance(e, Note)
        else "persist"
        if isinstance(e, Persist)
        else type(e.message).__name__
        for e in rig.effects
        if not isinstance(e, SetTimer)
    ]
    assert order == [
        "StreamBookmark",
        "step T1",
        "rt.update.begin",
        "persist",
        "step T2",
        "rt.update.end",
        "rt.cgroup",
        "Reply",
        "step T3",
        "StreamEvent",
    ]


# ---------------------------------------------------------------- events


def stream(rig: Rig, number: int) -> list[StreamEvent]:
    return [m for _, m in rig.sent if isinstance(m, StreamEvent) and m.id == number]


def test_events_come_while_there_is_credit_and_wait_otherwise_one_a_container() -> None:
    rig = Rig()
    rig.tell(Call(9, "events", credit=1))
    rig.pod({"exitAfterSeconds": 1})
    rig.wait(1)
    assert [msgspec.json.decode(e.object, type=ContainerEvent).kind for e in stream(rig, 9)] == ["created"]
    rig.tell(StreamCredit(9, 5))
    told = stream(rig, 9)
    assert [msgspec.json.decode(e.object, type=ContainerEvent) for e in told[1:]] == [ContainerEvent("s", "s_c_0", "exited")]
    assert [e.sequence for e in told] == [1, 2]
    assert told[1].previous == told[0].revision < told[1].revision


def test_a_bookmark_reveals_a_lost_tail() -> None:
    rig = Rig()
    rig.tell(Call(9, "events", credit=100))
    rig.pod()
    rig.wait(0.2)
    marks = [m for _, m in rig.sent if isinstance(m, StreamBookmark)]
    assert marks[0].initial_end and (marks[-1].sequence, marks[-1].revision) == (2, stream(rig, 9)[-1].revision)


def test_a_new_stream_replaces_the_callers_old_one_and_a_cancelled_one_is_silent() -> None:
    rig = Rig()
    rig.tell(Call(9, "events", credit=100))
    rig.tell(Call(10, "events", credit=100))
    rig.tell(StreamCancel(9))
    rig.pod()
    assert not stream(rig, 9) and len(stream(rig, 10)) == 2
    rig.tell(StreamCancel(10))
    rig.ok("StopContainer", StopContainer("s_c_0", 0))
    assert len(stream(rig, 10)) == 2


# ---------------------------------------------------------------- nonsense


@pytest.mark.parametrize(
    ("method", "body", "code"),
    [
        ("Nonsense", None, Code.UNIMPLEMENTED),
        ("CreateContainer", {"no": "such"}, Code.INVALID_ARGUMENT),
        ("PodStats", SandboxId("other"), Code.NOT_FOUND),
        ("StartContainer", ContainerId("other"), Code.NOT_FOUND),
        ("UpdateContainerResources", UpdateContainerResources("other", LinuxResources()), Code.NOT_FOUND),
        ("UpdateWorkload", UpdateWorkload("other", ""), Code.NOT_FOUND),
        ("StopContainer", StopContainer("other", 3), Code.OK),
        ("RemoveContainer", ContainerId("other"), Code.OK),
    ],
)
def test_what_cannot_be_done_is_answered(method: str, body: Any, code: Code) -> None:
    rig = Rig()
    assert rig.did(method, body).code is code


def test_a_malformed_workload_is_noted() -> None:
    rig = Rig()
    rig.pod()
    rig.ok("UpdateWorkload", UpdateWorkload("s", "{"))
    assert rig.notes("rt.workload.malformed") and rig.container.state == "running"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("StartContainer"), st.sampled_from([ContainerId("s_c_0"), ContainerId("s_d_0")])),
        st.tuples(
            st.just("CreateContainer"),
            st.builds(
                lambda name, memory: CreateContainer(f"s_{name}_0", "s", name, 0, "pause", LinuxResources(102, 0, 0, memory * MI)),
                st.sampled_from("cd"),
                st.integers(0, 64),
            ),
        ),
        st.tuples(
            st.just("UpdateContainerResources"),
            st.builds(
                lambda quota, memory: update(cpu_quota=quota, memory_limit_bytes=memory * MI),
                st.integers(-1, 200_000),
                st.integers(0, 64),
            ),
        ),
        st.tuples(
            st.just("SetPodCgroup"),
            st.builds(lambda m: SetPodCgroup("s", LinuxResources(memory_limit_bytes=m * MI)), st.integers(1, 99)),
        ),
        st.tuples(
            st.just("UpdateWorkload"),
            st.builds(
                lambda m, r, e: UpdateWorkload(
                    "s", json.dumps({"c": {"memoryUsage": f"{m}Mi", "resizeSeconds": r, "exitAfterSeconds": e}})
                ),
                st.integers(0, 80),
                st.integers(0, 2),
                st.one_of(st.none(), st.integers(0, 9)),
            ),
        ),
        st.tuples(st.just("StopContainer"), st.builds(StopContainer, st.just("s_c_0"), st.integers(0, 5))),
        st.tuples(st.just("RemoveContainer"), st.just(ContainerId("s_c_0"))),
        st.tuples(st.just("wait"), st.integers(0, 3)),
        st.tuples(st.just("restart"), st.integers(0, 3)),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.sampled_from([1, 2]))
def test_memory_stays_under_its_limits_and_a_restart_changes_nothing(steps: list[tuple[str, Any]], version: int) -> None:
    rig = Rig(cgroup_version=version)
    rig.ok("RunPodSandbox", RunPodSandbox("s", "uid-1", "a", "ns", "", LinuxResources(102)))
    for name, body in steps:
        if name == "wait":
            rig.wait(body)
        elif name == "restart":
            rig.restart(after=body)
        else:
            rig.ask(name, body)
        state = rig.sandbox
        stats = decode_value(rig.ok("PodStats", SandboxId("s")), PodStats)
        limits = {c.name: c.cgroup.memory_limit_bytes for c in state.containers}
        for used in stats.containers:
            assert limits[used.name] == -1 or used.memory_usage_bytes <= limits[used.name]
        assert state.pod_cgroup.memory_limit_bytes == -1 or stats.memory_usage_bytes <= state.pod_cgroup.memory_limit_bytes
        twin = build(rig.config, random.Random(3))
        twin.start(rig.now, dict(rig.disk))
        [answer] = [e.message for e in twin.step(rig.now, Received(KUBELET, Call(1, "ListAll"))) if isinstance(e, Send)]
        assert isinstance(answer, Reply) and decode_value(answer.body, RuntimeState).sandboxes == (state,)
    assert len(rig.notes("rt.exit")) <= len(rig.notes("rt.create"))
