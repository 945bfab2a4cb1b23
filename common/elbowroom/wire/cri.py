"""What a kubelet asks of its container runtime, and of the kernel that the runtime stands for.

The shapes are CRI's (``runtime/v1``), trimmed to what resizing needs; each call is a method on the bus with the request below
as body. The pod's own cgroup is written by the kubelet, not through CRI; since our kernel lives in the runtime process,
``PodCgroup`` calls go there too. Methods and their replies:

=========================  ===========================  ==========================================================
method                     body                         reply body
=========================  ===========================  ==========================================================
``RunPodSandbox``          RunPodSandbox                SandboxId
``StopPodSandbox``         SandboxId                    (empty) all its containers are stopped at once
``RemovePodSandbox``       SandboxId                    (empty)
``CreateContainer``        CreateContainer              ContainerId
``StartContainer``         ContainerId                  (empty) answered when the container runs
``StopContainer``          StopContainer                (empty) answered at once; the end is told by ``events``
``RemoveContainer``        ContainerId                  (empty)
``UpdateContainerResources``    UpdateContainerResources     (empty) answered when applied (``resizeSeconds`` later)
``UpdatePodSandboxResources``   UpdatePodSandboxResources    (empty), or UNIMPLEMENTED
``UpdateWorkload``         UpdateWorkload               (empty) ours: the pod's behaviour changed
``ListAll``                (empty)                      RuntimeState
``PodState``               SandboxId                    RuntimeState with that one sandbox; gives up what was asked before
``SetPodCgroup``           SetPodCgroup                 (empty) ours: the kubelet writes the pod's cgroup
``PodStats``               SandboxId                    PodStats
``events``                 (empty); a stream            StreamEvents whose ``object`` is a ContainerEvent (JSON)
=========================  ===========================  ==========================================================

A refusal is a ``Reply`` with a code and the runtime's words in ``message``. Every call is idempotent: a kubelet that does
not know whether one happened repeats it. Sandbox and container ids are made by the kubelet from pod uid, container name
and attempt, so a repeated create is the same one.

Of what one caller asks about a sandbox the newest counts: a change that arrives behind something newer is refused, and ``PodState``
ends with CANCELLED what the caller asked for before and what has not come into force. So who does not know how a call ended looks,
and what it sees is final. ``ListAll`` ends so what the caller's earlier lives asked for.
"""

import msgspec


class LinuxResources(msgspec.Struct, frozen=True, omit_defaults=True):
    """LinuxContainerResources: 0 leaves a value as it is (RC-115); a quota of -1 is no limit; memory 0 at create is no limit."""

    cpu_shares: int = 0
    cpu_quota: int = 0
    cpu_period: int = 0
    memory_limit_bytes: int = 0
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    oom_score_adj: int = 0
    memory_swap_limit_bytes: int = 0
    """Memory and swap together; on cgroup v1."""
    memory_swap_max: str = ""
    """What CRI has as ``unified["memory.swap.max"]``: a number of bytes, or ``max``; on cgroup v2."""
    hugepages_1gb_bytes: int = 0
    hugepages_2mb_bytes: int = 0
    """CRI's ``hugepage_limits``; here 0 is none, since it is told of each page size every time."""

    def updated(self, new: "LinuxResources") -> "LinuxResources":
        """These after an update with ``new``: what is 0 or empty there stays as it is (RC-115)."""
        return LinuxResources(
            new.cpu_shares or self.cpu_shares,
            new.cpu_quota or self.cpu_quota,
            new.cpu_period or self.cpu_period,
            new.memory_limit_bytes or self.memory_limit_bytes,
            new.cpuset_cpus or self.cpuset_cpus,
            new.cpuset_mems or self.cpuset_mems,
            new.oom_score_adj or self.oom_score_adj,
            new.memory_swap_limit_bytes or self.memory_swap_limit_bytes,
            new.memory_swap_max or self.memory_swap_max,
            new.hugepages_1gb_bytes or self.hugepages_1gb_bytes,
            new.hugepages_2mb_bytes or self.hugepages_2mb_bytes,
        )

    @property
    def places_only(self) -> bool:
        """Does it say only where to run?"""
        return self == LinuxResources(cpuset_cpus=self.cpuset_cpus, cpuset_mems=self.cpuset_mems)


class SandboxId(msgspec.Struct, frozen=True):
    sandbox: str


class ContainerId(msgspec.Struct, frozen=True):
    container: str


class RunPodSandbox(msgspec.Struct, frozen=True, omit_defaults=True):
    sandbox: str
    uid: str
    name: str
    namespace: str
    workload: str = ""
    """The pod's ``elbowroom.dev/workload`` annotation as it stands."""
    pod_cgroup: LinuxResources = LinuxResources()


class CreateContainer(msgspec.Struct, frozen=True, omit_defaults=True):
    container: str
    sandbox: str
    name: str
    attempt: int
    image: str
    resources: LinuxResources
    memory_request_bytes: int = 0
    is_init: bool = False
    """An ordinary init container: unless its workload says otherwise it ends by itself with exit code 0."""


class StopContainer(msgspec.Struct, frozen=True):
    """SIGTERM, and SIGKILL after ``timeout_seconds``; 0 kills at once."""

    container: str
    timeout_seconds: float


class UpdateContainerResources(msgspec.Struct, frozen=True):
    container: str
    resources: LinuxResources


class UpdatePodSandboxResources(msgspec.Struct, frozen=True):
    """RC-116: resources less the pod's overhead, and the overhead."""

    sandbox: str
    overhead: LinuxResources
    resources: LinuxResources


class UpdateWorkload(msgspec.Struct, frozen=True):
    sandbox: str
    workload: str


class SetPodCgroup(msgspec.Struct, frozen=True):
    """Write the values that are not 0 into the pod's cgroup; memory -1 is no limit."""

    sandbox: str
    resources: LinuxResources


class ContainerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A container as the runtime knows it; times are ns since the epoch, 0 = not yet."""

    container: str
    sandbox: str
    name: str
    attempt: int
    image: str
    state: str
    """``created``, ``running`` or ``exited``."""
    resources: LinuxResources
    created_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    """``Completed``, ``Error`` or ``OOMKilled`` once exited."""
    cgroup: LinuxResources = LinuxResources()
    """What the container's cgroup reads as, rounding and all; ``resources`` is what the runtime was last told. -1: no limit."""


class SandboxState(msgspec.Struct, frozen=True, omit_defaults=True):
    sandbox: str
    uid: str
    name: str
    namespace: str
    ready: bool
    created_at: int
    pod_cgroup: LinuxResources
    containers: tuple[ContainerState, ...] = ()


class RuntimeState(msgspec.Struct, frozen=True, omit_defaults=True):
    sandboxes: tuple[SandboxState, ...] = ()


class ContainerStats(msgspec.Struct, frozen=True):
    name: str
    memory_usage_bytes: int
    cpu_usage_milli: int


class PodStats(msgspec.Struct, frozen=True):
    """Usage of a pod and of its running containers; the pod's is the sum."""

    memory_usage_bytes: int
    containers: tuple[ContainerStats, ...]


class ContainerEvent(msgspec.Struct, frozen=True):
    """Something happened to a container of that sandbox: look at ``PodState``. ``kind``: created, started, exited, updated."""

    sandbox: str
    container: str
    kind: str
