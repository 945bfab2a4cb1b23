"""What limit ranges and quotas may say, in upstream's words."""

from typing import Any

import pytest
from apiserver_world import World

STANDARD = "must be a standard resource type or fully qualified"
OF_QUOTAS, OF_CONTAINERS = "must be a standard resource for quotas", "must be a standard resource for containers"
EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
SELECTOR = "spec.scopeSelector.matchExpressions"


def findings(resource: str, spec: dict[str, Any]) -> list[str]:
    answer = World().create(resource, {"metadata": {"name": "x"}, "spec": spec}, "default")
    if answer.status == 201:
        return []
    assert answer.status == 422, answer.body
    return [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]


@pytest.mark.parametrize(
    ("limit", "wanted"),
    [
        ({"type": "Pod", "max": {"pods": "1"}}, [f'spec.limits[0].max[pods]: Invalid value: "pods": {OF_CONTAINERS}']),
        ({"type": "Pod", "max": {"nope": "1"}},
         [f'spec.limits[0].max[nope]: Invalid value: "nope": {STANDARD}',
          f'spec.limits[0].max[nope]: Invalid value: "nope": {OF_CONTAINERS}']),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1", "pods": "1"}}, []),
        ({"type": "a.b/c", "max": {"nope": "1"}}, [f'spec.limits[0].max[nope]: Invalid value: "nope": {STANDARD}']),
        ({"type": "a.b/c", "default": {"x.y/z": "2"}, "defaultRequest": {"x.y/z": "1"}},
         ['spec.limits[0].defaultRequest[x.y/z]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in '
          "x.y/z"]),
    ],
)  # fmt: skip
def test_what_a_limit_range_may_not_say(limit: dict[str, Any], wanted: list[str]) -> None:
    assert findings("limitranges", {"limits": [limit]}) == wanted


def expression(scope: str, operator: str = "Exists", **more: Any) -> dict[str, Any]:
    return {"scopeName": scope, "operator": operator, **more}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"hard": {"nope": "1"}},
         [f'spec.hard[nope]: Invalid value: "nope": {STANDARD}', f'spec.hard[nope]: Invalid value: "nope": {OF_QUOTAS}']),
        ({"hard": {"storage": "1"}}, [f'spec.hard[storage]: Invalid value: "storage": {OF_QUOTAS}']),
        ({"hard": {"a.b/c": "1500m"}}, ['spec.hard[a.b/c]: Invalid value: "1500m": must be an integer']),
        ({"hard": {"requests.a.b/c": "1500m", "cpu": "1500m"}}, []),
        ({"hard": {"ephemeral-storage": "1"}, "scopes": ["Terminating"]},
         ['spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to resource']),
        ({"hard": {"pods": "1"}, "scopes": ["VolumeAttributesClass"]},
         ['spec.scopes: Invalid value: ["VolumeAttributesClass"]: unsupported scope applied to resource']),
        ({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [expression("BestEffort", "In", values=["a"])]}},
         [f'{SELECTOR}.operator: Invalid value: "In": {EXISTS}']),
        ({"hard": {"services": "1"}, "scopeSelector": {"matchExpressions": [expression("BestEffort")]}},
         [f'{SELECTOR}: Invalid value: {{"MatchExpressions":[{{"ScopeName":"BestEffort","Operator":"Exists","Values":null}}]}}: '
          "unsupported scope applied to resource"]),
        ({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [expression("BestEffort"), expression("NotBestEffort")]}},
         [f"{SELECTOR}: Invalid value: null: conflicting scopes"]),
    ],
)  # fmt: skip
def test_what_a_quota_may_not_say(spec: dict[str, Any], wanted: list[str]) -> None:
    assert findings("resourcequotas", spec) == wanted
