"""Expressions of rules: how they are read, checked and carried out."""

import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.apiserver.definitions.cel.check import check
from elbowroom.apiserver.definitions.cel.evaluation import CostError, Run
from elbowroom.apiserver.definitions.cel.library import of_field
from elbowroom.apiserver.definitions.cel.operators import CelError, Time, span_of, time_of
from elbowroom.apiserver.definitions.cel.syntax import CelSyntaxError, UInt, parse
from elbowroom.apiserver.definitions.cel.types import escaped, of_schema, optional, unescaped

SCHEMA = yaml.safe_load("""
type: object
properties:
  minimum: {type: integer}
  maximum: {type: integer}
  ratio: {type: number}
  name: {type: string}
  mode: {type: string}
  port: {x-kubernetes-int-or-string: true}
  start: {type: string, format: date-time}
  lasts: {type: string, format: duration}
  secret: {type: string, format: byte}
  namespace: {type: string}
  a-b.c/d: {type: string}
  amounts: {type: object, additionalProperties: {type: string}}
  names: {type: array, x-kubernetes-list-type: set, items: {type: string}}
  sizes: {type: array, items: {type: integer}}
  extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
  parts:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items: {type: object, properties: {name: {type: string}, size: {type: integer}}}
""")
OBJECT: dict[str, Any] = {
    "minimum": 1,
    "maximum": 5,
    "ratio": 2,
    "name": "web-1",
    "port": "http",
    "start": "2026-11-30T01:02:03.5Z",
    "lasts": "1h30m",
    "secret": "aGk=",
    "namespace": "ns",
    "a-b.c/d": "odd",
    "amounts": {"cpu": "500m", "memory": "1Gi"},
    "names": ["a", "b"],
    "sizes": [3, 1, 2],
    "extra": {"x": [1, "two"], "none": None},
    "parts": [{"name": "one", "size": 1}, {"name": "two", "size": 2}],
}


def evaluated(text: str, document: Any = OBJECT, limit: int = 100_000) -> Any:
    return Run(limit).value(parse(text), {"self": of_field(document, SCHEMA)})


def issues(text: str) -> list[str]:
    return [issue.message for issue in check(parse(text), {"self": of_schema(SCHEMA)})[1]]


