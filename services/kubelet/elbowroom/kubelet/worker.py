"""One pod's driver: it asks what comes next, makes one runtime call, and goes on from the answer.

A *chain* is a sequence of such calls, as upstream's SyncPod is. Its start evaluates the resize conditions and publishes the
status; what happens inside is published only when the runtime was looked at again after its end. So a resize that fits is two
status patches: in progress, and done. One call is in flight at a time, so a late one can't overwrite a newer; whatever ends with
an unknown outcome is looked at before anything else is done.
"""

from collections.abc import Iterable
from typing import Any, Protocol, assert_never

import msgspec

from elbowroom.api.objects import Container, Node, Pod
from elbowroom.api.resources import Resources
from elbowroom.kubelet import actuation, lifecycle
from elbowroom.kubelet.account import Account
from elbowroom.kubelet.actuation import PodConfig, latest
from elbowroom.kubelet.admission import Neighbour
from elbowroom.kubelet.checkpoint import Checkpoint, PodResources
from elbowroom.kubelet.config import KubeletConfig
from elbowroom.kubelet.containers import Containers
from elbowroom.kubelet.crashloop import CrashLoop
from elbowroom.kubelet.ending import Ending, by_deletion
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.metrics import Metrics
from elbowroom.kubelet.pinning import Pinner
from elbowroom.kubelet.podsandbox import PodSandbox
from elbowroom.kubelet.previews.scaling import Scaling
from elbowroom.kubelet.progress import Progress
from elbowroom.kubelet.resizer import CALL_SECONDS, Done, Failed, Resizer
from elbowroom.kubelet.runtimecall import RuntimeCall
from elbowroom.kubelet.status.shown import Eviction, ResizeCondition, Shown
from elbowroom.machine import Effect, Instant, Note, seconds
from elbowroom.rpc import Finished
from elbowroom.wire import Code, MalformedError, decode_value
from elbowroom.wire.cri import (
    ContainerState,
    RuntimeState,
    SandboxId,
    SandboxState,
)

SANDBOX_RETRY_SECONDS = 1.0


class Services(Protocol):
    """What a worker needs of its kubelet."""

    config: KubeletConfig
    allocated: Checkpoint
    actuated: Checkpoint
    metrics: Metrics
    managers: Managers
    scaling: Scaling
    notify_first: bool

    @property
    def node(self) -> Node: ...
    def emit(self, *effects: Effect) -> None: ...
    def jitter(self) -> float: ...
    def ask(self, now: Instant, worker: "PodWorker", method: str, body: Any, timeout: float) -> None: ...
    def tell(self, now: Instant, method: str, body: Any) -> None: ...
    def event(self, now: Instant, pod: Pod, kind: str, reason: str, message: str, container: Container | None = None) -> None: ...
    def pull(self, now: Instant, pod: Pod, container: Container) -> None: ...
    def publish(self, now: Instant, worker: "PodWorker") -> None: ...
    def wake(self, worker: "PodWorker", at: Instant) -> None: ...
    def is_held(self, worker: "PodWorker") -> bool: ...
    def save_managers(self, cause: str) -> None: ...
    def sandboxes(self) -> Iterable[tuple[str, SandboxState | None]]: ...
    def make_way(self, now: Instant, uids: Iterable[str]) -> None: ...
    def moved(self, now: Instant) -> None: ...
    def over(self, now: Instant, worker: "PodWorker") -> None: ...


