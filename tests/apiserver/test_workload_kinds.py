"""Workloads, autoscalers, secrets and their like, as the registry keeps them."""

from typing import Any

import msgspec
import pytest
from apiserver_world import Answer, World

from elbowroom.rpc import MERGE_PATCH
from elbowroom.wire import ApiRequest

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"a": "b"}}


def a_template(**spec: Any) -> dict[str, Any]:
    return {**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}}


def a_set(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "s"}, "spec": {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE, **spec}}


def a_daemon_set(**rolling: Any) -> dict[str, Any]:
    return a_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})


def a_job(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "j"}, "spec": {"template": a_template(restartPolicy="Never"), **spec}}


def a_cron_job(**spec: Any) -> dict[str, Any]:
    job = {"spec": {"template": a_template(restartPolicy="Never")}}
    return {"metadata": {"name": "cj"}, "spec": {"schedule": "* * * * *", "jobTemplate": job, **spec}}


@pytest.fixture
def world() -> World:
    return World()


def test_a_stateful_set_has_upstreams_defaults_and_a_scale(world: World) -> None:
    made = world.create("statefulsets.apps", a_set(), "default")
    assert made.status == 201, made.message
    spec = made.body["spec"]
    assert (spec["replicas"], spec["podManagementPolicy"]) == (1, "OrderedReady")
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    scale = world.get("statefulsets.apps", "s", namespace="default", subresource="scale").body
    assert (scale["spec"], scale["status"]["selector"]) == ({"replicas": 1}, "a=b")


def test_little_of_a_stateful_set_can_change(world: World) -> None:
    world.create("statefulsets.apps", a_set(), "default")
    answer = world.patch("statefulsets.apps", "s", {"spec": {"serviceName": "x"}}, namespace="default", kind=MERGE_PATCH)
    assert answer.message.startswith(
        'StatefulSet.apps "s" is invalid: spec: Forbidden: updates to statefulset spec for fields other'
    )
    changed = {"spec": {"replicas": 3, "template": {"metadata": {"annotations": {"x": "y"}}}}}
    answer = world.patch("statefulsets.apps", "s", changed, namespace="default", kind=MERGE_PATCH)
    assert answer.body["metadata"]["generation"] == 2