@pytest.mark.parametrize(
    "text",
    [
        "self.minimum < self.maximum && self.maximum - self.minimum == 4",
        "self.ratio == 2.0 && self.ratio > self.minimum",
        "self.name.startsWith('web') && self.name.endsWith(\"-1\") && self.name.contains('b-')",
        "self.name.matches('^[a-z]+-[0-9]+$') && size(self.name) == 5 && self.name.size() == 5",
        "has(self.name) && !has(self.mode)",
        "!has(self.mode) || self.mode == 'Fast'",
        "self.__namespace__ == 'ns' && self.a__dash__b__dot__c__slash__d == 'odd'",
        "type(self.port) == string ? self.port == 'http' : self.port > 0",
        "self.start < timestamp('2026-12-01T00:00:00Z') && self.start.getFullYear() == 2026 && self.start.getMonth() == 10",
        "self.start.getHours('+02:00') == 3 && self.start.getMilliseconds() == 500 && self.start.getDayOfWeek() == 1",
        "self.lasts == duration('90m') && self.lasts.getMinutes() == 90 && self.start + self.lasts > self.start",
        "self.secret == b'hi' && string(self.secret) == 'hi'",
        "self.amounts['cpu'] == '500m' && self.amounts.memory == '1Gi' && 'cpu' in self.amounts && !('gpu' in self.amounts)",
        "self.amounts.all(name, isQuantity(self.amounts[name]))",
        "quantity(self.amounts.cpu).isLessThan(quantity('1')) && quantity('1Gi').sub(quantity('1Mi')).sign() == 1",
        "quantity('50k').asInteger() == 50000 && quantity('50k').add(2).compareTo(quantity('50002')) == 0",
        "self.names == ['b', 'a'] && self.names + ['b', 'c'] == ['a', 'b', 'c']",
        "self.sizes.exists(one, one == 3) && self.sizes.exists_one(one, one > 2) && !self.sizes.all(one, one > 1)",
        "self.sizes.map(one, one * 2) == [6, 2, 4] && self.sizes.filter(one, one > 1) == [3, 2]",
        "self.sizes.map(one, one > 1, string(one)) == ['3', '2'] && self.sizes.sum() == 6 && self.sizes.max() == 3",
        "!self.sizes.isSorted() && self.sizes.sort().isSorted() && self.sizes.indexOf(1) == 1 && self.sizes[2] == 2",
        "self.sizes.all(index, value, index < 3 && value > 0) && self.sizes.exists(index, value, index == 0 && value == 3)",
        "self.parts.all(one, self.parts.exists_one(other, other.name == one.name))",
        "self.parts == [{'name': 'two', 'size': 2}, {'name': 'one', 'size': 1}]",
        "self.parts + [{'name': 'one', 'size': 7}] == [{'name': 'one', 'size': 7}, {'name': 'two', 'size': 2}]",
        "self.extra.x[1] == 'two' && self.extra.none == null && self.extra.x.size() == 2",
        "self.?mode.orValue('Slow') == 'Slow' && self.?name.hasValue() && self.?name.value() == 'web-1'",
        "self.?amounts.?gpu.hasValue() == false && self.amounts[?'cpu'].orValue('') == '500m'",
        "optional.of(3).optMap(one, one + 1).value() == 4 && !optional.none().hasValue()",
        "[1, ?optional.none(), 3] == [1, 3] && {'a': 1, ?'b': optional.of(2)} == {'a': 1, 'b': 2}",
        "'A-b'.lowerAscii() == 'a-b' && ' x '.trim() == 'x' && 'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
        "'hello'.substring(1, 3) == 'el' && 'hello'.indexOf('l') == 2 && 'hello'.lastIndexOf('l') == 3",
        "'hello'.replace('l', 'L', 1) == 'heLlo' && 'hello'.charAt(4) == 'o' && 'abc 12 de 34'.findAll('[0-9]+') == ['12', '34']",
        "'%s has %d of %.1f'.format(['x', 3, 2.55]) == 'x has 3 of 2.5'",
        "sets.contains([1, 2], [2]) && sets.intersects(['a'], ['a', 'b']) && sets.equivalent([1, 1], [1])",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('10.0.0.256') && ip('127.0.0.1').isLoopback()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.1.2.3/16').masked() == cidr('10.1.0.0/16') && !isCIDR('10/8')",
        "url('https://a.b:80/c?d=e').getHostname() == 'a.b' && url('https://a.b:80/c').getPort() == '80' && !isURL('x y')",
        "!format.dns1123Label().validate('ok').hasValue() && format.dns1123Label().validate('No_').hasValue()",
        "format.named('uuid').hasValue() && !format.named('nosuch').hasValue()",
        "[[1], [2, [3]]].flatten() == [1, 2, [3]] && [1, 2, 1].distinct() == [1, 2] && lists.range(3) == [0, 1, 2]",
        "7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1 && 2u + 3u == 5u && int('12') == 12 && double(3) == 3.0",
        "0x1F == 31 && r'\\d' == '\\\\d' && '\\u00e9' == 'é' && '''a'b''' == \"a'b\" && 1e3 == 1000.0",
        "false && self.nosuch.more || true",
        "self.extra.x.exists(one, one == 'two') && (self.extra.nosuch == 1 || true)",
        "dyn(1) == 1u && dyn(1) == 1.0 && dyn('1') != 1 && !(dyn(true) == 1)",
        "// a comment\ntrue",
    ],
)
def test_an_expression_holds(text: str) -> None:
    assert evaluated(text) is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.mode == 'x'", "no such key: mode"),
        ("self.sizes[3] == 1", "index out of bounds: 3"),
        ("self.amounts['gpu'] == ''", "no such key: gpu"),
        ("1 / (self.minimum - 1) == 0", "division by zero"),
        ("1 % 0 == 0", "modulus by zero"),
        ("9223372036854775807 + self.minimum > 0", "integer overflow"),
        ("0u - 1u == 0u", "unsigned integer overflow"),
        ("self.extra.x[1] > 1", "no such overload"),
        ("self.port > 1", "no such overload"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("[].max() == 1", "max called on empty list"),
        (
            "quantity('x').sign() == 0",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("duration('1x') == duration('1s')", 'time: invalid duration "1x"'),
        ("self.extra.nosuch == 1 || false", "no such key: nosuch"),
    ],
)
def test_an_expression_without_a_value_says_why(text: str, why: str) -> None:
    with pytest.raises(CelError) as trouble:
        evaluated(text)
    assert str(trouble.value) == why


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("self.nosuch == 1", "undefined field 'nosuch'"),
        ("self.parts[0].nosuch == 1", "undefined field 'nosuch'"),
        ("self.parts.all(one, one.nosuch == 1)", "undefined field 'nosuch'"),
        ("has(self.nosuch)", "undefined field 'nosuch'"),
        ("nosuch == 1", "undeclared reference to 'nosuch' (in container '')"),
        ("nosuch(1)", "undeclared reference to 'nosuch' (in container '')"),
        ("self.name.nosuch()", "undeclared reference to 'nosuch' (in container '')"),
        ("self.name > 1", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("self.minimum == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.minimum + 1.0 > 0.0", "found no matching overload for '_+_' applied to '(int, double)'"),
        ("size(self.minimum) == 1", "found no matching overload for 'size' applied to '(int)'"),
        ("self.name.startsWith(1)", "found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("self.name && true", "found no matching overload for '_&&_' applied to '(string, bool)'"),
        ("self.minimum.more == 1", "type 'int' does not support field selection"),
        (
            "self.minimum.all(one, true)",
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("self.sizes.all(one, one)", "expected type 'bool' but found 'int'"),
        ("[1, 'a'] == []", "expected type 'int' but found 'string'"),
        ("self.name == null", "found no matching overload for '_==_' applied to '(string, null)'"),
        ("self.sizes['a'] == 1", "found no matching overload for '_[_]' applied to '(list(int), string)'"),
        ("true ? 1 : 'a'", "found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
    ],
)
def test_an_expression_that_makes_no_sense_is_found_out_beforehand(text: str, message: str) -> None:
    assert message in issues(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "self.minimum > 0.5",
            "self.port == 1 || self.port == 'a'",
            "self.extra.anything.at.all == 1",
            "self.parts[0] == self.parts[1]",
        ),
        *("self.start - self.start < self.lasts", "self.?mode.orValue('') == ''", "self.amounts.all(k, self.amounts[k] != '')"),
    ],
)
def test_an_expression_that_makes_sense_is_let_through(text: str) -> None:
    assert issues(text) == []


