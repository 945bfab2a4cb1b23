"""Deletion: graceful and not, finalizers, preconditions, eviction and its budgets, namespaces."""

from typing import Any

import msgspec
import pytest
from apiserver_world import World, a_node, a_pod

from elbowroom.apiserver import removal
from elbowroom.apiserver.intake import DeleteOptions
from elbowroom.machine import Instant
from elbowroom.rpc import MERGE_PATCH, requests
from elbowroom.wire import ApiRequest


def a_world(**pod: Any) -> World:
    world = World()
    world.create("nodes", a_node())
    assert world.create("pods", a_pod(**pod), "default").status == 201
    return world


def a_pod_of(world: World) -> dict[str, Any] | None:
    answer = world.get("pods", "a", namespace="default")
    return answer.body if answer.status == 200 else None


def test_a_pod_on_a_node_is_marked_and_waits_for_its_kubelet() -> None:
    world = a_world(node="n1", grace=20)
    deleted = world.delete("pods", "a", "default").body
    meta = deleted["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"], meta["generation"]) == ("2027-01-15T08:00:20Z", 20, 2)
    assert a_pod_of(world) == deleted
    assert world.delete("pods", "a", "default", gracePeriodSeconds=0, preconditions={"uid": meta["uid"]}).status == 200
    assert a_pod_of(world) is None


@pytest.mark.parametrize(
    ("first", "second", "grace"),
    [(20, 30, 20), (20, 20, 20), (20, None, 20), (20, 5, 5)],
)
def test_a_later_deletion_may_shorten_the_time_and_never_lengthen_it(first: int, second: int | None, grace: int) -> None:
    world = a_world(node="n1", grace=first)
    world.delete("pods", "a", "default")
    world.now += 3_000_000_000
    options = {} if second is None else {"gracePeriodSeconds": second}
    world.delete("pods", "a", "default", **options)
    pod = a_pod_of(world)
    assert pod is not None
    meta = pod["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["generation"]) == (grace, 2)
    assert meta["deletionTimestamp"] == f"2027-01-15T08:00:{grace:02d}Z"


@pytest.mark.parametrize("pod", [{"grace": 30}, {"node": "n1", "grace": 0}])
def test_a_pod_that_nobody_stops_ends_at_once(pod: dict[str, Any]) -> None:
    world = a_world(**pod)
    watch = world.watch("pods", "default", resourceVersion=str(world.get("pods", "a", namespace="default").revision))
    deleted = world.delete("pods", "a", "default").body
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 0 and a_pod_of(world) is None
    assert [change for change, _ in watch.told] == ["MODIFIED", "DELETED"]


@pytest.mark.parametrize("grace", [0, None, 30])
def test_a_removal_that_was_broken_off_after_its_mark_is_ended_by_the_next_deletion(grace: int | None) -> None:
    """The mark and the removal are two writes: an API server may die between them."""
    marked = {
        "metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z", "deletionGracePeriodSeconds": 0},
        "spec": {"nodeName": "n1"},
    }
    decided = removal.decide(marked, DeleteOptions(grace_seconds=grace), Instant(0), graceful=True)
    assert (decided.marked, decided.ends) == (None, True)
    kept = {**marked, "metadata": {**marked["metadata"], "finalizers": ["example.com/x"]}}
    assert removal.decide(kept, DeleteOptions(grace_seconds=grace), Instant(0), graceful=True).ends is False


def test_an_ended_pod_goes_at_once() -> None:
    world = a_world(node="n1")
    world.patch("pods", "a", {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status")
    world.delete("pods", "a", "default")
    assert a_pod_of(world) is None


def test_a_negative_grace_period_is_one_second() -> None:
    world = a_world(node="n1")
    assert world.delete("pods", "a", "default", gracePeriodSeconds=-5).body["metadata"]["deletionGracePeriodSeconds"] == 1


def test_other_kinds_answer_with_a_status_that_says_what_went() -> None:
    world = World()
    uid = world.create("configmaps", {"metadata": {"name": "c"}}, "default").body["metadata"]["uid"]
    assert world.delete("configmaps", "c", "default").body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "c", "kind": "configmaps", "uid": uid},
    }


