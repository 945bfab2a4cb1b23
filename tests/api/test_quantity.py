"""Quantities: what upstream stores for what was written, and laws against exact fractions."""

import math
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.api.quantity import (
    INT64_MAX,
    QuantityError,
    canonicalise,
    format_bytes,
    format_milli,
    format_value,
    milli_of,
    parse,
    value_of,
)

STORED = {
    " 1": "1",
    "+1": "+1",
    "-0": "0",
    ".25": "250m",
    "0": "0",
    "0.0": "0",
    "0.0000001Gi": "107375m",
    "0.0005": "1m",
    "0.125Gi": "128Mi",
    "0.5": "500m",
    "0.25Gi": "256Mi",
    "01": "01",
    "0m": "0",
    "1.0": "1",
    "1.0001": "1001m",
    "1.5Gi": "1536Mi",
    "1000000000n": "1",
    "1000m": "1",
    "1000": "1k",
    "100E": "100E",
    "100e-3": "100e-3",
    "1e-1": "100e-3",
    "100u": "1m",
    "1024Mi": "1Gi",
    "1048576Ki": "1Gi",
    "1073741824": "1073741824",
    "128.5Mi": "131584Ki",
    "16Ei": "9223372036854775807",
    "1E8": "100e6",
    "1e8": "100e6",
    "1e9": "1e9",
    "1e0": "1e0",
    "1e3": "1e3",
    "1n": "1m",
    "8589934592": "8589934592",
    "9223372036854775808": "9223372036854775808",
    "Mi": "0",
    ".": "0",
    "+": "0",
    "-64Mi": "-64Mi",
    "-9.5Gi": "-9728Mi",
    "1e-99999999999": "1e-3",
    "1000E": "1e21",
}


@pytest.mark.parametrize(("written", "stored"), STORED.items())
def test_a_resource_list_stores_the_canonical_text(written: str, stored: str) -> None:
    assert canonicalise(written) == stored


@pytest.mark.parametrize(
    "text", ["abc", "nan", "1.5.2", "64 Mi", "1e3m", "1Zi", "0x10", "", " ", "1_000", "１２", "1\x00", "9" * 65]
)
def test_a_text_of_another_shape_is_refused_with_upstreams_words(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        parse(text)


@pytest.mark.parametrize("text", ["1mm", "--1", "1e", "1iK", "1-5", "1e3000000", "1e1001", "1E+", "9e99999999999999999999"])
def test_an_unknown_suffix_or_an_enormous_exponent_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        parse(text)


def test_equal_amounts_are_equal_however_written() -> None:
    assert parse("1") == parse("1000m") == parse("1e0")
    assert hash(parse("1Gi")) == hash(parse("1024Mi"))
    assert parse("1k") < parse("1Ki") <= parse("1024") >= parse("1Ki") > parse("1023")


def test_accessors_round_up_and_stop_at_64_bits() -> None:
    assert (milli_of("1.0001"), value_of("1.5"), value_of("100m")) == (1001, 2, 1)
    assert value_of("100E") == value_of("9223372036854775808") == milli_of("1E") == INT64_MAX


def test_sums_keep_the_family_of_the_first_that_is_not_zero() -> None:
    assert str(parse("300Mi") - parse("128Mi")) == "172Mi"
    assert str(parse("0") + parse("1Gi")) == "1Gi"
    assert str(parse("1Gi") + parse("1")) == "1073741825"


@given(st.text(max_size=80) | st.from_regex(r"[+-]?[0-9.]{0,70}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,12}", fullmatch=True))
def test_no_text_takes_long_or_raises_anything_else(text: str) -> None:
    began = time.perf_counter()
    try:
        found = parse.__wrapped__(text)
        canonicalise(found.canonical())
    except QuantityError:
        pass
    assert time.perf_counter() - began < 0.5


def _fraction(number: str, suffix: str) -> Fraction:
    powers = dict(zip(["n", "u", "m", "k", "M", "G", "T", "P", "E"], (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True))
    binary = dict(zip(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], range(10, 70, 10), strict=True))
    if suffix in binary:
        return Fraction(number) * 2 ** binary[suffix]
    return Fraction(number) * Fraction(10) ** (int(suffix[1:]) if suffix[:1] == "e" else powers.get(suffix, 0))


numbers = st.from_regex(r"-?[0-9]{1,15}(\.[0-9]{1,12})?", fullmatch=True)
suffixes = st.sampled_from(
    ["n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e-2", "e7", "e-9"]
) | st.just("")


@given(numbers, suffixes)
def test_the_amount_is_that_of_exact_fractions_rounded_away_from_zero_at_nano(number: str, suffix: str) -> None:
    exact = abs(_fraction(number, suffix))
    if suffix.endswith("i"):
        exact = min(exact, Fraction(INT64_MAX))
    nanos = math.ceil(exact * 10**9)
    assert abs(parse(number + suffix).nanos) == nanos


@given(numbers, suffixes)
def test_the_canonical_text_says_the_same_and_is_its_own_canonical_text(number: str, suffix: str) -> None:
    found = parse(number + suffix)
    again = parse(found.canonical())
    assert again == found
    assert again.canonical() == found.canonical()


@given(numbers, suffixes)
def test_canonicalising_twice_changes_nothing(number: str, suffix: str) -> None:
    once = canonicalise(number + suffix)
    assert canonicalise(once) == once


@given(st.integers(-INT64_MAX, INT64_MAX))
def test_formatted_amounts_parse_back(amount: int) -> None:
    assert parse(format_milli(amount)).nanos == amount * 10**6
    assert parse(format_bytes(amount)).nanos == parse(format_value(amount)).nanos == amount * 10**9


@pytest.mark.parametrize(
    ("text", "milli", "value"),
    [
        ("100E", 0, 0),
        ("12E", 0, 0),
        ("9E", 0, 9 * 10**18),
        ("9P", 9 * 10**18, 9 * 10**15),
        ("1500m", 1500, 2),
        ("16Ei", 0, 2**63 - 1),
    ],
)
def test_what_64_bits_cannot_hold_reads_zero_where_upstream_says_so(text: str, milli: int, value: int) -> None:
    assert (parse(text).milli_or_zero, parse(text).value_or_zero) == (milli, value)


def test_exponents_far_above_any_machine_are_still_numbers() -> None:
    assert parse("1e400").canonical() == "10e399"
    assert parse("1e400") > parse("1e399")
