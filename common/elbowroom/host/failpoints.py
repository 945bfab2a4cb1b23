"""Failpoints: what chaos has armed in this process, and when it fires."""

from dataclasses import dataclass

from elbowroom.host.spec import Arm
from elbowroom.machine.steps import matches


@dataclass(slots=True)
class _Armed:
    order: Arm
    left: int


def delay_seconds(action: str) -> float | None:
    """The span of ``delay:SECONDS``; None for an action that is no delay, ``ValueError`` for one that is no action."""
    if action in ("kill", "stop"):
        return None
    word, _, span = action.partition(":")
    if word != "delay" or not span:
        raise ValueError(f"an action is kill, stop or delay:SECONDS, not {action!r}")
    seconds = float(span)
    if not 0 <= seconds < 86_400:
        raise ValueError(f"a delay of {span} seconds")
    return seconds


class Failpoints:
    """The armed failpoints, by machine. Used by the loop's thread and the disks' writer threads."""

    def __init__(self) -> None:
        self._armed: dict[str, list[_Armed]] = {}

    def arm(self, order: Arm) -> None:
        """``ValueError`` if the order makes no sense."""
        delay_seconds(order.action)
        if order.hits < 1 or not order.label:
            raise ValueError("a failpoint needs a label and at least one hit")
        self._armed[order.machine] = [*self._armed.get(order.machine, ()), _Armed(order, order.hits)]

    def waits_for(self, machine: str) -> bool:
        """Is anything armed for ``machine``? Then its effects are carried out strictly one by one."""
        return machine in self._armed

    def hit(self, machine: str, step: str) -> Arm | None:
        """``machine`` reached ``step``: the order that fires now, which is done with."""
        armed = self._armed.get(machine)
        if armed is None:
            return None
        fired = None
        for one in armed:
            if matches(one.order.label, step):
                one.left -= 1
                if one.left == 0 and fired is None:
                    fired = one.order
        left = [one for one in armed if one.left > 0]
        if left:
            self._armed[machine] = left
        else:
            del self._armed[machine]
        return fired
