"""A history record and its line of JSON are the same."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.machine.records import ENVELOPE, Author, Lines, record

NAMES = st.sampled_from([*ENVELOPE, "node", "pod", "verdict"]) | st.text(max_size=5)
VALUES = st.none() | st.integers(-5, 5) | st.text(max_size=5) | st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2)


@given(
    proc=st.sampled_from(["kubelet/node-1", "apiserver", 'odd"name']),
    kind=st.text(max_size=8),
    fields=st.dictionaries(NAMES, VALUES, max_size=5),
    seq=st.integers(1, 10**9),
)
def test_a_line_is_the_record_in_json_and_in_its_order(proc: str, kind: str, fields: dict[str, object], seq: int) -> None:
    author = Author("run-1", 42, proc, 7)
    wanted = record(author, seq, 5, 6, kind, fields)
    made = msgspec.json.decode(Lines(author).line(seq, 5, 6, kind, fields))
    assert made == wanted
    assert list(made) == list(wanted)
