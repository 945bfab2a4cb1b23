"""Which kernel parameters a pod may set (RC-73): those that concern nobody else, and those that its kubelet is told to allow."""

from collections.abc import Sequence

from elbowroom.api.objects import Pod
from elbowroom.kubelet.admission import Refusal

SAFE = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
)


def refusal(pod: Pod, unsafe: Sequence[str]) -> Refusal | None:
    """Why the pod may not be here for what it sets. ``unsafe`` are names, or prefixes that end in ``*``, that are allowed too."""
    for sysctl in pod.spec.security_context.sysctls if pod.spec.security_context is not None else ():
        why = _forbidden(pod, normalised(sysctl.name), [*SAFE, *unsafe])
        if why:
            return Refusal("SysctlForbidden", f"forbidden sysctl: {why}")
    return None


def _forbidden(pod: Pod, name: str, allowed: Sequence[str]) -> str:
    if not any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in map(normalised, allowed)):
        return f'"{name}" not allowlisted'
    shared = {"Net": pod.spec.host_network, "IPC": pod.spec.host_ipc}
    space = namespace_of(name)
    return f'"{name}" not allowed with host {space} enabled' if shared.get(space) else ""


def normalised(name: str) -> str:
    """With dots where slashes separate, and the other way round: both ways of writing are one name."""
    first = min((at for at in (name.find("."), name.find("/")) if at >= 0), default=-1)
    return name.translate(str.maketrans("./", "/.")) if first >= 0 and name[first] == "/" else name


def namespace_of(name: str) -> str:
    """The kernel namespace that keeps it, ``Net`` or ``IPC``; empty if none is known to."""
    if name.startswith("net."):
        return "Net"
    return "IPC" if name.startswith(("fs.mqueue.", "kernel.shm", "kernel.msg")) or name == "kernel.sem" else ""
