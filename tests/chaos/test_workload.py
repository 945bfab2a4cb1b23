"""What users and rules of a scenario are, request by request."""

from random import Random
from typing import Any

import msgspec
import pytest

from elbowroom.deploy.chaos import workload
from elbowroom.deploy.chaos.scenario import Body, Pager, Replacer, Rules, Scenario
from elbowroom.deploy.chaos.workload import WORKLOAD, Ask, Doing, Wait
from elbowroom.wire import ApiRequest, ApiResponse


class Asked:
    """A user and the API that answers him, by what the test says."""

    def __init__(self, doing: Doing) -> None:
        self._doing = doing
        self._next = doing.send(None)

    def request(self) -> ApiRequest:
        """The next request, pauses left out."""
        while isinstance(self._next, Wait):
            self._next = self._doing.send(None)
        assert isinstance(self._next, Ask)
        return self._next.request

    def answer(self, status: int, document: Any = None) -> None:
        request = self.request()
        assert isinstance(self._next, Ask)
        assert status < 300 or status in self._next.allowed, f"{status} is no answer that {request.verb} stands"
        self._next = self._doing.send(ApiResponse(status, msgspec.json.encode(document or {})))


def user(made: Replacer | Pager) -> Asked:
    ((_, doing),) = workload.users(Body(about="x", users=[made]), seed=1)
    return Asked(doing)


def a_pod(uid: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid}}


def test_a_pod_is_made_again_under_its_name_once_the_one_before_is_gone() -> None:
    it = user(Replacer(does="replace", at_once=1, force=1.0))
    name = it.request()
    for uid in ("one", "two"):
        assert it.request().verb == "create"
        it.answer(201)
        it.answer(200, a_pod(uid))
        assert (it.request().verb, it.request().subresource) == ("patch", "resize")
        it.answer(404)
        assert it.request().verb == "delete" and b'"gracePeriodSeconds":0' in it.request().body
        it.answer(200)
        assert it.request().verb == "create"
        it.answer(409)
        it.answer(200, a_pod(uid))  # it still ends, so it is asked for again
    assert it.request().verb == "create" == name.verb


def test_a_pod_that_a_rule_forbids_is_asked_for_again() -> None:
    it = user(Replacer(does="replace", at_once=1, force=0.0))
    it.answer(403)
    it.answer(404)
    assert it.request().verb == "create"
    it.answer(409)  # one attempt that was not answered has made it after all
    it.answer(200, a_pod("one"))
    it.answer(200)
    assert it.request().verb == "delete" and b"gracePeriodSeconds" not in it.request().body


def test_a_list_is_gone_through_page_by_page_and_begins_anew_when_it_is_too_old() -> None:
    it = user(Pager(does="page", limit=2))
    assert it.request().query == {"limit": "2"}
    it.answer(200, {"metadata": {"continue": "t"}})
    assert it.request().query == {"limit": "2", "continue": "t"}
    it.answer(200, {"metadata": {}})
    assert it.request().query == {"limit": "2"}
    it.answer(200, {"metadata": {"continue": "u"}})
    it.answer(410)
    assert it.request().query == {"limit": "2"}


def test_what_ends_leaves_what_others_began() -> None:
    pod: dict[str, Any] = {"metadata": {"annotations": {WORKLOAD: '{"c":{"stopSeconds":3}}'}}}

    def told(behaviour: dict[str, Any], *, begins: bool) -> Any:
        annotations = workload.behaving(pod, behaviour, begins=begins)
        pod["metadata"]["annotations"] = annotations
        return msgspec.json.decode(annotations[WORKLOAD])["c"]

    told({"resizeError": 2}, begins=True)
    assert told({"memoryUsage": "1Gi"}, begins=True) == {"stopSeconds": 3, "resizeError": 2, "memoryUsage": "1Gi"}
    assert told({"resizeError": 2}, begins=False) == {"stopSeconds": 3, "memoryUsage": "1Gi"}
    assert told({"memoryUsage": "2Gi"}, begins=True) == {"stopSeconds": 3, "memoryUsage": "2Gi"}
    assert told({"memoryUsage": "1Gi"}, begins=False) == {"stopSeconds": 3}


@pytest.mark.parametrize(
    ("of", "resource", "facts"),
    [
        ("quota", "resourcequotas", {"hard": {"requests.memory": "1Gi"}}),
        ("limitRange", "limitranges", {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}),
        ("budget", "poddisruptionbudgets.policy", {"minAvailable": 1000, "selector": {}}),
    ],
)
def test_a_rule_is_of_the_kind_that_is_asked_for(of: Any, resource: str, facts: dict[str, Any]) -> None:
    found, document = workload.rule(Rules(kind="rules", of=[of], memory=["1Gi"]), "r", Random(1))
    assert (found, document["spec"], document["metadata"]) == (resource, facts, {"name": "r"})


def test_a_scenario_under_another_profile_is_otherwise_the_same() -> None:
    made = Scenario.model_validate(
        {"apiVersion": "elbowroom.dev/v1alpha1", "kind": "Chaos", "metadata": {"name": "x"}, "spec": {"about": "y"}}
    )
    other = made.under("v1.37")
    assert made.under(None) is made
    assert other.spec.cluster.profile == "v1.37"
    assert other.spec.cluster.feature_gates == {"InPlacePodVerticalScalingSchedulerPreemption": True}
    assert made.spec.cluster.profile == "lab" and other.spec.about == "y"
