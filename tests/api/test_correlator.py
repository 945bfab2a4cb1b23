"""Which events are told: a table of upstream's defaults, walked through."""

from elbowroom.api.correlator import BURST, COMBINED, REFILL_NS, REMEMBERED, SIMILAR_MAX, SIMILAR_NS, Correlator, Recent

POD = {"kind": "Pod", "namespace": "ns", "name": "p", "uid": "u", "apiVersion": "v1"}
NOW = 1_796_000_000_000_000_000


def test_the_same_event_has_one_key_and_another_container_another() -> None:
    correlator = Correlator()
    first = correlator.correlate(NOW, POD, "Normal", "Pulled", "here")
    assert correlator.correlate(NOW, POD, "Normal", "Pulled", "here") == first
    for other in ({**POD, "fieldPath": "spec.containers{c}"}, {**POD, "uid": "v"}):
        assert correlator.correlate(NOW, other, "Normal", "Pulled", "here").key != first.key
    assert correlator.correlate(NOW, POD, "Warning", "Pulled", "here").key != first.key


def test_from_the_tenth_message_on_similar_events_are_one() -> None:
    correlator = Correlator()
    told = [correlator.correlate(NOW, POD, "Normal", "ResizeStarted", f"message {number}") for number in range(SIMILAR_MAX + 3)]
    assert [event.message for event in told[: SIMILAR_MAX - 1]] == [f"message {number}" for number in range(SIMILAR_MAX - 1)]
    combined = told[SIMILAR_MAX - 1 :]
    assert [event.message for event in combined] == [f"{COMBINED}message {number + SIMILAR_MAX - 1}" for number in range(4)]
    assert len({event.key for event in combined}) == 1
    assert correlator.correlate(NOW, POD, "Normal", "ResizeCompleted", "message").message == "message", "another reason"


def test_after_ten_quiet_minutes_similar_events_are_told_apart_again() -> None:
    correlator = Correlator()
    for number in range(SIMILAR_MAX):
        correlator.correlate(NOW, POD, "Normal", "R", str(number))
    assert correlator.correlate(NOW + SIMILAR_NS, POD, "Normal", "R", "a").message == f"{COMBINED}a"
    assert correlator.correlate(NOW + 2 * SIMILAR_NS + 1, POD, "Normal", "R", "b").message == "b"


def test_an_object_has_25_events_at_once_and_one_more_every_five_minutes() -> None:
    correlator = Correlator()

    def is_told(at: int, reason: str = "R", about: dict[str, str] = POD) -> bool:
        return not correlator.correlate(at, about, "Normal", reason, "m").held_back

    assert [is_told(NOW, f"reason {number % 3}") for number in range(BURST + 2)] == [True] * BURST + [False] * 2
    assert is_told(NOW, about={**POD, "uid": "v"}), "another object has its own"
    assert not is_told(NOW + REFILL_NS - 1)
    assert is_told(NOW + REFILL_NS)
    assert not is_told(NOW + REFILL_NS)
    later = NOW + 1000 * REFILL_NS
    assert [is_told(later) for _ in range(BURST + 1)] == [True] * BURST + [False], "no more than a burst is saved up"


def test_what_was_used_last_is_remembered() -> None:
    recent: Recent[int] = Recent()
    for number in range(REMEMBERED):
        recent.put(str(number), number)
    assert recent.get("0") == 0
    recent.put("one more", -1)
    assert (recent.get("0"), recent.get("1")) == (0, None)
    assert len(recent.values()) == REMEMBERED
