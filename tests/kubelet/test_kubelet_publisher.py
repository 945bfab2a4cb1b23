"""One status patch at a time, and whose doing it is that a pod changed meanwhile."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elbowroom.apiserver import schema
from elbowroom.apiserver.patches import strategic_patch
from elbowroom.kubelet.publisher import Publisher
from elbowroom.machine import Effect, Instant, PeerConnected, Received, Send
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

    def say_all(self, status: dict[str, Any]) -> dict[str, Any] | None:
        """The same of a whole status, all of whose conditions are the kubelet's."""
        return self._sent(self.publisher.say(NOW, "u", status, CONDITIONS, remove=False))

    def lose(self) -> dict[str, Any] | None:
        """The connection is replaced before the patch is answered."""
        _, (end,) = self.calls.finished(NOW, PeerConnected("apiserver"))
        return self._sent(self.publisher.finished(NOW, end))

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


POD = schema.find("", "v1", "Pod")
CONDITIONS = ("Ready", "PodResizePending", "PodResizeInProgress")
STATUSES = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(["Pending", "Running"]),
        "conditions": st.lists(
            st.builds(
                lambda kind, reason: {"type": kind, "status": "True", **({"reason": reason} if reason else {})},
                st.sampled_from(CONDITIONS),
                st.sampled_from(["", "Deferred", "Infeasible"]),
            ),
            max_size=3,
            unique_by=lambda condition: condition["type"],
        ),
    }
)


def meant(status: dict[str, Any]) -> tuple[Any, list[tuple[str, str]]]:
    return status.get("phase"), sorted((c["type"], c.get("reason") or "") for c in status.get("conditions") or ())


BEGUN = {"phase": "Running", "conditions": [{"type": "PodResizeInProgress", "status": "True"}]}
OVER: dict[str, Any] = {"phase": "Running", "conditions": []}


@example(first=OVER, lost=[(BEGUN, "at once"), (OVER, "never")], wanted=OVER)
@given(STATUSES, st.lists(st.tuples(STATUSES, st.sampled_from(["never", "at once", "late"])), min_size=1, max_size=3), STATUSES)
@settings(deadline=None)
def test_whatever_became_of_patches_without_an_answer_the_next_one_puts_it_right(
    first: dict[str, Any], lost: list[tuple[dict[str, Any], str]], wanted: dict[str, Any]
) -> None:
    """The API server may have carried each out, may never, or may do it just before the next that is answered."""
    pod: dict[str, Any] = {"metadata": {"name": "p"}, "status": {}}

    def carried_out(patch: dict[str, Any]) -> None:
        nonlocal pod
        assert POD is not None
        pod = strategic_patch(pod, {"status": copy.deepcopy(patch)}, POD)

    told = Told()
    sent = told.say_all(first)
    if sent is not None:
        carried_out(sent)
        told.answer(pod["status"], 2)
    late = []
    for status, happened in lost:
        doubtful = told.say_all(status)
        if doubtful is None:
            return
        if happened == "at once":
            carried_out(doubtful)
        elif happened == "late":
            late.append(doubtful)
        assert told.lose() is None
    following = told.say_all(wanted)
    assert following is not None, "nobody knows what the API server has"
    for doubtful in late:
        carried_out(doubtful)
    carried_out(following)
    assert meant(pod["status"]) == meant(wanted)


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
