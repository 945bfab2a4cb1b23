"""What the validation of several kinds asks."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError, forbidden, invalid, required
from elbowroom.api.names import label_value, qualified_name
from elbowroom.api.objects import LabelSelector
from elbowroom.api.selectors import of_view


def same(new: Any, old: Any, where: str) -> list[FieldError]:
    """``field is immutable`` unless both are equal."""
    return [] if new == old else [invalid(where, new, "field is immutable")]


def nonnegative(value: int | None, where: str) -> list[FieldError]:
    return [invalid(where, value, "must be greater than or equal to 0")] if value is not None and value < 0 else []


_NO_PERCENT = (
    "a valid percent string must be a numeric value followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is "
    "'[0-9]+%')"
)


def count_or_percent_errors(amount: int | str, where: str) -> list[FieldError]:
    """A number of pods, or a share of them of at most all."""
    if isinstance(amount, int):
        return nonnegative(amount, where)
    if not re.fullmatch("[0-9]+%", amount):
        return [invalid(where, amount, _NO_PERCENT)]
    return [invalid(where, amount, "must not be greater than 100%")] if int(amount[:-1]) > 100 else []


def label_selector_errors(selector: Mapping[str, Any], where: str) -> list[FieldError]:
    """What is wrong with a LabelSelector."""
    found: list[FieldError] = []
    for key, value in selector.get("matchLabels", {}).items():
        found += [invalid(f"{where}.matchLabels", key, finding) for finding in qualified_name(key)]
        found += [invalid(f"{where}.matchLabels", value, finding) for finding in label_value(value)]
    for index, expression in enumerate(selector.get("matchExpressions", ())):
        at = f"{where}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values", ())
        if operator in ("In", "NotIn"):
            if not values:
                found.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                found.append(forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
        else:
            found.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
        key = expression.get("key", "")
        found += [invalid(f"{at}.key", key, finding) for finding in qualified_name(key)]
        for number, value in enumerate(values):
            found += [invalid(f"{at}.values[{number}]", value, finding) for finding in label_value(value)]
    return found


def selector_of(selector: Mapping[str, Any]) -> Any:
    """A LabelSelector document as a selector that matches labels."""
    return of_view(msgspec.convert(selector, LabelSelector))
