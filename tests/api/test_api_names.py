"""Names: what upstream finds wrong with them."""

import pytest

from elbowroom.api import names


@pytest.mark.parametrize("text", ["a", "a-1", "0"])
def test_a_label_is_lower_case_without_dots(text: str) -> None:
    assert names.dns1123_label(text) == []


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("a.b", "must not contain dots"),
        (
            "A",
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an",
        ),
        ("a" * 64, "must be no more than 63 characters"),
    ],
)
def test_a_bad_label(text: str, finding: str) -> None:
    assert names.dns1123_label(text)[0].startswith(finding)


@pytest.mark.parametrize("text", ["a/b", "kubernetes.io/arch", "A_b.c", "x"])
def test_a_qualified_name_may_have_a_prefix(text: str) -> None:
    assert names.qualified_name(text) == []


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        ("-a/b", "prefix part a lowercase RFC 1123 subdomain must consist of"),
        ("a/b/c", "a valid label key must consist of alphanumeric characters"),
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("a b", "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with"),
    ],
)
def test_a_bad_qualified_name(text: str, finding: str) -> None:
    assert names.qualified_name(text)[0].startswith(finding)


def test_findings_quote_the_rule() -> None:
    assert names.dns1035_label("1a") == [
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
        "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    ]


def test_values_ports_and_addresses() -> None:
    assert names.label_value("") == [] and names.label_value("a b")
    assert names.port_name("http") == []
    assert names.port_name("") == [
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        "must contain at least one letter (a-z)",
    ]
    assert names.is_ip("10.0.0.1") and names.is_ip("::1") and not names.is_ip("nope")


def test_a_long_name_is_judged_at_once() -> None:
    assert names.dns1123_subdomain("a" * 1_000_000 + "!")
    assert names.dns1123_subdomain("a-" * 100_000)
