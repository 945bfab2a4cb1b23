"""How a node's kubelet is configured: the annotations ``elbowroom.dev/kubelet-config`` and ``elbowroom.dev/machine``.

KubeletConfiguration by upstream's field names. What upstream refuses at start is refused here, with its words where they are known:
such a node never becomes Ready.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.api.gates import ALIASES, DEFAULT_GATES, GateDependencyError, Profile, consistent
from elbowroom.api.quantity import QuantityError, format_bytes
from elbowroom.api.resources import Resources, add, of, subtract
from elbowroom.kubelet.managers.cpuset import CPUSet
from elbowroom.kubelet.managers.hints import POLICIES, SCOPES
from elbowroom.kubelet.managers.options import OptionError, check_with_machine, static_options
from elbowroom.kubelet.managers.settings import Settings
from elbowroom.kubelet.managers.static import Refused, StaticPolicy, reserved_of
from elbowroom.kubelet.managers.topology import Topology
from elbowroom.kubelet.sysctls import namespace_of, normalised
from elbowroom.machine import seconds

KUBELET_CONFIG = "elbowroom.dev/kubelet-config"
MACHINE = "elbowroom.dev/machine"

PREVIEWS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "5554": ("InPlacePodVerticalScalingExclusiveCPUs",),
    "6122A": ("InPlacePodVerticalScalingExclusiveCPUs", "CPUManagerPolicyAlphaOptions"),
    "6122B": ("InPlacePodVerticalScalingExclusiveCPUs", "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay"),
}
"""What a node's knob may say, and the gates that it turns on where the node's own do not say otherwise (row 11)."""
RETRY_FIRST_SECONDS, RETRY_SECONDS = 30.0, 180.0
RECONCILE_SECONDS = 10
NUMA_NODES_MAX = 8
CPUS_MAX = 8192
"""As many as Linux can be built for (NR_CPUS)."""
CORES = 4
CPU_POLICIES = ("none", "static")
SCALE_DELAY, SCALE_DELAY_SECONDS_MAX = "scale-delay-time", 10.0


class ConfigError(ValueError):
    """An unknown option or a value that upstream refuses."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The machine under the node."""

    sockets: int = 1
    numa_nodes_per_socket: int = 1
    cores_per_numa: int = CORES
    threads_per_core: int = 1
    cgroup_version: int = 2
    swap_bytes: int = 0
    told: bool = False
    """Somebody described it."""
    cores_per_uncore: int = 0
    """That share an uncore cache; 0: those of a NUMA node do."""

    @property
    def cpus(self) -> int:
        return self.sockets * self.numa_nodes_per_socket * self.cores_per_numa * self.threads_per_core

    @property
    def topology(self) -> Topology:
        return Topology.regular(
            sockets=self.sockets,
            numa_nodes_per_socket=self.numa_nodes_per_socket,
            cores_per_numa=self.cores_per_numa,
            threads_per_core=self.threads_per_core,
            cores_per_uncore=self.cores_per_uncore,
        )


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is withheld from pods: CPUs by number, amounts, and bytes of memory for hard eviction."""

    cpus: CPUSet
    resources: Resources
    eviction: int


@dataclass(frozen=True, slots=True)
class KubeletConfig:
    """What a kubelet decides by, besides its Node."""

    gates: Mapping[str, bool] = field(default_factory=dict)
    max_pods: int = 110
    reserved: Resources = field(default_factory=dict)
    """Of the node's capacity, withheld from pods."""
    static_cpu: bool = False
    static_memory: bool = False
    swap: bool = False
    """Burstable containers may swap (LimitedSwap on a machine that has some)."""
    cpu_quota: bool = True
    """CPU limits are enforced, by CFS quotas."""
    sysctls: tuple[str, ...] = ()
    """Kernel parameters that pods may set though they are not safe; names, or prefixes that end in ``*``."""
    preview: str = "none"
    retry_first_ns: int = seconds(RETRY_FIRST_SECONDS)
    retry_ns: int = seconds(RETRY_SECONDS)
    scale_delay_ns: int = 0
    """How long containers have to leave exclusive CPUs; in preview 6122A."""
    hardware: Hardware = Hardware()
    static_pod_path: str = ""
    """Where the manifests of static pods are; empty: there are none."""
    managers: Settings = field(default_factory=Settings)
    reconcile_ns: int = seconds(RECONCILE_SECONDS)
    """How often running containers are brought to the CPUs that they are to have."""

    def on(self, gate: str) -> bool:
        """Is the gate on for this kubelet?"""
        return self.gates.get(ALIASES.get(gate, gate), False)


