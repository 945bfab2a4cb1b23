"""Clients in the simulated world who do what a scenario says: one request after the other, with pauses, many at a time."""

from collections import Counter
from dataclasses import dataclass

from elbowroom.deploy.chaos.workload import AGAIN, WAIT_SECONDS, Ask, Doing, Wait, is_write
from elbowroom.sim.client import Client, Pending
from elbowroom.sim.world import World
from elbowroom.wire import ApiResponse

TIMEOUT_SECONDS = 3.0


@dataclass(slots=True)
class _Actor:
    client: Client
    doing: Doing
    goes_on: bool
    """It comes to its own end, also when it is time to stop: then it waits no more."""
    turn: int = 0
    waits: bool = False
    asked: Ask | None = None
    pending: Pending | None = None


class Actors:
    """All who act in a world. ``answered`` counts the answers to users' writes by status."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._acting: list[_Actor] = []
        self.over = False
        self.answered: Counter[int] = Counter()
        world.always(self._look)

    def begin(self, client: Client, doing: Doing, *, goes_on: bool = False) -> None:
        """Let somebody act from now on, until ``stop`` or, if it ``goes_on``, to its end."""
        actor = _Actor(client, doing, goes_on)
        self._acting.append(actor)
        self._advance(actor, None)

    def stop(self) -> None:
        """It is time to stop."""
        self.over = True
        for actor in list(self._acting):
            if actor.waits:
                self._advance(actor, None)

    @property
    def have_stopped(self) -> bool:
        return not self._acting

    def _advance(self, actor: _Actor, answer: ApiResponse | None) -> None:
        actor.turn += 1
        actor.waits = False
        while True:
            if self.over and not actor.goes_on:
                actor.doing.close()
                self._acting.remove(actor)
                return
            try:
                done = actor.doing.send(answer)
            except StopIteration:
                self._acting.remove(actor)
                return
            match done:
                case Wait(seconds):
                    if not self.over:
                        self._later(actor, seconds)
                        return
                    answer = None
                case Ask() as ask:
                    actor.asked = ask
                    actor.pending = actor.client.begin(ask.request, TIMEOUT_SECONDS)
                    return

    def _later(self, actor: _Actor, span: float) -> None:
        turn, actor.waits = actor.turn, True

        def go_on() -> None:
            if actor.turn == turn:
                self._advance(actor, None)

        self._world.after(span, go_on)

    def _look(self) -> None:
        for actor in [one for one in self._acting if one.pending is not None and one.pending.response is not None]:
            assert actor.pending is not None and actor.pending.response is not None and actor.asked is not None
            answer, actor.pending = actor.pending.response, None
            if not actor.goes_on and is_write(actor.asked.request):
                self.answered[answer.status] += 1
            if 200 <= answer.status < 300 or answer.status in actor.asked.allowed:
                self._advance(actor, answer)
                continue
            request = actor.asked.request
            assert answer.status in AGAIN, f"{request.verb} {request.name}: {answer.status} {answer.body[:300]!r}"
            self._again(actor, actor.asked)

    def _again(self, actor: _Actor, ask: Ask) -> None:
        turn = actor.turn

        def ask_again() -> None:
            if actor.turn == turn and actor.pending is None:
                if self.over and not actor.goes_on:
                    self._advance(actor, None)
                else:
                    actor.pending = actor.client.begin(ask.request, TIMEOUT_SECONDS)

        self._world.after(WAIT_SECONDS, ask_again)