# ---------------------------------------------------------------- finalizers


def test_an_object_with_finalizers_waits_until_the_last_is_gone() -> None:
    world = World()
    world.create("configmaps", {"metadata": {"name": "c", "finalizers": ["a.b/c", "d.e/f"]}}, "default")
    marked = world.delete("configmaps", "c", "default").body
    assert (
        marked["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:00Z" and marked["metadata"]["deletionGracePeriodSeconds"] == 0
    )
    again = world.delete("configmaps", "c", "default").body
    assert again == marked
    patch = {"namespace": "default", "kind": MERGE_PATCH}
    added = world.patch("configmaps", "c", {"metadata": {"finalizers": ["a.b/c", "d.e/f", "x.y/z"]}}, **patch)
    assert added.status == 422 and 'found new finalizers []string{"x.y/z"}' in added.message
    assert world.patch("configmaps", "c", {"metadata": {"finalizers": ["d.e/f"]}}, **patch).status == 200
    watch = world.watch("configmaps", "default")
    last = world.patch("configmaps", "c", {"metadata": {"finalizers": None}}, **patch)
    assert last.status == 200 and "finalizers" not in last.body["metadata"]
    assert world.get("configmaps", "c", namespace="default").status == 404
    assert watch.told == [("ADDED", "c"), ("DELETED", "c")]


def test_a_pod_with_finalizers_outlives_its_last_deletion() -> None:
    world = a_world(node="n1")
    world.patch("pods", "a", {"metadata": {"finalizers": ["a.b/c"]}}, namespace="default")
    world.delete("pods", "a", "default", gracePeriodSeconds=0)
    assert a_pod_of(world) is not None
    world.patch("pods", "a", {"metadata": {"finalizers": []}}, namespace="default", kind=MERGE_PATCH)
    assert a_pod_of(world) is None


@pytest.mark.parametrize(("policy", "finalizers"), [("Orphan", ["orphan"]), ("Foreground", ["foregroundDeletion"])])
def test_propagation_leaves_the_collector_its_finalizer(policy: str, finalizers: list[str]) -> None:
    world = World()
    world.create("configmaps", {"metadata": {"name": "c"}}, "default")
    assert world.delete("configmaps", "c", "default", propagationPolicy=policy).body["metadata"]["finalizers"] == finalizers
    assert world.delete("configmaps", "c", "default", propagationPolicy="Background").body["status"] == "Success"


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (
            {"preconditions": {"uid": "x"}},
            409,
            'Operation cannot be fulfilled on Pod "a": the UID in the precondition (x) does not match the UID in record',
        ),
        (
            {"preconditions": {"resourceVersion": "1"}},
            409,
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record",
        ),
        ({"propagationPolicy": "x"}, 422, 'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x"'),
        (
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            422,
            "orphanDependents and deletionPropagation cannot be both set",
        ),
        (
            {"gracePeriodSeconds": "x"},
            400,
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        ({"kind": "Pod", "apiVersion": "v1"}, 400, 'no kind "Pod" is registered for version "v1"'),
    ],
)
def test_a_deletion_that_cannot_be_is_refused_in_upstreams_words(options: Any, code: int, words: str) -> None:
    world = a_world()
    answer = world.delete("pods", "a", "default", **options)
    assert answer.status == code and words in answer.message
    assert a_pod_of(world) is not None


