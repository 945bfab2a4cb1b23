"""One status patch at a time, and whose doing it is that a pod changed meanwhile."""

from typing import Any

import msgspec
import pytest

from elbowroom.kubelet.publisher import Publisher
from elbowroom.machine import Effect, Instant, Received, Send
from elbowroom.rpc import Calls
from elbowroom.wire import ApiRequest, ApiResponse, Call, Reply, decode_value, encode_value

NOW = Instant(1_796_000_000_000_000_000)


class Told:
    """A publisher of one pod, ``u``, and the patch that it has in flight."""

    def __init__(self) -> None:
        self.calls = Calls()
        self.publisher = Publisher(self.calls, lambda uid, at: None)
        self.publisher.add("ns", "p", "u")
        self.call = 0

    def say(self, phase: str) -> dict[str, Any] | None:
        """The status of the patch that is sent, if one is."""
        return self._sent(self.publisher.say(NOW, "u", {"phase": phase}, (), remove=False))

    def answer(self, status: dict[str, Any], revision: int, code: int = 200) -> dict[str, Any] | None:
        body = msgspec.json.encode({"metadata": {"uid": "u", "resourceVersion": str(revision)}, "status": status})
        reply = Reply(self.call, body=encode_value(ApiResponse(code, body, revision=revision)))
        _, (end,) = self.calls.finished(NOW, Received("apiserver", reply))
        return self._sent(self.publisher.finished(NOW, end))

    def _sent(self, effects: list[Effect]) -> dict[str, Any] | None:
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Call):
                self.call = effect.message.id
                body = msgspec.json.decode(decode_value(effect.message.body, ApiRequest).body)
                found: dict[str, Any] = body["status"]
                return found
        return None


def test_while_a_patch_is_in_flight_the_newest_wish_waits_and_is_sent_after_it() -> None:
    told = Told()
    assert told.say("Pending") == {"phase": "Pending"}
    assert told.say("Odd") is None
    assert told.say("Running") is None
    assert told.answer({"phase": "Pending"}, 2) == {"phase": "Running"}
    assert told.answer({"phase": "Running"}, 3) is None


def test_its_own_change_as_the_watch_tells_it_owes_nobody_a_word() -> None:
    told = Told()
    told.say("Running")
    assert told.publisher.observe("u", {"phase": "Running"}, 2), "the answer will show whose doing it was"
    assert told.answer({"phase": "Running"}, 2) is None
    assert not told.publisher.owed("u")
    assert told.say("Running") is None
    assert not told.publisher.observe("u", {"phase": "Running"}, 3), "nothing is in flight"


@pytest.mark.parametrize("code", [200, 500])
@pytest.mark.parametrize("also_its_own", [True, False])
def test_somebody_elses_change_meanwhile_is_owed_a_word(code: int, also_its_own: bool) -> None:
    told = Told()
    told.say("Running")
    told.publisher.observe("u", {"phase": "Running", "reason": "Other"}, 2)
    if also_its_own:
        told.publisher.observe("u", {"phase": "Running", "reason": "Other"}, 3)
    told.answer({"phase": "Running", "reason": "Other"}, 3, code)
    assert told.publisher.owed("u")
    assert not told.publisher.owed("u"), "told once"


def test_what_the_api_server_dropped_is_not_sent_again() -> None:
    told = Told()
    told.publisher.say(NOW, "u", {"phase": "Running", "lastState": {}}, (), remove=False)
    told.call = 1
    told.publisher.observe("u", {"phase": "Running"}, 2)
    told.answer({"phase": "Running"}, 2)
    assert not told.publisher.say(NOW, "u", {"phase": "Running", "lastState": {}}, (), remove=False)
