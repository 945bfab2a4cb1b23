"""Words in order, in pieces: the same as one sorted list."""

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.apiserver import ordered
from elbowroom.apiserver.ordered import Ordered

WORDS = st.text(alphabet="ab/0", min_size=1, max_size=4)


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "PIECE", 2)
        yield


@given(st.lists(st.tuples(st.booleans(), WORDS), max_size=60), WORDS, WORDS)
def test_words_come_and_go_as_in_one_sorted_list(moves: list[tuple[bool, str]], low: str, high: str) -> None:
    words, truth = Ordered(), set[str]()
    for comes, word in moves:
        if comes and word not in truth:
            truth.add(word)
            words.add(word)
        elif not comes and word in truth:
            truth.remove(word)
            words.remove(word)
        assert (list(words), len(words)) == (sorted(truth), len(truth))
    everything = sorted(truth)
    assert words.between(low, high) == everything[bisect_left(everything, low) : bisect_left(everything, high)]


def test_a_thousand_words_from_behind() -> None:
    words = Ordered()
    for number in range(999, -1, -1):
        words.add(f"{number:03}")
    assert list(words) == [f"{number:03}" for number in range(1000)]
    assert words.between("100", "103") == ["100", "101", "102"]
