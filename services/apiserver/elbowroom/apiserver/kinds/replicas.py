"""Replica sets and deployments, and what every kind with a pod template shares."""

import re
from collections.abc import Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, forbidden, invalid, not_supported, required
from elbowroom.api.gates import Profile
from elbowroom.api.names import label_value, qualified_name
from elbowroom.apiserver.kinds.base import Resource, with_status
from elbowroom.apiserver.kinds.checks import (
    count_or_percent_errors,
    label_selector_errors,
    nonnegative,
    same,
    selector_of,
)
from elbowroom.apiserver.pod_defaults import default_pod_spec
from elbowroom.apiserver.pod_validation import validate_pod_spec
from elbowroom.apiserver.strategy import Context, Document, Strategy


def template_errors(profile: Profile, spec: Mapping[str, Any], what: str = "deployment") -> list[FieldError]:
    """The selector, and that the template bears the labels it asks for."""
    found: list[FieldError] = []
    selector = spec.get("selector")
    labels = spec.get("template", {}).get("metadata", {}).get("labels", {})
    if selector is None:
        found.append(required("spec.selector"))
    else:
        found += label_selector_errors(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            found.append(invalid("spec.selector", selector, f"empty selector is invalid for {what}"))
        elif not found and not selector_of(selector).matches(labels):
            found.append(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
    template = spec.get("template", {})
    labelled = template.get("metadata", {}).get("labels", {})
    for key, value in labelled.items():
        found += [invalid("spec.template.labels", key, finding) for finding in qualified_name(key)]
        found += [invalid("spec.template.labels", value, finding) for finding in label_value(value)]
    pod = template.get("spec", {})
    found += validate_pod_spec(pod, "spec.template.spec", assigned=profile.knows_assigned_resources)
    if pod.get("restartPolicy", "Always") != "Always":
        found.append(not_supported("spec.template.spec.restartPolicy", pod["restartPolicy"], ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        found.append(forbidden("spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds in ReplicaSet is not Supported"))
    return found


class Templated(Strategy):
    """What replica sets, deployments, stateful sets and daemon sets share."""

    group, categories, has_generation = "apps", ("all",), True

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        template = spec.setdefault("template", {})
        template.setdefault("metadata", {})
        default_pod_spec(template.setdefault("spec", {}))

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        new["status"] = old["status"]


class ReplicaSetStrategy(Templated):
    kind, plural, singular, short_names = "ReplicaSet", "replicasets", "replicaset", ("rs",)

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {"replicas": 0}

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        spec = new["spec"]
        return (
            nonnegative(spec.get("replicas"), "spec.replicas")
            + nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
            + template_errors(context.profile, spec)
        )

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return self.validate_create(context, new) + same(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")


class DeploymentStrategy(Templated):
    kind, plural, singular, short_names = "Deployment", "deployments", "deployment", ("deploy",)

    def default(self, document: Document) -> None:
        super().default(document)
        spec = document["spec"]
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {}

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        spec = new["spec"]
        found: list[FieldError] = []
        for name in ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
            found += nonnegative(spec.get(name), f"spec.{name}")
        if spec["progressDeadlineSeconds"] <= spec.get("minReadySeconds", 0):
            text = "must be greater than minReadySeconds"
            found.append(invalid("spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"], text))
        return found + _rollout_errors(spec["strategy"]) + template_errors(context.profile, spec)

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return self.validate_create(context, new) + same(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")

    def spec_changed(self, new: Document, old: Mapping[str, Any]) -> bool:
        return bool(new["spec"] != old["spec"] or new["metadata"].get("annotations") != old["metadata"].get("annotations"))


def _rollout_errors(strategy: Mapping[str, Any]) -> list[FieldError]:
    at = "spec.strategy"
    rolling = strategy.get("rollingUpdate")
    match strategy["type"]:
        case "Recreate":
            text = "may not be specified when strategy `type` is 'Recreate'"
            return [forbidden(f"{at}.rollingUpdate", text)] if rolling is not None else []
        case "RollingUpdate":
            found: list[FieldError] = []
            assert rolling is not None, "defaulted"
            for name in ("maxUnavailable", "maxSurge"):
                if not isinstance(rolling[name], int) and name == "maxSurge" and re.fullmatch("[0-9]+%", rolling[name]):
                    continue
                found += count_or_percent_errors(rolling[name], f"{at}.rollingUpdate.{name}")
            if all(str(rolling[name]).rstrip("%") == "0" for name in ("maxUnavailable", "maxSurge")):
                text = "may not be 0 when `maxSurge` is 0"
                found.append(invalid(f"{at}.rollingUpdate.maxUnavailable", rolling["maxUnavailable"], text))
            return found
        case other:
            return [not_supported(f"{at}.type", other, ("Recreate", "RollingUpdate"))]


def _scaled_status_errors(context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
    status = new.get("status", {})
    found: list[FieldError] = []
    for name in (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "unavailableReplicas",
    ):
        found += nonnegative(status.get(name), f"status.{name}")
    total = status.get("replicas", 0)
    for name in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
        if status.get(name, 0) > total:
            found.append(invalid(f"status.{name}", status[name], "cannot be greater than status.replicas"))
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        found.append(invalid("status.availableReplicas", status["availableReplicas"], "cannot be greater than readyReplicas"))
    return found


def rows() -> list[Resource]:
    """The rows of these kinds."""
    replica_set, deployment = ReplicaSetStrategy(), DeploymentStrategy()
    return [
        Resource(
            replica_set,
            with_status(replica_set, _scaled_status_errors),
            fields={"status.replicas": lambda document: str(document.get("status", {}).get("replicas", 0))},
            scales=True,
        ),
        Resource(deployment, with_status(deployment, _scaled_status_errors), scales=True),
    ]
