"""Pod disruption budgets."""

from collections.abc import Mapping
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError, not_supported
from elbowroom.apiserver.kinds.base import Resource, with_status
from elbowroom.apiserver.kinds.checks import count_or_percent_errors, label_selector_errors, nonnegative
from elbowroom.apiserver.strategy import Context, Document, Strategy


class BudgetStrategy(Strategy):
    group, kind, plural, singular = "policy", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget"
    short_names, has_generation = ("pdb",), True
    unconditional_update = False

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = _no_disruptions()

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return _budget_errors(new["spec"])

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["status"] = old["status"]

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return _budget_errors(new["spec"])


def _no_disruptions() -> Document:
    return {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _budget_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        text = msgspec.json.encode(shown).decode()
        found.append(
            FieldError("spec", "FieldValueInvalid", f"Invalid value: {text}: minAvailable and maxUnavailable cannot be both set")
        )
    for name, amount in (("minAvailable", least), ("maxUnavailable", most)):
        if amount is not None:
            found += count_or_percent_errors(amount, f"spec.{name}")
    if "selector" in spec:
        found += label_selector_errors(spec["selector"], "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("IfHealthyBudget", "AlwaysAllow"):
        found.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget")))
    return found


def _budget_status_errors(context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
    status = new.get("status", {})
    found: list[FieldError] = []
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        found += nonnegative(status.get(name, 0), f"status.{name}")
    return found


def row() -> Resource:
    """The row of budgets."""
    strategy = BudgetStrategy()
    return Resource(strategy, with_status(strategy, _budget_status_errors), name_rule="path")