# ---------------------------------------------------------------- fields

_EXTRA_GATES = {"CPUManagerPolicyBetaOptions": True, "DisableCPUQuotaWithExclusiveCPUs": True, "NodeSwap": True}
_UNREAD_TEXT = """
address apiVersion authentication authorization cgroupRoot cgroupsPerQOS clusterDNS clusterDomain
configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize containerRuntimeEndpoint contentType
cpuCFSQuotaPeriod crashLoopBackOff enableControllerAttachDetach
enableDebuggingHandlers enableServer enforceNodeAllocatable eventBurst eventRecordQPS evictionMaxPodGracePeriod
evictionMinimumReclaim evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod fileCheckFrequency
hairpinMode healthzBindAddress healthzPort httpCheckFrequency imageGCHighThresholdPercent imageGCLowThresholdPercent
imageMaximumGCAge imageMinimumGCAge imageServiceEndpoint kernelMemcgNotification kind kubeAPIBurst kubeAPIQPS
kubeReservedCgroup kubeletCgroups logging makeIPTablesUtilChains maxOpenFiles maxParallelImagePulls memoryThrottlingFactor
mergeDefaultEvictionSettings nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR
podPidsLimit podsPerCore port protectKernelDefaults providerID qosReserved readOnlyPort registerNode registerWithTaints
registryBurst registryPullQPS resolvConf rotateCertificates runOnce runtimeRequestTimeout seccompDefault
serializeImagePulls serverTLSBootstrap shutdownGracePeriod shutdownGracePeriodByPodPriority
shutdownGracePeriodCriticalPods singleProcessOOMKill staticPodURL staticPodURLHeader
streamingConnectionIdleTimeout syncFrequency systemCgroups systemReservedCgroup tlsCertFile tlsCipherSuites tlsMinVersion
tlsPrivateKeyFile volumePluginDir volumeStatsAggPeriod
"""
_UNREAD = frozenset(_UNREAD_TEXT.split())
"""Fields of KubeletConfiguration that are accepted and change nothing here."""


