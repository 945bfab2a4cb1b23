"""What names, labels and keys may look like; each check gives upstream's findings, an empty list if all is well."""

import ipaddress
import re
from functools import lru_cache

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"


def _finding(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_FINDING = _finding(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_FINDING = _finding(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_LABEL_1035_FINDING = _finding(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with "
    "an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_QUALIFIED_FINDING = _finding(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_DATA_KEY = "[-._a-zA-Z0-9]+"
_DATA_KEY_FINDING = _finding(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'", _DATA_KEY, "key.name", "KEY_NAME", "key-name"
)
_HEADER = "[-A-Za-z0-9]+"
_HEADER_FINDING = _finding("a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name")
_UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_DOMAIN = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"
_SEARCH_DOMAIN_FINDING = _finding(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end "
    "with an alphanumeric character",
    _SEARCH_DOMAIN,
    "example.com",
)
_LABEL_VALUE_FINDING = _finding(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)


_REMEMBERED_MAX = 320
"""What is found about longer texts is not remembered: they are wrong anyway."""


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _check(text: str, pattern: str, finding: str, longest: int, unit: str = "characters") -> list[str]:
    found = [] if len(text.encode(errors="surrogatepass")) <= longest else [f"must be no more than {longest} {unit}"]
    if not _compiled(pattern).fullmatch(text):
        found.append(finding)
    return found


def dns1123_label(text: str) -> list[str]:
    """A namespace's or container's name."""
    found = _check(text, _LABEL, _LABEL_FINDING, 63)
    if found and found[-1] is _LABEL_FINDING and _compiled(_SUBDOMAIN).fullmatch(text) is not None:
        found[-1] = "must not contain dots"
    return found


def dns1123_subdomain(text: str) -> list[str]:
    """The name of most objects."""
    return _check(text, _SUBDOMAIN, _SUBDOMAIN_FINDING, 253)


def search_domain(text: str) -> list[str]:
    """A domain that a resolver completes names with; its labels may have underscores."""
    return _check(text, _SEARCH_DOMAIN, _SEARCH_DOMAIN_FINDING, 253)


def generated_name(text: str) -> list[str]:
    """A name, or the beginning of one that a random end is added to: it may end with a dash."""
    return dns1123_subdomain(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def data_key(text: str) -> list[str]:
    """A key of a config map or a secret."""
    found = _check(text, _DATA_KEY, _DATA_KEY_FINDING, 253)
    if text in (".", ".."):
        found.append(f"must not be '{text}'")
    elif text.startswith(".."):
        found.append("must not start with '..'")
    return found


def header_name(text: str) -> list[str]:
    """The name of an HTTP header."""
    return [] if _compiled(_HEADER).fullmatch(text) else [_HEADER_FINDING]


def dns1035_label(text: str) -> list[str]:
    """A service's name."""
    return _check(text, _LABEL_1035, _LABEL_1035_FINDING, 63)


def qualified_name(text: str) -> list[str]:
    """A label's or annotation's key, a resource's name, a condition's type: ``[prefix/]name``. What is found is remembered: few are
    in use, and each write brings them again."""
    return list(_qualified(text)) if len(text) <= _REMEMBERED_MAX else _qualified.__wrapped__(text)


@lru_cache(maxsize=4096)
def _qualified(text: str) -> list[str]:
    prefix, slash, name = text.partition("/")
    if not slash:
        prefix, name = "", prefix
    elif "/" in name:
        return [f"a valid label key {_QUALIFIED_FINDING} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += [f"prefix part {finding}" for finding in _check(prefix, _SUBDOMAIN, _SUBDOMAIN_FINDING, 253, "bytes")]
    if not name:
        found.append("name part must be non-empty")
    return found + [f"name part {finding}" for finding in _check(name, _QUALIFIED, _QUALIFIED_FINDING, 63, "bytes")]


def label_value(text: str) -> list[str]:
    """A label's value."""
    return _check(text, _LABEL_VALUE, _LABEL_VALUE_FINDING, 63, "bytes")


def port_name(text: str) -> list[str]:
    """The name of a container's port."""
    found = [] if len(text) <= 15 else ["must be no more than 15 characters"]
    if not _compiled("[-a-z0-9]+").fullmatch(text):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _compiled(".*[a-z].*").fullmatch(text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def is_ip(text: str) -> bool:
    """Is it an IPv4 or IPv6 address?"""
    return not ip_address(text)


def ip_address(text: str) -> list[str]:
    """An IPv4 or IPv6 address. What is found is remembered: nodes' addresses come again with each of their pods."""
    return list(_address(text)) if len(text) <= _REMEMBERED_MAX else _address.__wrapped__(text)


@lru_cache(maxsize=4096)
def _address(text: str) -> list[str]:
    bare = _without_leading_zeros(text)
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    if bare != text:
        return ["must not have leading 0s"]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def cidr(text: str) -> list[str]:
    """A subnet: an address whose bits beyond the prefix are zero, and the length of the prefix."""
    address, slash, length = text.partition("/")
    bare = f"{_without_leading_zeros(address)}/{length.lstrip('0') or '0'}"
    try:
        if not slash or not _compiled("[0-9]+").fullmatch(length):
            raise ValueError
        network = ipaddress.ip_interface(bare)
    except ValueError:
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    if bare != text:
        return ["must not have leading 0s in IP or prefix length"]
    if isinstance(network.ip, ipaddress.IPv6Address) and network.ip.ipv4_mapped is not None:
        return ["must not have an IPv4-mapped IPv6 address"]
    return [] if network.ip == network.network.network_address else ["must not have bits set beyond the prefix length"]


def _without_leading_zeros(address: str) -> str:
    """``010.1.2.3`` as ``10.1.2.3``, which upstream tells apart from what is no address at all."""
    if not _compiled(r"[0-9]+(\.[0-9]+){3}").fullmatch(address):
        return address
    return ".".join(part.lstrip("0") or "0" for part in address.split("."))