def test_an_optional_former_value_is_asked_for_its_value() -> None:
    of = of_schema({"type": "integer"})
    variables = {"self": of, "oldSelf": optional(of)}
    assert check(parse("self >= oldSelf.orValue(1)"), variables)[1] == []
    assert check(parse("oldSelf.hasValue() ? self >= oldSelf.value() : true"), variables)[1] == []
    told = check(parse("self >= oldSelf"), variables)[1]
    assert [one.message for one in told] == ["found no matching overload for '_>=_' applied to '(int, optional_type(int))'"]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        *(("self.", 5), ("self.a +", 8), ("(1", 2), ("a b", 2), ("self.if == 1", 5), ("#", 0), ("'abc", 0), ("has(self)", 4)),
        *(("[1, 2].all(1, true)", 11), ("99999999999999999999", 0), ("'\\q'", 0), ("", 0)),
        *(("(" * 100 + "1" + ")" * 100, 50), ("!" * 200 + "true", 0), ("a" + ".b" * 400, 0), ("[" * 60 + "]" * 60, 50)),
    ],
)
def test_what_is_no_expression_is_refused_where_that_shows(text: str, at: int) -> None:
    with pytest.raises(CelSyntaxError) as trouble:
        parse(text)
    assert trouble.value.offset == at


def test_a_rule_that_would_run_for_ever_is_stopped_early() -> None:
    document = {"sizes": list(range(1000))}
    text = "self.sizes.all(a, self.sizes.all(b, self.sizes.all(c, a + b + c >= 0)))"
    before = time.process_time()
    with pytest.raises(CostError):
        evaluated(text, document, limit=1_000_000)
    assert time.process_time() - before < 10
    with pytest.raises(CostError):
        evaluated("'" + "a" * 5000 + "'.matches('" + "(a?)" * 50 + "')", limit=1000)


def test_a_long_chain_is_no_deep_one() -> None:
    assert evaluated(" && ".join(["true"] * 2000)) is True
    assert evaluated(" || ".join(["false"] * 2000)) is False


@given(st.integers(), st.integers())
def test_whole_numbers_are_go_s(a: int, b: int) -> None:
    a, b = a % (1 << 63), b % (1 << 63)
    for sign, value in (("+", a + b), ("-", a - b), ("*", a * b)):
        text = f"{a} {sign} {b}"
        if -(1 << 63) <= value < 1 << 63:
            assert evaluated(text) == value
        else:
            with pytest.raises(CelError, match="integer overflow"):
                evaluated(text)
    if b:
        assert evaluated(f"(-{a} / {b}) * {b} + (-{a} % {b}) == -{a}") is True


@given(st.text(max_size=30))
def test_no_text_is_more_than_refused(text: str) -> None:
    try:
        tree = parse(text)
    except CelSyntaxError:
        return
    check(tree, {"self": of_schema(SCHEMA)})
    try:
        Run(1000).value(tree, {"self": OBJECT})
    except CelError:
        return


@given(st.from_regex(r"[a-zA-Z_./-][a-zA-Z0-9_./-]{0,12}", fullmatch=True))
def test_a_property_that_can_be_named_is_found_by_its_name(name: str) -> None:
    found = escaped(name)
    assert found is not None and unescaped(found) == name


def test_times_and_durations_are_read_exactly() -> None:
    assert time_of("1970-01-01T00:00:00Z") == Time(0)
    assert time_of("2026-11-30T01:02:03+01:00") == time_of("2026-11-30T00:02:03Z")
    assert time_of("2026-13-01T00:00:00Z") is None and time_of("2026-11-30") is None
    assert span_of("1.5h") == span_of("90m") and span_of("-2ms") == span_of("-2000us") and span_of("1y") is None
    assert evaluated(
        "string(duration('90m')) == '5400s' && string(timestamp('2026-11-30T01:02:03.50Z')) == '2026-11-30T01:02:03.5Z'"
    )
    assert evaluated("1u") == UInt(1)