class PodWorker:
    """See the module. The machine feeds it; everything public is read by the machine."""

    __slots__ = (
        "_account",
        "_again",
        "_call",
        "_chain",
        "_containers",
        "_crashes",
        "_ending",
        "_kubelet",
        "_pinner",
        "_pod_sandbox",
        "_progress",
        "_resizer",
        "_rest_until",
        "_stale",
        "_touched",
        "admitted",
        "counts_for_nothing",
        "eviction",
        "gone",
        "in_progress",
        "ip",
        "over",
        "pending",
        "pod",
        "record",
        "refused",
        "sandbox",
        "shown_actuated",
        "shown_sandbox",
        "started",
        "told",
        "tuned",
    )

    def __init__(self, kubelet: Services, pod: Pod, now: Instant) -> None:
        self._kubelet = kubelet
        self.pod = pod
        self.admitted = False
        self.refused: tuple[str, str] | None = None
        """Reason and message of a rejected pod."""
        self.gone = False
        """The API server has no such pod any more."""
        self.over = False
        """Its containers have ended for good."""
        self.counts_for_nothing = False
        """It has been told that the pod ended."""
        self.sandbox: SandboxState | None = None
        self.ip = ""
        self.started = now
        self.pending: ResizeCondition | None = None
        self.in_progress: ResizeCondition | None = None
        self.eviction: Eviction | None = None
        self.shown_sandbox: SandboxState | None = None
        self.shown_actuated = PodResources()
        self.told: tuple[Shown, dict[str, Any]] | None = None
        """What its last status was made from, and that status."""
        self._ending: Ending | None = None
        self._again = False
        self._stale = False
        self._touched = False
        self._chain = False
        self._account = Account(kubelet, self)
        self.record, self.tuned = self._account.record, self._account.tuned
        self._resizer = Resizer(kubelet, self)
        self._rest_until = Instant(0)
        self._call = RuntimeCall(kubelet.metrics, self._send, self.doubt)
        self._pod_sandbox = PodSandbox(kubelet, self)
        self._crashes = CrashLoop(kubelet, self)
        self._containers = Containers(kubelet, self, self._crashes, lambda: self._ending)
        self._progress = Progress(kubelet, self)
        self._pinner = Pinner(kubelet, self, lambda: self._containers.stopping)

    # ------------------------------------------------------------ views

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def active(self) -> bool:
        """It holds its allocation: admitted, and not known to have ended (RC-72)."""
        return self.admitted and not self.gone and not self.over and not self.pod.is_terminal

    @property
    def layer(self) -> PodResources | None:
        """What it was allocated."""
        return self._account.layer

    @property
    def actuated(self) -> PodResources:
        """What was handed to the runtime."""
        return self._account.actuated

    @property
    def allocated_pod(self) -> Pod:
        """The pod with its allocated resources."""
        return self._account.allocated_pod

    @property
    def counts(self) -> Resources:
        """What the pod counts for among its neighbours."""
        return self._account.counts

    @property
    def neighbour(self) -> Neighbour:
        """As its neighbours see it."""
        return self._account.neighbour

    @property
    def pinned(self) -> frozenset[str]:
        """Its containers that have CPUs of their own, and so no CPU quota."""
        return self._account.pinned

    @property
    def unbound(self) -> frozenset[str]:
        """Its containers without a CPU quota."""
        return self._account.unbound

    @property
    def runs(self) -> bool:
        """Does the runtime have a container of it that has not ended?"""
        return self.sandbox is not None and any(c.state != "exited" for c in self.sandbox.containers)

    @property
    def busy(self) -> bool:
        """Is a runtime call in flight?"""
        return self._call.in_flight

    @property
    def in_doubt(self) -> bool:
        """Must it look for itself, since something that it asked for may still be to come?"""
        return self._stale

    @property
    def token(self) -> int:
        """Of the call in flight."""
        return self._call.token

    @property
    def waiting(self) -> dict[str, tuple[str, str]]:
        """Reason and message of containers that wait to be started."""
        return self._crashes.waiting

    # ------------------------------------------------------------ being told

    def update(self, now: Instant, pod: Pod) -> None:
        """The API server's pod changed; look at it anew."""
        old, self.pod = self.pod, pod
        if old.spec is not pod.spec or old.metadata.annotations != pod.metadata.annotations:
            self._resizer.at_once()
        if pod.is_terminating and not self.gone:
            self._end(by_deletion(pod))

    def end(self, grace_seconds: float, eviction: Eviction | None = None) -> None:
        """End the pod on the kubelet's own account."""
        self._end(Ending(grace_seconds))
        self.eviction = self.eviction or eviction

    def _end(self, ending: Ending) -> None:
        """The shortest grace counts; who was given a longer one is told again."""
        if self._ending is not None and ending.grace_seconds >= self._ending.grace_seconds:
            return
        self._ending = ending
        self._containers.stopping.clear()
        if self._call.is_long:
            self._abandon_call()

    def _abandon_call(self) -> None:
        """Wait no longer for the call in flight; what it did must be looked at."""
        self._call.abandon()
        self._resizer.drop()
        self._stale = True

    @property
    def ending(self) -> bool:
        """Is the pod to end?"""
        return self._ending is not None

    def adopt(self, sandbox: SandboxState | None) -> None:
        """The runtime has this of the pod."""
        self.sandbox = sandbox
        self._stale = False
        self._touched = False
        if self.shown_sandbox is None:
            self.shown_sandbox, self.shown_actuated = sandbox, self.actuated
        if sandbox is not None:
            self._pod_sandbox.found(sandbox)
            if not self.busy:
                self._account.correct(sandbox)
            self._containers.found(sandbox)

    def granted(self, now: Instant) -> None:
        """It was allocated something else."""
        self._resizer.at_once()
        self.sync(now)

    @property
    def resize_word(self) -> str:
        """Where its resize stands, in a word; empty if there was none."""
        return self._progress.word

    def look(self, now: Instant) -> None:
        """Something happened to a container: look at the runtime before going on."""
        self._stale = True
        self._resizer.at_once()
        self.sync(now)

    def heard(self, now: Instant, kind: str, container: str) -> None:
        """The runtime told of a container: ``created``, ``started``, ``updated`` or ``exited``."""
        state = self.state_of(container)
        if kind == "exited":
            if state is None or state.state != "exited":
                self.look(now)
        elif kind == "updated" and self._call.has_told(container):
            pass
        elif self.busy:
            overdue = self._call.hinted(now, container) if kind != "created" else None
            if overdue is not None:
                self._kubelet.wake(self, overdue)
        elif kind == "updated":
            self.look(now)  # an earlier life's, or one whose answer was lost
        elif state is None or (kind == "started" and state.state == "created"):
            self.look(now)

    def reconnected(self, now: Instant) -> None:
        """The runtime's connection was replaced: look at what it has, at once."""
        self._rest_until = Instant(0)
        if self.sandbox is not None:
            self.look(now)

    def finished(self, now: Instant, end: Finished) -> None:
        """The call in flight ended."""
        if self._call.finished(now, end):
            self.sync(now)

    # ------------------------------------------------------------ the chain

    def sync(self, now: Instant) -> None:
        """Go on, as far as it goes without waiting."""
        if self.busy:
            self._again = True
            return
        if not (self.admitted or self.gone or self.refused):
            return
        if self.over and not self.gone:
            return  # an earlier life may have seen its end: nothing of it is started again
        if now < self._rest_until:
            self._kubelet.wake(self, self._rest_until)
            return
        if self._stale and self.sandbox is not None:
            self._refresh(now)
            return
        self._stale = False
        if not self._chain and not self.gone:
            self._begin(now)
        while not self.busy and now >= self._rest_until and self._advance(now):
            pass

    @property
    def midway(self) -> bool:
        """A container was told to stop and others wait for it: not the time to tell of it."""
        return self._ending is None and bool(self._containers.stopping)

    def _begin(self, now: Instant) -> None:
        """The start of a chain: are resizes done or under way (RC-132, RC-133)? Then tell the API server."""
        self._chain = True
        self._again = False
        self._progress.judge(now)
        if self._about_to_end:
            return  # the next word is the last
        self.shown_sandbox, self.shown_actuated = self.sandbox, self.actuated
        self._crashes.tell(now)
        self._kubelet.publish(now, self)

    @property
    def _about_to_end(self) -> bool:
        """Nothing runs any more and nothing will: only the sandbox is still to be stopped."""
        if self.over or self.sandbox is None or self.runs or not self.sandbox.containers:
            return False
        return self._ending is not None or lifecycle.is_over(self.pod, latest(self.sandbox))

    def _advance(self, now: Instant) -> bool:
        """One step; True if another may follow at once."""
        if self.gone:
            return self._leave(now)
        if self._pod_sandbox.wants_workload:
            self._pod_sandbox.tell_workload(now)
            return False
        if self._pinner.due and self._may_resize and self._pinner.move(now):
            return False
        situation = self._situation(now)
        if self._ending is not None:
            action = lifecycle.next_end(situation, "Stopping container {}")
        else:
            action = lifecycle.next_action(situation)
        match action:
            case lifecycle.RunSandbox():
                self._pod_sandbox.make(now)
            case lifecycle.StartContainer():
                if not action.created and self._pinner.must_wait(now, action.container.name):
                    self._kubelet.wake(self, Instant(now + seconds(SANDBOX_RETRY_SECONDS)))
                    return False
                self._containers.start(now, action)
            case lifecycle.StopContainer(state, message):
                self._containers.stop(now, state, message)
            case lifecycle.RemoveContainer(state):
                self._containers.remove(now, state)
            case lifecycle.Resize():
                return self._resizer.go_on(now)
            case lifecycle.StopSandbox(sandbox):
                self._pod_sandbox.stop(now, sandbox)
            case lifecycle.Wait(until):
                return self._rest(now, until)
            case lifecycle.Ended():
                return self._ended(now)
            case _:
                assert_never(action)
        return not self.busy

    def _situation(self, now: Instant) -> lifecycle.Situation:
        pod = self.allocated_pod
        under_way, status = self._resizer.under_way, self.pod.status
        # A step that is under way goes on, whether or not there is more to do.
        due = self._may_resize and (not under_way or actuation.may_restart(pod)) and self._resizer.is_due(now)
        return lifecycle.Situation(
            now=now,
            pod=pod,
            sandbox=self.sandbox,
            stopping=self._containers.stopping,
            restarts=actuation.to_restart(pod, self.actuated, actuation.resizable(pod, self.sandbox, now)) if due else (),
            not_before=self._crashes.delayed(now),
            started_before={
                s.name: s.restart_count for s in (*status.container_statuses, *status.init_container_statuses) if s.container_id
            },
            resize=under_way or due,
            held=self._kubelet.is_held(self),
        )

    @property
    def _may_resize(self) -> bool:
        return self._ending is None and not self.over

    def _rest(self, now: Instant, until: Instant | None) -> bool:
        """Nothing to do: look at the runtime once more if something was done, else wait."""
        if self._touched and not self.midway:
            self._refresh(now)
            return False
        if self._again and not self.midway:
            self._begin(now)
            return True
        retry_at = self._resizer.retry_at
        retry = retry_at if retry_at > now and self._may_resize and self._resizer.is_unsettled(now) else None
        wakes = [
            at
            for at in (until, retry, self._containers.stop_limit, lifecycle.next_start(self.pod, self.sandbox, now))
            if at is not None
        ]
        if not self.midway:
            self._chain = False
        if wakes:
            self._kubelet.wake(self, max(min(wakes), now))
        return False

    def _ended(self, now: Instant) -> bool:
        if self._touched and self.sandbox is not None:
            self._refresh(now)
            return False
        if not self.over:
            self.over = True
            self.in_progress = self.pending = None
            self._kubelet.over(now, self)
            self._begin(now)
        self._chain = False
        return False

    def alarm(self, now: Instant) -> None:
        """The time that the worker asked for has come."""
        if self._call.is_overdue(now):
            self._abandon_call()
        limit = self._containers.stop_limit
        if limit is not None and now >= limit:
            self._stale = True
            self._containers.look_again(now)
        self.sync(now)

    # ------------------------------------------------------------ calls

    def ask(self, now: Instant, method: str, body: Any, done: Done, failed: Failed, timeout: float = CALL_SECONDS) -> None:
        """Make the call that is then in flight; ``done`` and ``failed`` take its answer."""
        self._call.make(now, method, body, done, failed, timeout)

    def _send(self, now: Instant, method: str, body: Any, timeout: float) -> None:
        self._kubelet.ask(now, self, method, body, timeout)

    def retry_later(self, now: Instant, code: Code, message: str) -> None:
        """A call failed: do nothing for a while."""
        self._rest_until = Instant(now + seconds(SANDBOX_RETRY_SECONDS))
        self._kubelet.emit(Note("kl.runtime.failed", {"pod": self.key, "uid": self.uid, "code": code.name, "message": message}))
        self._kubelet.wake(self, self._rest_until)

    def _refresh(self, now: Instant) -> None:
        assert self.sandbox is not None, "there is something to look at"
        self.ask(now, "PodState", SandboxId(self.sandbox.sandbox), self._refreshed, self.retry_later)

    def _refreshed(self, now: Instant, body: bytes) -> None:
        try:
            found = decode_value(body, RuntimeState).sandboxes
        except MalformedError as why:
            self.retry_later(now, Code.INTERNAL, str(why))
            return
        midway = self.midway
        self.adopt(found[0] if found else None)
        if not midway:
            self._chain = False  # a new chain begins with the fresh view

    def sandbox_made(self, config: PodConfig, *, doubted: bool) -> None:
        """The pod has a new sandbox. ``doubted``: an earlier request may have made it, for what was allocated then."""
        if doubted:
            self._stale = True
        else:
            self._resizer.made(config)
        self._containers.stopping.clear()
        self._touched = True

    # ------------------------------------------------------------ CPUs of its own

    def repin(self, now: Instant) -> bool:
        """Bring the running containers to the CPUs that they are to have (XC-6). True if there is something to do, or it is not
        known yet: then it is to be asked again."""
        if self._ending is not None or self.over or self.refused is not None:
            return False
        if self.busy:
            return True
        moves = self._pinner.look()
        if moves:
            self.sync(now)
        return moves or self.busy or self._pinner.hindered

    @property
    def waits_for_cpus(self) -> bool:
        """Is it to go on once others have left CPUs that it was given?"""
        return self._pinner.holds_up or (self.runs and self._pinner.hindered)

    # ------------------------------------------------------------ what its parts tell

    def touch(self) -> None:
        """Something was done to what the runtime has: it is looked at before anything is told."""
        self._touched = True

    def doubt(self) -> None:
        """What the runtime has is not certain: look before going on."""
        self._stale = True

    def state_of(self, container: str) -> ContainerState | None:
        """The container with that id, as the runtime is known to have it."""
        containers = self.sandbox.containers if self.sandbox is not None else ()
        return next((c for c in containers if c.container == container), None)

    def put_state(self, state: ContainerState) -> None:
        """The runtime has it like this now, by our own doing."""
        assert self.sandbox is not None, "a container is in a sandbox"
        kept = tuple(c for c in self.sandbox.containers if c.container != state.container)
        self.sandbox = msgspec.structs.replace(self.sandbox, containers=(*kept, state))
        self._touched = True

    # ------------------------------------------------------------ leaving

    def leave(self, now: Instant) -> None:
        """The API server's pod is gone: end what is left of it, with the grace that it has, and forget it."""
        self.gone = True
        if self._ending is None:
            self._end(Ending(float(max(0, self.pod.spec.termination_grace_period_seconds))))
        self.sync(now)

    def _leave(self, now: Instant) -> bool:
        if self.sandbox is None:
            self.over = True
            self._kubelet.over(now, self)
            return False
        grace = self._ending.left(now) if self._ending else 0.0
        if self.runs and grace > 0:
            action = lifecycle.next_end(self._situation(now), "Stopping container {}")
            if isinstance(action, lifecycle.StopContainer):
                self._containers.stop(now, action.state, action.message)
                return not self.busy
            if isinstance(action, lifecycle.Wait):
                limit = self._containers.stop_limit
                if limit is not None:
                    self._kubelet.wake(self, max(limit, now))
                return False
        for state in self.sandbox.containers:
            if state.state == "running":
                self._containers.tell_killing(now, state, f"Stopping container {state.name}")
        self._pod_sandbox.remove(now, self.sandbox.sandbox)
        return False
