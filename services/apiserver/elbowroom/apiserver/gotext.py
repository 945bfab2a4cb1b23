"""Values as Go prints them with ``%v``: upstream's messages quote patches and lists so."""

from typing import Any


def go_text(value: Any) -> str:
    """``map[a:1 b:[x y]]``: keys sorted, strings bare, null as ``<nil>``."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(go_text, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    return "<nil>" if value is None else str(value)


def _float(value: float) -> str:
    """``%v`` of a float64: the shortest digits that give it back, with an exponent below 1e-4 and from 1e21 on."""
    text = repr(value)
    mantissa, has_exponent, exponent = text.partition("e")
    if not has_exponent:
        return text.removesuffix(".0")
    sign, digits = exponent[0] if exponent[0] in "+-" else "+", exponent.lstrip("+-")
    if sign == "+" and int(digits) < 21:
        return str(int(value))
    return f"{mantissa.removesuffix('.0')}e{sign}{digits.zfill(2)}"


def go_type(value: Any) -> str:
    """The Go type of a decoded JSON value."""
    names = {
        dict: "map[string]interface {}",
        list: "[]interface {}",
        str: "string",
        bool: "bool",
        int: "int64",
        float: "float64",
    }
    return names.get(type(value), "%!s(<nil>)")


def is_true(text: str) -> bool:
    """What a query says of a boolean: only these two say no."""
    return text != "0" and text.lower() != "false"
