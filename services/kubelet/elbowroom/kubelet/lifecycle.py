"""What to do next for a pod, from what it should be and what the runtime has of it.

``next_action`` is asked again after every step, so it never plans ahead: kill what must go, start what comes first, resize, start
the rest (RC-103). ``next_end`` is its counterpart for a pod that is to end.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Struct

from elbowroom.api.objects import Container, Pod
from elbowroom.kubelet.actuation import latest, starts_at, with_startup_probe
from elbowroom.machine import Instant, seconds
from elbowroom.wire.cri import ContainerState, SandboxState

BACKOFF_SECONDS, BACKOFF_SECONDS_MAX = 10.0, 300.0


class Situation(Struct, frozen=True):
    """All that the decision looks at. ``pod`` has its allocated resources."""

    now: Instant
    pod: Pod
    sandbox: SandboxState | None
    stopping: Mapping[str, Instant] = {}
    """Containers (by id) that were told to stop, and when."""
    restarts: tuple[str, ...] = ()
    """Containers (by name) that a resize restarts."""
    not_before: Mapping[str, Instant] = {}
    """Containers in crash back-off, by name."""
    started_before: Mapping[str, int] = {}
    """Restart counts that the API server knows: a pod that lost its sandbox goes on counting."""
    resize: bool = False
    """The resize step is due."""
    held: bool = False
    """An earlier pod of the same name still runs here (I-44)."""


class RunSandbox(Struct, frozen=True):
    """Make a sandbox."""


class StartContainer(Struct, frozen=True):
    """Start it, creating it first unless the runtime has created that attempt already."""

    container: Container
    attempt: int
    created: bool
    is_init: bool = False
    """An ordinary init container."""


class StopContainer(Struct, frozen=True):
    """Ask it to end; the words are the Killing event's."""

    state: ContainerState
    message: str


class RemoveContainer(Struct, frozen=True):
    """Forget an instance that nothing shows any more."""

    state: ContainerState


class Resize(Struct, frozen=True):
    """Take the resize step."""


class StopSandbox(Struct, frozen=True):
    """Everything in it has ended."""

    sandbox: str


class Wait(Struct, frozen=True):
    """Nothing until something happens, or until then."""

    until: Instant | None = None


class Ended(Struct, frozen=True):
    """All of the pod's containers are over, for good."""


Action = RunSandbox | StartContainer | StopContainer | RemoveContainer | Resize | StopSandbox | Wait | Ended


def next_action(s: Situation) -> Action:
    """The next step of a pod that is to run."""
    if s.held:
        return Wait()
    states = latest(s.sandbox)
    if is_over(s.pod, states):
        return next_end(s, "Stopping container {}")
    if s.sandbox is None or not s.sandbox.ready:
        return RunSandbox()
    kill = _to_kill(s, states)
    if kill is not None:
        return kill
    if any(state.state == "running" and state.container in s.stopping for state in states.values()):
        return Wait()
    waits: list[Instant] = []
    first = _initialise(s, states, waits)
    if first is not None:
        return first
    begun = next((c for c in s.pod.spec.containers if c.name in states and states[c.name].state == "created"), None)
    if begun is not None:  # its limits are those that it was created with
        return StartContainer(begun, states[begun.name].attempt, created=True)
    if s.resize:
        return Resize()
    if initialised(s.pod, states, s.now):
        for container in s.pod.spec.containers:
            started = _start(s, container, states.get(container.name), waits)
            if started is not None:
                return started
    stale = _superseded(s.sandbox)
    return RemoveContainer(stale) if stale is not None else Wait(min(waits, default=None))


def next_end(s: Situation, message: str) -> Action:
    """The next step of a pod that is to end: regular containers together, then sidecars one by one from the last."""
    if s.sandbox is None:
        return Ended()
    states = latest(s.sandbox)
    alive = [state for state in s.sandbox.containers if state.state != "exited"]
    sidecars = [c.name for c in s.pod.spec.init_containers if c.is_sidecar]
    first = [state for state in alive if state.name not in sidecars]
    for state in first:
        if state.container not in s.stopping:
            return StopContainer(state, message.format(state.name))
    if first:
        return Wait()
    for name in reversed(sidecars):
        sidecar = states.get(name)
        if sidecar is not None and sidecar.state != "exited":
            return Wait() if sidecar.container in s.stopping else StopContainer(sidecar, message.format(name))
    return StopSandbox(s.sandbox.sandbox) if s.sandbox.ready else Ended()


def is_over(pod: Pod, states: Mapping[str, ContainerState]) -> bool:
    """Have its regular containers ended for good, or can it never get to them?"""
    policy = pod.spec.restart_policy
    for container in pod.spec.init_containers:
        state = states.get(container.name)
        if policy == "Never" and not container.is_sidecar and state is not None and state.state == "exited" and state.exit_code:
            return not any(c.name in states for c in pod.spec.containers)
    if policy == "Always":
        return False
    found = [states.get(container.name) for container in pod.spec.containers]
    return all(state is not None and state.state == "exited" and (policy == "Never" or state.exit_code == 0) for state in found)


