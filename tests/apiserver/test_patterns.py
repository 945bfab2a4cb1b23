"""Go's patterns, in Python."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.apiserver.definitions.patterns import compiled


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        ("^(a|b$)", "b\n", False),
        (r"^a\z", "a", True),
        (r"a\$", "a$", True),
        ("[$]", "$", True),
        ("(?m)^b$", "a\nb\nc", True),
        ("^[[:alpha:]_]+$", "aZ_", True),
        ("^[^[:space:]]+$", "a b", False),
        ("^[]a]+$", "]a", True),
        ("^[a[]+$", "[a", True),
        (r"^[\w.-]+$", "a.b-c", True),
        (r"^\Qa.b\E+$", "a.bb", True),
        (r"^\Qa.b", "axb", False),
        (r"^(?i)\.?[a-z_]+$", ".ABC", True),
        ("^a(?i)b$", "aB", True),
        ("^a(?i)b$", "AB", False),
        ("^(a(?i)b)c$", "aBC", False),
        ("^(?:x(?i)a|b)$", "B", True),
        ("^(?:x(?i)a|b)$", "XA", False),
        ("(?i)A(?-i)b", "aB", False),
        ("(?i:A)b", "ab", True),
        ("(?P<n>a)(?<m>b)", "ab", True),
        (r"^\x{41}$", "A", True),
        (r"^\d+$", "\u0661", False),
        ("a{2,3}", "aa", True),
    ],
)
def test_a_pattern_matches_what_it_matches_in_go(pattern: str, text: str, matches: bool) -> None:
    assert (compiled(pattern).search(text) is not None) is matches


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1", r"a\Z", "(a", "a)", "[a", "*a", "(?#x)", "(?>a)", "a(?"]
)
def test_what_go_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        compiled(pattern)


@given(st.text(alphabet="ab|()[]^$\\?i:-*+{}1,Qz", max_size=15))
def test_no_text_is_more_than_refused(pattern: str) -> None:
    try:
        compiled(pattern)
    except (re.error, OverflowError, ValueError):
        return
