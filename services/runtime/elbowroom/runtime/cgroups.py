"""What the kernel makes of a write to a cgroup: floors, clamps, rounding, and what it refuses.

The two hierarchies differ where a resize can feel it. v1 refuses a CPU quota above the parent's (or a parent's below its
children's) with EINVAL and a memory limit below what is in use with EBUSY; v2 takes both: a quota is then capped by the
parent's, and memory is reclaimed and, since anonymous memory without swap cannot be, somebody in the group is OOM killed.
Both round memory down to whole pages and refuse a quota under 1 ms. The systemd driver keeps CPU quotas in whole percents of a
CPU, so they are rounded up to 10 ms a second. What may be swapped out, a kubelet says: on v2 by ``memory.swap.max``, on v1 by a
limit of memory and swap together; until it does, nothing is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from elbowroom.wire.cri import LinuxResources

SHARES_MIN, SHARES_MAX = 2, 262144
QUOTA_MIN = 1000
PERIOD_MIN, PERIOD_MAX = 1000, 1_000_000
PAGE = 4096
UNLIMITED = -1


class Cgroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """The values in force; quota and memory -1 are no limit, an empty cpuset is the parent's."""

    shares: int = 1024
    quota: int = UNLIMITED
    period: int = 100_000
    memory: int = UNLIMITED
    cpuset: str = ""
    mems: str = ""
    swap: int = 0
    """Bytes that may be swapped out; -1 is no limit."""

    def as_resources(self) -> LinuxResources:
        """The read-back. Shares are exact on v2 too, though ``cpu.weight`` keeps them less finely."""
        return LinuxResources(self.shares, self.quota, self.period, self.memory, self.cpuset, self.mems)

    @property
    def bandwidth(self) -> float | None:
        """CPUs that the quota amounts to; None without a limit."""
        return None if self.quota < 0 else self.quota / self.period


@dataclass(frozen=True, slots=True)
class Refused:
    """The write failed and changed nothing; ``message`` is as runc words it."""

    errno: str
    message: str


_TEXT = {"EINVAL": "invalid argument", "EBUSY": "device or resource busy"}


def weight_of(shares: int) -> int:
    """``cpu.weight`` for ``cpu.shares``: [2, 262144] laid linearly onto [1, 10000], as runc and the kubelet do."""
    return 1 + (shares - SHARES_MIN) * 9999 // (SHARES_MAX - SHARES_MIN)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A node's cgroup tree. ``version`` is 1 or 2, ``driver`` is ``cgroupfs`` or ``systemd``."""

    version: int = 2
    driver: str = "cgroupfs"

    def write(
        self,
        group: Cgroup,
        wanted: LinuxResources,
        *,
        path: str,
        usage: int = 0,
        parent: Cgroup | None = None,
        children: Sequence[Cgroup] = (),
    ) -> Cgroup | Refused:
        """``group`` after writing the values that are not 0, or why the kernel refuses. ``usage`` is the memory charged to it."""
        shares = min(SHARES_MAX, max(SHARES_MIN, wanted.cpu_shares)) if wanted.cpu_shares else group.shares
        period = wanted.cpu_period or group.period
        quota = self._quota(wanted.cpu_quota, period) if wanted.cpu_quota else group.quota
        memory = _memory(wanted.memory_limit_bytes) if wanted.memory_limit_bytes else group.memory
        places = wanted.cpuset_cpus or group.cpuset, wanted.cpuset_mems or group.mems
        swap = self._swap(group, wanted, memory)
        if swap is None:
            return self._refused("EINVAL", path, "", "memory.swap.max", wanted.memory_swap_max)
        new = Cgroup(shares, quota, period, memory, *places, swap)
        return self._cpu_refusal(group, new, path, parent, children) or self._memory_refusal(group, new, path, usage) or new

    def _quota(self, quota: int, period: int) -> int:
        if quota < 0:
            return UNLIMITED
        if self.driver == "systemd" and (per_second := quota * 1_000_000 // period) % 10_000:
            return (per_second + 10_000 - per_second % 10_000) * period // 1_000_000
        return quota

    def _swap(self, group: Cgroup, wanted: LinuxResources, memory: int) -> int | None:
        """How much may be swapped out; None if what is written there is no amount."""
        if self.version == 1:
            together = wanted.memory_swap_limit_bytes
            return max(0, together - memory) if together > 0 and memory >= 0 else group.swap
        text = wanted.memory_swap_max
        if text in ("", "max"):
            return UNLIMITED if text else group.swap
        return int(text) - int(text) % PAGE if text.isascii() and text.isdecimal() else None

    def _cpu_refusal(
        self, old: Cgroup, new: Cgroup, path: str, parent: Cgroup | None, children: Sequence[Cgroup]
    ) -> Refused | None:
        if (new.quota, new.period) == (old.quota, old.period):
            return None
        invalid = not PERIOD_MIN <= new.period <= PERIOD_MAX or 0 <= new.quota < QUOTA_MIN
        if self.version == 1 and new.bandwidth is not None:
            above_parent = parent is not None and parent.bandwidth is not None and new.bandwidth > parent.bandwidth
            invalid = invalid or above_parent or any(c.bandwidth is not None and c.bandwidth > new.bandwidth for c in children)
        if not invalid:
            return None
        if self.version == 1:
            return self._refused("EINVAL", path, "cpu,cpuacct", "cpu.cfs_quota_us", str(new.quota))
        return self._refused("EINVAL", path, "", "cpu.max", f"{'max' if new.quota < 0 else new.quota} {new.period}")

    def _memory_refusal(self, old: Cgroup, new: Cgroup, path: str, usage: int) -> Refused | None:
        if self.version == 1 and new.memory != old.memory and 0 <= new.memory < usage:
            return self._refused("EBUSY", path, "memory", "memory.limit_in_bytes", str(new.memory))
        return None

    def _refused(self, errno: str, path: str, controller: str, file: str, value: str) -> Refused:
        place = "/".join(part for part in ("/sys/fs/cgroup", controller, path, file) if part)
        return Refused(errno, f'failed to write "{value}": write {place}: {_TEXT[errno]}')


def _memory(limit: int) -> int:
    return UNLIMITED if limit < 0 else limit - limit % PAGE