def test_a_collection_is_deleted_by_selector() -> None:
    world = World()
    for name in "abc":
        world.create("configmaps", {"metadata": {"name": name, "labels": {"l": name}}}, "default")
    answer = world.ask(ApiRequest("deletecollection", "configmaps", namespace="default", query={"labelSelector": "l in (a,c)"}))
    assert answer.body["kind"] == "ConfigMapList" and [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    assert [item["metadata"]["name"] for item in world.list("configmaps", "default").body["items"]] == ["b"]


def test_a_deleted_collection_is_shown_as_it_was_and_by_pages() -> None:
    world = World()
    for name in "abc":
        world.create("configmaps", {"metadata": {"name": name, "finalizers": ["a.b/c"]}}, "default")
    answer = world.ask(ApiRequest("deletecollection", "configmaps", namespace="default", query={"limit": "2"}))
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "b"]
    assert all("deletionTimestamp" not in item["metadata"] for item in answer.body["items"])
    assert answer.body["metadata"]["continue"] and answer.body["metadata"]["remainingItemCount"] == 1
    marked = ["deletionTimestamp" in item["metadata"] for item in world.list("configmaps", "default").body["items"]]
    assert marked == [True, True, False]


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"continue": "x"}, 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"),
        ({"resourceVersionMatch": "Exact"}, 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ({"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
    ],
)
def test_a_collection_is_deleted_with_the_options_of_a_list(query: dict[str, str], code: int, words: str) -> None:
    answer = World().ask(ApiRequest("deletecollection", "configmaps", namespace="default", query=query))
    assert answer.status == code and words in answer.message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"x", "invalid character 'x' looking for beginning of value"),
        (b'{"kind":5}', "json: cannot unmarshal number into Go struct field .kind of type string"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_read_are_told_of_barely(body: bytes, message: str) -> None:
    world = World()
    world.create("configmaps", {"metadata": {"name": "c"}}, "default")
    answer = world.ask(ApiRequest("delete", "configmaps", namespace="default", name="c", body=body))
    assert (answer.status, answer.message) == (400, f"couldn't get version/kind; json parse error: {message}")


@pytest.mark.parametrize(("options", "code"), [({"orphanDependents": False}, 202), ({"orphanDependents": True}, 200), ({}, 200)])
def test_what_is_only_marked_is_accepted_from_who_would_not_orphan(options: dict[str, bool], code: int) -> None:
    world = a_world(node="n1")
    assert world.delete("pods", "a", "default", **options).status == code


# ---------------------------------------------------------------- eviction


def evicted(world: World, **body: Any) -> Any:
    return world.ask(
        requests.create("pods", {"metadata": {"name": "a"}, **body}, namespace="default", name="a", subresource="eviction")
    )


def under_a_budget(allowed: int, *, generation: int = 1, ready: bool = True, **spec: Any) -> World:
    world = a_world(node="n1")
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    world.patch("pods", "a", {"metadata": {"labels": {"app": "x"}}}, namespace="default")
    world.patch("pods", "a", {"status": {"phase": "Running", "conditions": conditions}}, namespace="default", subresource="status")
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}, **spec}}
    world.create("poddisruptionbudgets.policy", budget, "default")
    status = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    world.patch("poddisruptionbudgets.policy", "b", {"status": status}, namespace="default", subresource="status", kind=MERGE_PATCH)
    return world


