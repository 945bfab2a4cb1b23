"""A request is told its warnings as far as its headers carry them."""

from elbowroom.apiserver.warningtexts import CUT_CHARACTERS, TOTAL_CHARACTERS_MAX, told


def test_each_warning_is_told_once_and_none_is_empty() -> None:
    assert told(["a", "b", "", "a"]) == ["a", "b"]


def test_warnings_up_to_the_limit_are_whole() -> None:
    texts = [letter * 1024 for letter in "abcd"]
    assert sum(map(len, texts)) == TOTAL_CHARACTERS_MAX and told(texts) == texts


def test_one_more_character_cuts_them_all() -> None:
    texts = [letter * 1024 for letter in "abcd"] + ["e"]
    assert told(texts) == [text[:CUT_CHARACTERS] for text in texts]


def test_a_single_warning_that_is_too_long_is_cut() -> None:
    assert told(["é" * 5000]) == ["é" * CUT_CHARACTERS]


def test_cut_warnings_that_reach_the_limit_are_the_last() -> None:
    texts = [f"{number:04d}" + "x" * 300 for number in range(100)]
    kept = told(texts)
    assert [text[:4] for text in kept] == [f"{number:04d}" for number in range(16)] and {len(text) for text in kept} == {256}


def test_short_warnings_are_told_until_the_limit_is_passed() -> None:
    """All up to the first that did not fit are repeated; they are not shorter than before, so nothing follows."""
    texts = [f"{number:04d}" + "x" * 36 for number in range(200)]
    assert told(texts) == texts[:103]