def parse(annotations: Mapping[str, str], profile: Profile, capacity: Resources | None = None) -> KubeletConfig:
    """The configuration in a Node's annotations; ``ConfigError`` for what upstream refuses.

    A machine that nobody described has as many CPUs as the Node's ``capacity`` says, as far as there are machines with so many, on
    one NUMA node.
    """
    hardware = _hardware(_json(annotations, MACHINE), cores=min(-(-(capacity or {}).get("cpu", 0) // 1000) or CORES, CPUS_MAX))
    given = _json(annotations, KUBELET_CONFIG)
    own = _own(given.pop("elbowroom", {}))
    gates = _gates(given.pop("featureGates", {}), profile, PREVIEWS[own.get("preview", "none")])
    take = _Taker(given)
    take.one_of("cgroupDriver", "systemd", ("cgroupfs", "systemd"))
    if take.flag("failCgroupV1", True) and hardware.cgroup_version == 1:
        raise ConfigError(
            "kubelet is configured to not run on a host using cgroup v1. "
            "cgroup v1 support is unsupported and will be removed in a future release"
        )
    if take.flag("failSwapOn", True) and hardware.swap_bytes:
        raise ConfigError("running with swap on is not supported, please disable swap or set --fail-swap-on flag to false")
    swap_behaviour = _swap_behaviour(take.mapping("memorySwap"))
    cpu_quota = take.flag("cpuCFSQuota", True)
    sysctls = take.texts("allowedUnsafeSysctls")
    for known in (normalised(name).partition("*")[0] for name in sysctls):
        if not namespace_of(known):
            raise ConfigError(f'the sysctls "{known}" are not known to be namespaced')
    kube, system = take.resources("kubeReserved"), take.resources("systemReserved")
    eviction = _eviction(take.mapping("evictionHard"))
    reserved_cpus = cpu_set(take.text("reservedSystemCPUs"))
    max_pods = take.number("maxPods", 110)
    static_pod_path = take.text("staticPodPath")
    static_cpu = given.get("cpuManagerPolicy") == "static"
    by_default = profile.previews and static_cpu and gates["InPlacePodVerticalScalingExclusiveCPUs"]
    preview = own.get("preview") or ("6122A" if by_default else "none")
    scale_delay = _scale_delay(given.get("cpuManagerPolicyOptions"), gates) if preview == "6122A" else 0
    reserved = add(kube, system)
    reconcile = duration(take.text("cpuManagerReconcilePeriod") or f"{RECONCILE_SECONDS}s")
    kept = _Kept(CPUSet.from_iterable(reserved_cpus), reserved, eviction)
    managers = _managers(take, gates, preview, hardware, kept)
    if reserved_cpus:
        reserved = {**reserved, "cpu": 1000 * len(reserved_cpus)}
    take.nothing_else()
    retry = own.get("periodicResizeRetry")
    return KubeletConfig(
        gates=gates,
        max_pods=max_pods,
        reserved=add(reserved, {"memory": eviction} if eviction else {}),
        static_cpu=static_cpu,
        static_memory=managers.memory is not None,
        swap=swap_behaviour == "LimitedSwap" and hardware.swap_bytes > 0 and hardware.cgroup_version == 2,
        cpu_quota=cpu_quota,
        sysctls=sysctls,
        preview=preview,
        retry_first_ns=seconds(RETRY_FIRST_SECONDS) if retry is None else min(seconds(RETRY_FIRST_SECONDS), duration(retry)),
        retry_ns=seconds(RETRY_SECONDS) if retry is None else min(seconds(RETRY_SECONDS), duration(retry)),
        scale_delay_ns=scale_delay,
        hardware=hardware,
        static_pod_path=static_pod_path,
        managers=managers,
        reconcile_ns=reconcile or seconds(RECONCILE_SECONDS),
    )


def allocatable_of(capacity: Resources, reserved: Resources) -> Resources:
    """What is left of a capacity for pods."""
    return {name: max(0, value) for name, value in subtract(capacity, reserved).items() if name in capacity}


def _json(annotations: Mapping[str, str], key: str) -> dict[str, Any]:
    text = annotations.get(key, "")
    if not text.strip():
        return {}
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as why:
        raise ConfigError(f"{key}: {why}") from why
    if not isinstance(found, dict):
        raise ConfigError(f"{key}: an object is expected")
    return found


class _Taker:
    """Takes known fields out of an object, so that what is left is unknown."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def one_of(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        value = self._given.pop(name, default)
        if value not in choices:
            raise ConfigError(
                f'unknown policy: "{value}"' if name.endswith("Policy") else f"{name}: {value!r} is none of {choices}"
            )
        return str(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self._given.pop(name, default)
        if not isinstance(value, bool):
            raise ConfigError(f"{name}: true or false is expected, got {value!r}")
        return value

    def number(self, name: str, default: int) -> int:
        value = self._given.pop(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ConfigError(f"{name}: a number is expected, got {value!r}")
        return value

    def text(self, name: str) -> str:
        value = self._given.pop(name, "")
        if not isinstance(value, str):
            raise ConfigError(f"{name}: a string is expected, got {value!r}")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._given.pop(name, None) or {}
        if not isinstance(value, dict):
            raise ConfigError(f"{name}: an object is expected, got {value!r}")
        return value

    def resources(self, name: str) -> Resources:
        return _quantities(name, self.mapping(name))

    def memory_zones(self, name: str) -> dict[int, Resources]:
        value = self._given.pop(name, None) or []
        if not isinstance(value, list):
            raise ConfigError(f"{name}: a list is expected, got {value!r}")
        found: dict[int, Resources] = {}
        for zone in value:
            limits = zone.get("limits") if isinstance(zone, dict) else None
            node = zone.get("numaNode", 0) if isinstance(zone, dict) else None
            if not isinstance(limits, dict) or not isinstance(node, int) or node < 0:
                raise ConfigError(f"{name}: each entry needs numaNode and limits")
            found[node] = add(found.get(node, {}), _quantities(name, limits))
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._given.pop(name, None) or []
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ConfigError(f"{name}: a list of strings is expected, got {value!r}")
        return tuple(value)

    def nothing_else(self) -> None:
        unknown = sorted(set(self._given) - _UNREAD)
        if unknown:
            raise ConfigError(f'strict decoding error: unknown field "{unknown[0]}"')


def _quantities(name: str, given: Mapping[str, Any]) -> Resources:
    try:
        return of({str(key): str(value) for key, value in given.items()})
    except QuantityError as why:
        raise ConfigError(f"{name}: {why}") from why


_SHAPE = {"sockets", "numaNodesPerSocket", "coresPerNuma", "threadsPerCore"}


def _hardware(given: dict[str, Any], cores: int) -> Hardware:
    told = bool(given)
    take = _Taker(given)
    swap = given.pop("swap", "0")
    made = Hardware(
        sockets=take.number("sockets", 1),
        numa_nodes_per_socket=take.number("numaNodesPerSocket", 1),
        cores_per_numa=take.number("coresPerNuma", CORES if _SHAPE & given.keys() else cores),
        threads_per_core=take.number("threadsPerCore", 1),
        cgroup_version=take.number("cgroupVersion", 2),
        swap_bytes=_quantities("swap", {"memory": swap})["memory"],
        told=told,
        cores_per_uncore=take.number("coresPerUncoreCache", 0),
    )
    if given:
        raise ConfigError(f'{MACHINE}: unknown field "{min(given)}"')
    if made.cgroup_version not in (1, 2):
        raise ConfigError(f"{MACHINE}: cgroupVersion is 1 or 2, not {made.cgroup_version}")
    if made.cpus < 1:
        raise ConfigError(f"{MACHINE}: a machine without CPUs")
    if made.cpus > CPUS_MAX:
        raise ConfigError(f"{MACHINE}: a machine has at most {CPUS_MAX} CPUs, not {made.cpus}")
    return made


def _own(given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise ConfigError("elbowroom: an object of strings is expected")
    unknown = sorted(set(given) - {"periodicResizeRetry", "preview"})
    if unknown:
        raise ConfigError(f'elbowroom: unknown field "{unknown[0]}"')
    if given.get("preview", "none") not in PREVIEWS:
        raise ConfigError(f"elbowroom.preview: {given['preview']!r} is none of {', '.join(PREVIEWS)}")
    if "periodicResizeRetry" in given and duration(given["periodicResizeRetry"]) <= 0:
        raise ConfigError("elbowroom.periodicResizeRetry: must be positive")
    return given


def _gates(given: Any, profile: Profile, implied: Sequence[str]) -> dict[str, bool]:
    if not isinstance(given, dict):
        raise ConfigError("featureGates: an object is expected")
    gates = {**_EXTRA_GATES, **DEFAULT_GATES, **profile.gates, **dict.fromkeys(implied, True)}
    for name, value in given.items():
        known = ALIASES.get(name, name)
        if known not in gates:
            raise ConfigError(f"unrecognized feature gate: {name}")
        if not isinstance(value, bool):
            raise ConfigError(f"featureGates.{name}: true or false is expected, got {value!r}")
        gates[known] = value
    try:
        return consistent(gates, given)
    except GateDependencyError as why:
        raise ConfigError(str(why)) from why


def _swap_behaviour(given: dict[str, Any]) -> str:
    behaviour = given.pop("swapBehavior", "NoSwap") or "NoSwap"
    if given or behaviour not in ("NoSwap", "LimitedSwap"):
        raise ConfigError(f"memorySwap: swapBehavior is NoSwap or LimitedSwap, got {behaviour!r}")
    return str(behaviour)


def _eviction(given: Mapping[str, Any]) -> int:
    """Bytes of memory kept free by hard eviction; a percentage is upstream's too and reserves nothing here."""
    threshold = str(given.get("memory.available", "0"))
    return 0 if threshold.endswith("%") else _quantities("evictionHard", {"memory": threshold})["memory"]


def _managers(take: "_Taker", gates: Mapping[str, bool], preview: str, hardware: Hardware, kept: _Kept) -> Settings:
    """The CPU, memory and topology managers; what they refuse, in upstream's words."""
    topology = hardware.topology
    policy, cpu_policy = (
        take.one_of("topologyManagerPolicy", "none", POLICIES),
        take.one_of("cpuManagerPolicy", "none", CPU_POLICIES),
    )
    scope = take.one_of("topologyManagerScope", "container", SCOPES)
    _check_topology_options(take.mapping("topologyManagerPolicyOptions"), policy, topology)
    given = take.mapping("cpuManagerPolicyOptions")
    if preview == "6122A":
        given.pop(SCALE_DELAY, None)
    zones, memory_policy = take.memory_zones("reservedMemory"), take.one_of("memoryManagerPolicy", "None", ("None", "Static"))
    try:
        cpu = None
        if cpu_policy == "none" and given:
            shown = " ".join(f"{name}:{given[name]}" for name in sorted(given))
            raise ConfigError(f"new none policy error: None policy: received unsupported options=map[{shown}]")
        if cpu_policy == "static":
            options = static_options(given, gates)
            check_with_machine(options, topology, policy)
            found = reserved_of(topology, kept.cpus, kept.resources.get("cpu", 0), options)
            if isinstance(found, Refused):
                raise ConfigError(found.message)
            cpu = StaticPolicy(topology, found, options)
    except OptionError as why:
        raise ConfigError(str(why)) from why
    if memory_policy == "Static":
        _check_reserved_memory(zones, kept, topology)
    return Settings(
        topology=topology,
        cpu=cpu,
        memory=zones if memory_policy == "Static" else None,
        topology_policy=policy,
        scope=scope,
        pod_level=gates["PodLevelResourceManagers"] and gates["PodLevelResources"],
        keeps_originals=preview != "none",
    )


def _check_topology_options(options: Mapping[str, Any], policy: str, topology: Topology) -> None:
    most = NUMA_NODES_MAX
    for name, value in options.items():
        if name == "max-allowable-numa-nodes":
            if not str(value).isdecimal():
                raise ConfigError(
                    f'unable to convert policy option to integer "{name}": strconv.Atoi: parsing "{value}": invalid syntax'
                )
            most = int(value)
            if most < NUMA_NODES_MAX:
                raise ConfigError(f'the minimum value of "{name}" should not be less than {NUMA_NODES_MAX}')
        elif name != "prefer-closest-numa-nodes":
            raise ConfigError(f'unknown Topology Manager Policy option: "{name}"')
        elif str(value) not in ("true", "false"):
            raise ConfigError(f'bad value for option "{name}": strconv.ParseBool: parsing "{value}": invalid syntax')
    if policy != "none" and len(topology.numas) > most:
        raise ConfigError(f"unsupported on machines with more than {most} NUMA Nodes")


def _check_reserved_memory(zones: Mapping[int, Resources], kept: _Kept, topology: Topology) -> None:
    total: dict[str, int] = {}
    for node, limits in zones.items():
        if node not in topology.numas:
            raise ConfigError(
                f"the reserved memory configuration references a NUMA node {node} that does not exist on this machine"
            )
        total = add(total, limits)
    wanted = add(kept.resources, {"memory": kept.eviction})
    kinds = [name for name in sorted({*total, *wanted}) if name == "memory" or name.startswith("hugepages-")]
    for name in kinds:
        if total.get(name, 0) != wanted.get(name, 0):
            raise ConfigError(
                f'the total amount "{format_bytes(total.get(name, 0))}" of type "{name}" is not equal to the value '
                f'"{format_bytes(wanted.get(name, 0))}" determined by Node Allocatable feature'
            )
    if not total.get("memory"):
        raise ConfigError("[memorymanager] you should specify the system reserved memory")


def _scale_delay(options: Any, gates: Mapping[str, bool]) -> int:
    """SD-2: the delay for the whole node, in nanoseconds; an alpha option."""
    value = options.get(SCALE_DELAY) if isinstance(options, dict) else None
    if value is None:
        return 0
    delay = duration(str(value))
    if not 0 <= delay <= seconds(SCALE_DELAY_SECONDS_MAX):
        raise ConfigError(f"{SCALE_DELAY}: {value} is not in [0s, 10s]")
    if not gates["CPUManagerPolicyAlphaOptions"]:
        raise ConfigError(f'CPU Manager Policy Alpha-level Options not enabled, but option "{SCALE_DELAY}" provided')
    if delay and not gates["InPlacePodVerticalScalingExclusiveCPUs"]:
        raise ConfigError(f"{SCALE_DELAY} needs the gate InPlacePodVerticalScalingExclusiveCPUs")
    return delay


_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000}
_PART = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?(ns|us|µs|ms|s|m|h)")


def duration(text: str) -> int:
    """A Go duration (``1m30s``, ``1.5s``) in nanoseconds; ``ConfigError`` if it is none."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text)
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest):
        found = _PART.match(rest, at)
        if found is None:
            break
        whole, fraction, unit = found.groups()
        total += int(whole) * _UNITS[unit]
        if fraction:
            total += int(fraction) * _UNITS[unit] // 10 ** len(fraction)
        at = found.end()
    if not rest or at < len(rest):
        raise ConfigError(f'time: invalid duration "{text}"')
    return sign * total


def cpu_set(text: str) -> tuple[int, ...]:
    """The CPUs of a Linux list (``0-3,8``), ascending; ``ConfigError`` if it is none."""
    found: set[int] = set()
    for part in text.split(",") if text else []:
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ConfigError(f'reservedSystemCPUs: unable to parse "{text}"')
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(found))