def test_a_daemon_set_has_no_replicas(world: World) -> None:
    made = world.create("daemonsets.apps", a_set(), "default")
    assert "replicas" not in made.body["spec"]
    assert made.body["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    assert world.get("daemonsets.apps", "s", namespace="default", subresource="scale").status == 404


def test_a_job_selects_its_pods_by_its_uid(world: World) -> None:
    made = world.create("jobs.batch", a_job(), "default").body
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["spec"]["template"]["metadata"]["labels"] == {
        "a": "b",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    assert (made["spec"]["completions"], made["spec"]["parallelism"], made["spec"]["backoffLimit"]) == (1, 1, 6)
    answer = world.patch("jobs.batch", "j", {"spec": {"completions": 2}}, namespace="default", kind=MERGE_PATCH)
    assert "spec.completions: Invalid value: 2: field is immutable" in answer.message


def test_a_job_leaves_its_pods_unless_the_deletion_says_otherwise(world: World) -> None:
    for name in ("a", "b", "c"):
        assert world.create("jobs.batch", {**a_job(), "metadata": {"name": name}}, "default").status == 201
    told = world.delete("jobs.batch", "a", "default")
    assert told.body["metadata"]["finalizers"] == ["orphan"] and told.warnings[0].startswith("child pods are preserved by default")
    told = world.delete("jobs.batch", "b", "default", propagationPolicy="Background")
    assert (told.body["status"], told.warnings) == ("Success", ())
    told = world.delete("jobs.batch", "c", "default", propagationPolicy="Orphan")
    assert told.body["metadata"]["finalizers"] == ["orphan"] and told.warnings == ()


def test_completions_change_with_indexes_and_together_with_parallelism_only(world: World) -> None:
    for name, mode in (("i", "Indexed"), ("n", "NonIndexed")):
        made = a_job(completionMode=mode, completions=2, parallelism=2)
        assert world.create("jobs.batch", {**made, "metadata": {"name": name}}, "default").status == 201

    def changed(name: str, **spec: int) -> Answer:
        return world.patch("jobs.batch", name, {"spec": spec}, namespace="default")

    assert changed("i", completions=3, parallelism=3).status == 200
    refused = changed("i", completions=4)
    assert "spec.completions: Invalid value: 4: can only be modified in tandem with parallelism" in refused.message
    assert "spec.completions: Invalid value: 3: field is immutable" in changed("n", completions=3, parallelism=3).message


@pytest.mark.parametrize(
    ("resource", "document", "cause"),
    [
        (
            "statefulsets.apps",
            a_set(podManagementPolicy="Odd"),
            "spec.podManagementPolicy: Invalid value: \"Odd\": must be 'OrderedReady' or 'Parallel'",
        ),
        ("statefulsets.apps", a_set(selector={}), "spec.selector: Invalid value: {}: empty selector is invalid for statefulset"),
        (
            "daemonsets.apps",
            a_set(template=a_template(restartPolicy="Never")),
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ),
        (
            "daemonsets.apps",
            a_daemon_set(maxUnavailable=1, maxSurge=1),
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
        ),
        (
            "daemonsets.apps",
            a_daemon_set(maxUnavailable=0, maxSurge="0%"),
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
        ),
        (
            "jobs.batch",
            a_job(template=TEMPLATE),
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        ("jobs.batch", a_job(parallelism=-1), "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
        (
            "jobs.batch",
            a_job(completionMode="Indexed", parallelism=1),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            "jobs.batch",
            a_job(completionMode="Indexed", completions=1, parallelism=100_001),
            "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed",
        ),
        (
            "jobs.batch",
            a_job(managedBy="me"),
            'spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")',
        ),
        (
            "cronjobs.batch",
            a_cron_job(schedule="now"),
            'spec.schedule: Invalid value: "now": expected exactly 5 fields, found 1: [now]',
        ),
        ("cronjobs.batch", a_cron_job(timeZone="Mars"), 'spec.timeZone: Invalid value: "Mars": unknown time zone Mars'),
        (
            "cronjobs.batch",
            a_cron_job(concurrencyPolicy="Odd"),
            'spec.concurrencyPolicy: Unsupported value: "Odd": supported values: "Allow", "Forbid", "Replace"',
        ),
        (
            "horizontalpodautoscalers.autoscaling",
            {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 0}},
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
        ),
        ("secrets", {"metadata": {"name": "s"}, "type": "kubernetes.io/tls"}, "data[tls.crt]: Required value"),
        (
            "persistentvolumeclaims",
            {"metadata": {"name": "p"}, "spec": {}},
            "spec.accessModes: Required value: at least 1 access mode is required",
        ),
        (
            "endpointslices.discovery.k8s.io",
            {"metadata": {"name": "e"}, "addressType": "IPv5", "endpoints": []},
            'addressType: Unsupported value: "IPv5": supported values: "FQDN", "IPv4", "IPv6"',
        ),
    ],
)
def test_what_is_refused(world: World, resource: str, document: dict[str, Any], cause: str) -> None:
    answer = world.create(resource, document, "default") if "autoscal" not in resource else autoscaler(world, "create", document)
    assert answer.status == 422, answer.body
    assert cause in answer.message


# ---------------------------------------------------------------- autoscalers


def autoscaler(world: World, verb: str, body: Any = None, name: str = "", version: str = "v2") -> Answer:
    encoded = b"" if body is None else msgspec.json.encode(body)
    request = ApiRequest(verb, "horizontalpodautoscalers", "autoscaling", version, "default", name, body=encoded)
    return world.ask(request)


AUTOSCALER = {
    "metadata": {"name": "h"},
    "spec": {
        "scaleTargetRef": {"kind": "Deployment", "name": "d"},
        "maxReplicas": 5,
        "metrics": [
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
        ],
    },
}


def test_an_autoscaler_is_seen_in_both_versions_and_loses_nothing(world: World) -> None:
    made = autoscaler(world, "create", AUTOSCALER).body
    old = autoscaler(world, "get", name="h", version="v1").body
    assert old["apiVersion"] == "autoscaling/v1"
    assert old["spec"]["targetCPUUtilizationPercentage"] == 70
    assert "memory" in old["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"]
    old["spec"]["targetCPUUtilizationPercentage"] = 60
    old["metadata"].pop("managedFields", None)
    assert autoscaler(world, "update", old, "h", "v1").status == 200
    new = autoscaler(world, "get", name="h").body
    by_name = {metric["resource"]["name"]: metric["resource"]["target"] for metric in new["spec"]["metrics"]}
    assert by_name["cpu"]["averageUtilization"] == 60
    assert by_name["memory"] == made["spec"]["metrics"][0]["resource"]["target"]
    assert "annotations" not in new["metadata"]


def test_an_autoscaler_of_v1_measures_cpu(world: World) -> None:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 5}
    made = autoscaler(world, "create", {"metadata": {"name": "h"}, "spec": spec}, version="v1").body
    assert (made["kind"], made["apiVersion"], made["spec"]["minReplicas"]) == ("HorizontalPodAutoscaler", "autoscaling/v1", 1)
    items = autoscaler(world, "list").body["items"]
    assert items[0]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80


# ---------------------------------------------------------------- events and others


def test_events_are_the_same_in_both_groups(world: World) -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Started",
        "message": "it started",
        "source": {"component": "kubelet"},
        "count": 2,
        "type": "Normal",
    }
    world.create("events", event, "default")
    stream = world.watch("events.events.k8s.io", "default")
    seen = world.get("events.events.k8s.io", "e", namespace="default").body
    assert seen["apiVersion"] == "events.k8s.io/v1"
    assert (seen["note"], seen["regarding"]["name"], seen["deprecatedCount"]) == ("it started", "p", 2)
    assert msgspec.json.decode(stream.events[0].object) == seen
    newer = {
        "metadata": {"name": "f"},
        "eventTime": "2026-11-29T10:00:00.000000Z",
        "reportingController": "me",
        "reportingInstance": "me-1",
        "action": "Look",
        "reason": "Seen",
        "note": "seen",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    }
    assert world.create("events.events.k8s.io", newer, "default").status == 201
    core = world.get("events", "f", namespace="default").body
    assert (core["apiVersion"], core["message"], core["reportingComponent"]) == ("v1", "seen", "me")
    assert len(world.list("events", "default", fieldSelector="reason=Seen").body["items"]) == 1
    assert len(world.list("events.events.k8s.io", "default", fieldSelector="regarding.name=p").body["items"]) == 2
    refused = world.create("events.events.k8s.io", {**newer, "metadata": {"name": "g"}, "action": ""}, "default")
    assert "action: Required value" in refused.message


def test_a_secrets_texts_become_data(world: World) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"a": "x"}, "immutable": True}
    made = world.create("secrets", secret, "default").body
    assert (made["type"], made["data"]) == ("Opaque", {"a": "eA=="})
    assert "stringData" not in made
    answer = world.patch("secrets", "s", {"stringData": {"a": "y"}}, namespace="default")
    assert "data: Forbidden: field is immutable when `immutable` is set" in answer.message


def test_a_fresh_cluster_has_the_service_of_the_api_server() -> None:
    world = World(policy=True)
    service = world.get("services", "kubernetes", namespace="default").body
    assert (service["spec"]["clusterIP"], service["spec"]["ports"][0]["port"]) == ("10.96.0.1", 443)