def test_an_eviction_pays_from_the_budget_and_says_why_the_pod_goes() -> None:
    world = under_a_budget(1)
    answer = evicted(world)
    assert (answer.status, answer.body["status"], answer.body["code"]) == (201, "Success", 201)
    status = world.get("poddisruptionbudgets.policy", "b", namespace="default").body["status"]
    assert status["disruptionsAllowed"] == 0 and status["disruptedPods"] == {"a": "2027-01-15T08:00:00Z"}
    assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [
        ("DisruptionAllowed", "False", "InsufficientPods")
    ]
    pod = a_pod_of(world)
    assert pod is not None and pod["metadata"]["deletionGracePeriodSeconds"] == 30
    target = next(c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"], target["message"]) == ("True", "EvictionByEvictionAPI", "Eviction API: evicting")


def test_an_eviction_that_would_break_the_budget_is_429() -> None:
    world = under_a_budget(0)
    before = dict(world.disk)
    answer = evicted(world)
    assert (answer.status, answer.message) == (429, "Cannot evict pod as it would violate the pod's disruption budget.")
    assert answer.body["details"] == {
        "causes": [{"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}]
    }
    assert world.disk == before


def test_a_budget_that_its_controller_has_not_seen_yet_makes_evictions_wait() -> None:
    answer = evicted(under_a_budget(5, generation=0))
    assert answer.status == 429 and answer.body["details"]["retryAfterSeconds"] == 10
    assert answer.body["details"]["causes"][0]["message"] == "The disruption budget b is still being processed by the server."


@pytest.mark.parametrize(
    ("ready", "policy", "status"), [(True, None, 429), (False, None, 201), (False, "AlwaysAllow", 201), (True, "AlwaysAllow", 429)]
)
def test_a_pod_that_is_not_ready_is_guarded_less(ready: bool, policy: str | None, status: int) -> None:
    spec = {} if policy is None else {"unhealthyPodEvictionPolicy": policy}
    assert evicted(under_a_budget(0, ready=ready, **spec)).status == status


def test_an_eviction_that_cannot_delete_has_told_the_pod_and_paid_by_then() -> None:
    world = under_a_budget(1)
    answer = evicted(world, deleteOptions={"propagationPolicy": "x"})
    assert (answer.status, answer.body["details"]["causes"][0]["field"]) == (422, "propagationPolicy")
    pod = a_pod_of(world)
    assert pod is not None and "deletionTimestamp" not in pod["metadata"]
    assert any(condition["reason"] == "EvictionByEvictionAPI" for condition in pod["status"]["conditions"] if "reason" in condition)
    budget = world.get("poddisruptionbudgets.policy", "b", namespace="default").body
    assert budget["status"]["disruptionsAllowed"] == 0


def test_two_ways_to_ask_for_a_trial_eviction_must_agree() -> None:
    world = under_a_budget(1)
    before = dict(world.disk)
    request = requests.create("pods", {"metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All", "All"]}}, namespace="default",
                              name="a", subresource="eviction")  # fmt: skip
    answer = world.ask(msgspec.structs.replace(request, query={"dryRun": "All"}))
    assert (answer.status, answer.body.get("reason", "")) == (500, "")
    assert answer.message == "Non-matching dry-run options in request and content: [All] and [All All]"
    assert world.disk == before


def test_two_budgets_for_one_pod_are_an_error() -> None:
    world = under_a_budget(1)
    budget = {"metadata": {"name": "c"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
    world.create("poddisruptionbudgets.policy", budget, "default")
    answer = evicted(world)
    assert answer.status == 500 and "more than one PodDisruptionBudget" in answer.message


def test_a_pending_pod_needs_no_budget() -> None:
    world = under_a_budget(0)
    world.patch("pods", "a", {"status": {"phase": "Pending"}}, namespace="default", subresource="status")
    assert evicted(world).status == 201


# ---------------------------------------------------------------- namespaces


def test_a_namespace_is_emptied_before_it_goes() -> None:
    world = World()
    made = world.create("namespaces", {"metadata": {"name": "n"}}).body
    assert (made["status"], made["spec"], made["metadata"]["labels"]) == (
        {"phase": "Active"},
        {"finalizers": ["kubernetes"]},
        {"kubernetes.io/metadata.name": "n"},
    )
    marked = world.delete("namespaces", "n").body
    assert marked["status"]["phase"] == "Terminating" and marked["metadata"]["deletionTimestamp"]
    refused = world.create("configmaps", {"metadata": {"name": "c"}}, "n")
    assert refused.status == 403 and "because it is being terminated" in refused.message
    assert world.delete("namespaces", "n").status == 200 and world.get("namespaces", "n").status == 200
    done = world.update("namespaces", "n", {"metadata": {"name": "n"}, "spec": {"finalizers": []}}, subresource="finalize")
    assert done.status == 200 and world.get("namespaces", "n").status == 404


def test_some_namespaces_stay() -> None:
    answer = World().delete("namespaces", "default")
    assert answer.status == 403 and "this namespace may not be deleted" in answer.message
