"""The options of the static CPU policy, and which of them exclude each other (XC-15 to XC-18)."""

from collections.abc import Mapping
from dataclasses import dataclass

from elbowroom.kubelet.managers.topology import Topology


class OptionError(ValueError):
    """Upstream refuses to start with these options; the text is its own."""


@dataclass(frozen=True, slots=True)
class StaticOptions:
    """What shapes the static policy's choices; each field is an option of cpuManagerPolicyOptions."""

    full_pcpus_only: bool = False
    distribute_cpus_across_numa: bool = False
    align_by_socket: bool = False
    distribute_cpus_across_cores: bool = False
    strict_cpu_reservation: bool = False
    prefer_align_cpus_by_uncorecache: bool = False


GATES: Mapping[str, str] = {
    "full-pcpus-only": "",
    "strict-cpu-reservation": "",
    "prefer-align-cpus-by-uncorecache": "",
    "distribute-cpus-across-numa": "CPUManagerPolicyBetaOptions",
    "align-by-socket": "CPUManagerPolicyAlphaOptions",
    "distribute-cpus-across-cores": "CPUManagerPolicyAlphaOptions",
}
"""The gate that each option needs; none for a stable one."""

_EXCLUSIVE = (
    ("full-pcpus-only", "distribute-cpus-across-cores"),
    ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


def static_options(given: Mapping[str, object], gates: Mapping[str, bool]) -> StaticOptions:
    """The options as set; ``OptionError`` for what upstream refuses."""
    chosen: dict[str, bool] = {}
    for name, value in given.items():
        if name not in GATES:
            raise OptionError(f'unknown CPU Manager Policy option: "{name}"')
        gate = GATES[name]
        if gate and not gates.get(gate, False):
            level = "Alpha" if "Alpha" in gate else "Beta"
            raise OptionError(f'CPU Manager Policy {level}-level Options not enabled, but option "{name}" provided')
        if str(value) not in (*_TRUE, *_FALSE):
            raise OptionError(f'bad value for option "{name}": strconv.ParseBool: parsing "{value}": invalid syntax')
        chosen[name] = str(value) in _TRUE
    for one, other in _EXCLUSIVE:
        if chosen.get(one) and chosen.get(other):
            raise OptionError(f"static policy options {one} and {other} can not be used at the same time")
    return StaticOptions(**{name.replace("-", "_"): on for name, on in chosen.items()})


def check_with_machine(options: StaticOptions, topology: Topology, topology_policy: str) -> None:
    """``OptionError`` if the options can't be used on this machine or with this topology manager."""
    if not options.align_by_socket:
        return
    if topology_policy == "single-numa-node":
        raise OptionError("Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option")
    if len(topology.sockets) > len(topology.numas):
        raise OptionError("Align by socket is not compatible with hardware where number of sockets are more than number of NUMA")