def initialised(pod: Pod, states: Mapping[str, ContainerState], now: Instant) -> bool:
    """Have all init containers done their part? Once a regular container exists, they have. A sidecar's is to have started."""
    if any(c.name in states for c in pod.spec.containers):
        return True
    for container in pod.spec.init_containers:
        state = states.get(container.name)
        if state is None:
            return False
        if container.is_sidecar:
            if state.state != "running" or starts_at(container, state) > now:
                return False
        elif state.state != "exited" or state.exit_code:
            return False
    return True


def _to_kill(s: Situation, states: Mapping[str, ContainerState]) -> StopContainer | None:
    containers = {c.name: c for c in [*s.pod.spec.init_containers, *s.pod.spec.containers]}
    for name, state in states.items():
        if state.state != "running" or state.container in s.stopping:
            continue
        container = containers.get(name)
        if container is None:
            return StopContainer(state, f"Stopping container {name}")
        if container.image != state.image:
            return StopContainer(state, f"Container {name} definition changed, will be restarted")
        if name in s.restarts:
            return StopContainer(state, f"Container {name} resize requires restart")
    return None


def _initialise(s: Situation, states: Mapping[str, ContainerState], waits: list[Instant]) -> Action | None:
    """The first init container or sidecar to start; a Wait if one must end first; None if nothing is to do here."""
    past = any(c.name in states for c in s.pod.spec.containers)
    for container in s.pod.spec.init_containers:
        state = states.get(container.name)
        if container.is_sidecar:
            if state is not None and state.state == "running":
                if past or starts_at(container, state) <= s.now:
                    continue
                return None  # its startup probe is still to succeed, and what follows needs it
            started = _start(s, container, state, waits)
            if started is not None:
                return started
            if not past:
                return None  # in back-off, and what follows needs it
        elif not past:
            if state is not None and state.state == "exited" and state.exit_code == 0:
                continue
            if state is not None and state.state == "running":
                return None
            return _start(s, container, state, waits, is_init=True)
    return None


def _start(
    s: Situation, container: Container, state: ContainerState | None, waits: list[Instant], *, is_init: bool = False
) -> StartContainer | None:
    if state is None:
        before = s.started_before.get(container.name)
        return StartContainer(container, 0 if before is None else before + 1, created=False, is_init=is_init)
    if state.state == "created":
        return StartContainer(container, state.attempt, created=True, is_init=is_init)
    if state.state == "running":
        return None
    if not container.is_sidecar and not may_restart(s.pod, state):
        return None
    at = s.not_before.get(container.name)
    if at is not None and at > s.now:
        waits.append(at)
        return None
    attempt = max(state.attempt, s.started_before.get(container.name, 0)) + 1
    return StartContainer(container, attempt, created=False, is_init=is_init)


def may_restart(pod: Pod, state: ContainerState) -> bool:
    """Does the pod's restartPolicy let a container that has exited start again?"""
    policy = pod.spec.restart_policy
    return policy == "Always" or (policy == "OnFailure" and state.exit_code != 0)


def _superseded(sandbox: SandboxState) -> ContainerState | None:
    """An instance older than the one before the newest: nobody shows it any more."""
    seen: dict[str, int] = {}
    for state in sorted(sandbox.containers, key=lambda state: -state.attempt):
        seen[state.name] = seen.get(state.name, 0) + 1
        if seen[state.name] > 2 and state.state == "exited":
            return state
    return None


def next_start(pod: Pod, sandbox: SandboxState | None, now: Instant) -> Instant | None:
    """When the next startup probe succeeds: what waits for that goes on, and it is told."""
    probed = with_startup_probe(pod)
    if not probed:
        return None
    states = latest(sandbox)
    starts = (starts_at(c, states.get(c.name)) for c in probed)
    return min((at for at in starts if at > now), default=None)


# ---------------------------------------------------------------- crash back-off


@dataclass(frozen=True, slots=True)
class CrashBackoff:
    """How long a container of this key waits after it ends; the key holds image and resources, so a resize starts afresh."""

    key: str
    wait_ns: int
    counted_at: Instant


def delay_until(entry: CrashBackoff | None, key: str, state: ContainerState) -> Instant | None:
    """When an exited container may start again; None: at once."""
    if entry is None or entry.key != key:
        return None
    return Instant((state.finished_at or entry.counted_at) + entry.wait_ns)


def counted(entry: CrashBackoff | None, key: str, now: Instant) -> CrashBackoff:
    """The entry after a restart at ``now``: 10 s, doubling up to 300 s; forgotten after twice that without one."""
    longest = seconds(BACKOFF_SECONDS_MAX)
    if entry is None or entry.key != key or now - entry.counted_at > 2 * longest:
        return CrashBackoff(key, seconds(BACKOFF_SECONDS), now)
    return CrashBackoff(key, min(longest, 2 * entry.wait_ns), now)
