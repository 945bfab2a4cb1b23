"""Selectors: upstream's grammar, its words, and what matches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.api.objects import LabelSelector, SelectorRequirement
from elbowroom.api.selectors import EVERYTHING, NOTHING, SelectorError, matches, of_view, parse_fields, parse_labels

WEB = {"app": "web", "zone": "a", "n": "7", "empty": ""}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web, zone!=b", True),
        ("app in (web,db),zone notin (b,c)", True),
        ("app", True),
        ("!old", True),
        ("!app", False),
        ("tier!=db", True),
        ("tier notin (db)", True),
        ("tier in (db)", False),
        ("n>6,n<8", True),
        ("n>7", False),
        ("app>1", False),
        ("empty=", True),
        ("empty in ()", True),
        ("empty in (,a)", True),
        ("empty in (a,,b)", True),
        ("in=a", False),
        ("app in (in,web)", True),
        ("\tapp =\nweb ", True),
    ],
)
def test_a_label_selector_as_text(text: str, selected: bool) -> None:
    assert parse_labels(text).matches(WEB) is selected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("app=a b", "found 'b', expected: ',' or 'end of string'"),
        ("app=a,", "found '', expected: identifier after ','"),
        (",app", "found ',', expected: !, identifier, or 'end of string'"),
        ("app in a", "unable to parse requirement: found 'a' expected: '('"),
        ("app in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("app (a)", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "n>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_a_malformed_label_selector_is_refused_in_upstreams_words(text: str, words: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_labels(text)
    assert str(refused.value) == words


def test_keys_and_values_of_a_label_selector_are_checked() -> None:
    with pytest.raises(SelectorError, match=r'^unable to parse requirement: <nil>: Invalid value: "a_": name part must consist of'):
        parse_labels("a_=b")
    with pytest.raises(SelectorError, match=r'values\[0\]\[a\]: Invalid value: "-": a valid label must be'):
        parse_labels("a=-")


@given(st.text(alphabet="ab=!,()<> in", max_size=40))
def test_no_label_selector_raises_anything_else(text: str) -> None:
    try:
        parse_labels(text).matches(WEB)
    except SelectorError as refused:
        assert str(refused)


def test_an_absent_view_selects_nothing_and_an_empty_one_everything() -> None:
    assert of_view(None) is NOTHING and not matches(None, {})
    assert of_view(LabelSelector()) == EVERYTHING and matches(LabelSelector(), {})


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        (("app", "In", ["web"]), True),
        (("app", "NotIn", ["web"]), False),
        (("tier", "DoesNotExist", []), True),
        (("app", "Exists", []), True),
        (("n", "Gt", ["3"]), True),
        (("app", "In", []), False),
        (("app", "Like", ["w*"]), False),
    ],
)
def test_a_view_with_an_expression(expression: tuple[str, str, list[str]], selected: bool) -> None:
    key, operator, values = expression
    requirement = SelectorRequirement(key=key, operator=operator, values=values)
    assert matches(LabelSelector(match_labels={"zone": "a"}, match_expressions=[requirement]), WEB) is selected


FIELDS = {"metadata.name": "a", "spec.nodeName": "", "x": "1,2=3\\"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("metadata.name=a,spec.nodeName=", True),
        ("metadata.name==a", True),
        ("metadata.name!=a", False),
        ("spec.nodeName!=n1", True),
        (r"x=1\,2\=3\\", True),
    ],
)
def test_a_field_selector(text: str, selected: bool) -> None:
    assert parse_fields(text).matches(lambda name: FIELDS.get(name, "")) is selected


def test_a_field_selector_tells_its_fields_and_the_value_it_pins() -> None:
    selector = parse_fields("spec.nodeName=n1,status.phase!=Failed")
    assert selector.fields() == ["spec.nodeName", "status.phase"]
    assert (selector.exact("spec.nodeName"), selector.exact("status.phase")) == ("n1", None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        ("a=b=c", "invalid field selector: unescaped character in value: ="),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
    ],
)
def test_a_malformed_field_selector_is_refused_in_upstreams_words(text: str, words: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_fields(text)
    assert str(refused.value) == words
