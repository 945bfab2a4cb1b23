"""A call ends exactly once, and its code says whether the thing certainly did not happen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.machine import Instant, PeerConnected, Received, Send, SetTimer, TimerFired, seconds
from elbowroom.rpc import Calls, Finished, create, get, listing, patch
from elbowroom.rpc.operations import ended, invoked
from elbowroom.wire import ApiRequest, ApiResponse, Call, Code, Reply, encode_value

NOW = Instant(1_000_000_000_000)


def at(span: float) -> Instant:
    return Instant(NOW + seconds(span))


def test_a_call_ends_by_its_reply_and_a_second_reply_ends_nothing() -> None:
    calls = Calls(epoch=7)
    send, timer = calls.begin(NOW, "runtime/a", "PodState", context="c", timeout=2.0)
    assert send == Send("runtime/a", Call(1, "PodState", deadline=at(2.0), epoch=7))
    assert timer == SetTimer(Calls.TIMER, at(2.0))
    reply = Received("runtime/a", Reply(1, Code.NOT_FOUND, b"", "no such pod"))
    assert calls.finished(NOW, reply) == ((), (Finished("c", Code.NOT_FOUND, b"", "no such pod"),))
    assert calls.finished(NOW, reply) == ((), ())
    assert len(calls) == 0


def test_a_reply_of_another_peer_ends_nothing() -> None:
    calls = Calls()
    calls.begin(NOW, "runtime/a", "PodState", context="c")
    assert calls.finished(NOW, Received("runtime/b", Reply(1))) == ((), ())
    assert len(calls) == 1


def test_calls_end_by_their_deadlines_each_at_its_own() -> None:
    calls = Calls()
    calls.begin(NOW, "a", "m", context="late", timeout=5.0)
    assert calls.begin(NOW, "a", "m", context="soon", timeout=1.0)[1:] == [SetTimer(Calls.TIMER, at(1.0))]
    assert calls.begin(NOW, "a", "m", context="later", timeout=9.0)[1:] == []
    effects, finished = calls.finished(at(1.0), TimerFired(Calls.TIMER))
    assert [(one.context, one.code) for one in finished] == [("soon", Code.DEADLINE_EXCEEDED)]
    assert effects == [SetTimer(Calls.TIMER, at(5.0))]
    effects, finished = calls.finished(at(10.0), TimerFired(Calls.TIMER))
    assert [one.context for one in finished] == ["late", "later"]
    assert effects == []
    assert calls.begin(at(11.0), "a", "m", timeout=1.0)[1:] == [SetTimer(Calls.TIMER, at(12.0))]


def test_a_replaced_connection_ends_the_calls_of_that_peer_as_unknown() -> None:
    calls = Calls()
    calls.begin(NOW, "apiserver", "m", context="a")
    calls.begin(NOW, "runtime/x", "m", context="b")
    _, finished = calls.finished(NOW, PeerConnected("apiserver"))
    assert [(one.context, one.code, one.code.definite) for one in finished] == [("a", Code.UNAVAILABLE, False)]
    assert len(calls) == 1


def test_a_forgotten_call_ends_without_a_word() -> None:
    calls = Calls()
    calls.begin(NOW, "a", "m", context="gone")
    calls.begin(NOW, "a", "m", context="kept")
    calls.forget("gone")
    assert calls.finished(NOW, Received("a", Reply(1))) == ((), ())
    assert len(calls.finished(NOW, Received("a", Reply(2)))[1]) == 1


@given(st.lists(st.sampled_from(["begin", "reply", "expire", "connect"]), max_size=40), st.randoms())
def test_every_call_ends_exactly_once_whatever_happens(events: list[str], rng: object) -> None:
    calls, now, ends = Calls(), NOW, []
    begun = 0
    for event in [*events, "expire"]:
        now = Instant(now + seconds(1.0))
        if event == "begin":
            begun += 1
            calls.begin(now, "a", "m", context=begun, timeout=rng.choice([0.5, 3.0]))  # type: ignore[attr-defined]
            continue
        happened = {
            "reply": Received("a", Reply(rng.randint(1, begun + 1))),  # type: ignore[attr-defined]
            "expire": TimerFired(Calls.TIMER),
            "connect": PeerConnected("a"),
        }[event]
        ends += [one.context for one in calls.finished(now, happened)[1]]
    ends += [one.context for one in calls.finished(Instant(now + seconds(9)), TimerFired(Calls.TIMER))[1]]
    assert sorted(ends) == list(range(1, begun + 1))


@pytest.mark.parametrize(
    ("code", "body", "status"),
    [
        (Code.OK, encode_value(ApiResponse(201, b"{}")), 201),
        (Code.OK, b"\xc1", 0),
        (Code.UNAVAILABLE, b"", 0),
    ],
)
def test_an_api_answer_is_read_or_has_status_0(code: Code, body: bytes, status: int) -> None:
    assert Finished(None, code, body, "why").api().status == status


@pytest.mark.parametrize(
    ("finished", "kind"),
    [
        (Finished(None, Code.OK, encode_value(ApiResponse(201, b"{}", revision=7)), ""), "api.ok"),
        (Finished(None, Code.OK, encode_value(ApiResponse(409, b"{}")), ""), "api.fail"),
        (Finished(None, Code.OK, encode_value(ApiResponse(504, b"{}")), ""), "api.info"),
        (Finished(None, Code.OK, encode_value(ApiResponse(500, b"{}")), ""), "api.info"),
        (Finished(None, Code.OK, b"\xc1", ""), "api.info"),
        (Finished(None, Code.UNIMPLEMENTED, b"", ""), "api.fail"),
        (Finished(None, Code.DEADLINE_EXCEEDED, b"", ""), "api.info"),
        (Finished(None, Code.UNAVAILABLE, b"", ""), "api.info"),
    ],
)
def test_an_operation_is_known_to_have_happened_or_not_or_nobody_knows(finished: Finished, kind: str) -> None:
    note = ended("c/1", create("pods", {"metadata": {"name": "a"}}, namespace="default"), finished)
    assert note.name == kind
    assert note.fields["key"] == "pods/default/a"
    assert note.fields.get("rev") == (7 if kind == "api.ok" else None)


@pytest.mark.parametrize(
    ("ask", "key", "write"),
    [
        (get("nodes", "n"), "nodes//n", False),
        (listing("replicasets.apps", namespace="d"), "replicasets.apps/d/", False),
        (patch("pods", "p", {}, namespace="d", subresource="resize"), "pods/d/p", True),
        (create("pods", b"nonsense", namespace="d"), "pods/d/", True),
        (ApiRequest("delete", "pods", namespace="d", name="p", query={"dryRun": "All"}), "pods/d/p", False),
    ],
)
def test_what_is_invoked_is_named_by_key_and_whether_it_writes(ask: ApiRequest, key: str, write: bool) -> None:
    fields = invoked("c/1", ask).fields
    assert (fields["key"], fields["write"]) == (key, write)
