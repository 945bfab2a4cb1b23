"""Rows as kubectl prints them, and what discovery and OpenAPI tell."""

import json
from typing import Any

import pytest

from elbowroom.api.clock import parse_time
from elbowroom.apiserver import discovery, openapi, schema, tables
from elbowroom.apiserver.identity import ANONYMOUS
from elbowroom.apiserver.routing import Document, Target, route
from elbowroom.apiserver.statuses import ApiError
from elbowroom.machine import Instant, seconds

NOW = Instant(parse_time("2026-11-29T18:00:00Z"))
CREATED = "2026-11-29T17:58:11Z"


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (8 * 86400, "8d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_ages_are_as_short_as_upstreams(span: int, text: str) -> None:
    assert tables.human_duration(seconds(span)) == text


def a_container(name: str = "c", **state: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "ready": "running" in state, "restartCount": 0, "state": state, "lastState": {}}
    return found


def a_pod(*statuses: dict[str, Any], phase: str = "Running", **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "creationTimestamp": CREATED},
        "spec": {"containers": [{"name": s["name"]} for s in statuses] or [{"name": "c"}], "nodeName": "n1"},
        "status": {"phase": phase, "containerStatuses": list(statuses), **status},
    }


def cells(document: dict[str, Any]) -> list[Any]:
    found = tables.table(NOW, document)["rows"][0]["cells"]
    assert isinstance(found, list)
    return found


RUNNING = a_container(running={})
READY = {"type": "Ready", "status": "True"}


def _with(document: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {
        key: {**document.get(key, {}), **parts.get(key, {})} if isinstance(document.get(key), dict) else document[key]
        for key in document
    }


PODS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("running", a_pod(RUNNING), ["1/1", "Running", "0"]),
    ("new", a_pod(phase="Pending"), ["0/1", "Pending", "0"]),
    ("creating", a_pod(a_container(waiting={"reason": "ContainerCreating"}), phase="Pending"), ["0/1", "ContainerCreating", "0"]),
    ("completed", a_pod(a_container(terminated={"reason": "Completed"}), phase="Succeeded"), ["0/1", "Completed", "0"]),
    ("exit code", a_pod(a_container(terminated={"exitCode": 3}), phase="Failed"), ["0/1", "ExitCode:3", "0"]),
    ("signal", a_pod(a_container(terminated={"exitCode": 137, "signal": 9}), phase="Failed"), ["0/1", "Signal:9", "0"]),
    ("evicted", a_pod(phase="Failed", reason="Evicted"), ["0/1", "Evicted", "0"]),
    ("no room", a_pod(phase="Failed", reason="OutOfcpu"), ["0/1", "OutOfcpu", "0"]),
    (
        "one of two done, ready",
        a_pod(a_container("a", terminated={"reason": "Completed"}), a_container("b", running={}), conditions=[READY]),
        ["1/2", "Running", "0"],
    ),
    (
        "one of two done, not ready",
        a_pod(a_container("a", terminated={"reason": "Completed"}), a_container("b", running={})),
        ["1/2", "NotReady", "0"],
    ),
    (
        "the first container's reason counts",
        a_pod(a_container("a", waiting={"reason": "CrashLoopBackOff"}), a_container("b", terminated={"reason": "Error"})),
        ["0/2", "CrashLoopBackOff", "0"],
    ),
    (
        "gated",
        a_pod(phase="Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        ["0/1", "SchedulingGated", "0"],
    ),
    ("terminating", _with(a_pod(RUNNING), metadata={"deletionTimestamp": CREATED}), ["1/1", "Terminating", "0"]),
    (
        "terminal and terminating",
        _with(a_pod(a_container(terminated={"reason": "Completed"}), phase="Succeeded"), metadata={"deletionTimestamp": CREATED}),
        ["0/1", "Completed", "0"],
    ),
    (
        "its node is lost",
        _with(a_pod(RUNNING, reason="NodeLost"), metadata={"deletionTimestamp": CREATED}),
        ["1/1", "Unknown", "0"],
    ),
    (
        "restarted",
        a_pod({**RUNNING, "restartCount": 2, "lastState": {"terminated": {"finishedAt": "2026-11-29T17:58:51Z"}}}),
        ["1/1", "Running", "2 (69s ago)"],
    ),
]


@pytest.mark.parametrize(("document", "expected"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_a_pods_row_says_ready_status_and_restarts(document: dict[str, Any], expected: list[str]) -> None:
    assert cells(document) == ["a", *expected, "109s", "<none>", "n1", "<none>", "<none>"]


def _init(*statuses: dict[str, Any], sidecar: bool = False, **status: Any) -> dict[str, Any]:
    document = a_pod(
        a_container(waiting={"reason": "PodInitializing"}), phase="Pending", initContainerStatuses=list(statuses), **status
    )
    policy = {"restartPolicy": "Always"} if sidecar else {}
    document["spec"]["initContainers"] = [{"name": s["name"], **policy} for s in statuses]
    return document


@pytest.mark.parametrize(
    ("document", "ready", "status", "restarts"),
    [
        (_init(a_container("i", running={})), "0/1", "Init:0/1", "0"),
        (_init(a_container("i", terminated={"exitCode": 0}), a_container("j", running={})), "0/1", "Init:1/2", "0"),
        (_init(a_container("i", waiting={"reason": "PodInitializing"})), "0/1", "Init:0/1", "0"),
        (_init(a_container("i", waiting={"reason": "CrashLoopBackOff"})), "0/1", "Init:CrashLoopBackOff", "0"),
        (_init(a_container("i", terminated={"exitCode": 1, "reason": "Error"})), "0/1", "Init:Error", "0"),
        (_init(a_container("i", terminated={"exitCode": 1})), "0/1", "Init:ExitCode:1", "0"),
        (_init({**a_container("i", running={}), "restartCount": 4}), "0/1", "Init:0/1", "4"),
        (_init(a_container("i", terminated={"exitCode": 0})), "0/1", "PodInitializing", "0"),
        (_init({**a_container("i", running={}), "started": True}, sidecar=True), "1/2", "PodInitializing", "0"),
        (_init(a_container("i", running={}), sidecar=True), "0/2", "Init:0/1", "0"),
        (
            _init({**a_container("i", running={}), "started": True, "restartCount": 3}, sidecar=True),
            "1/2",
            "PodInitializing",
            "3",
        ),
    ],
)
def test_a_pod_that_initialises_says_how_far(document: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    assert cells(document)[1:4] == [ready, status, restarts]


def test_readiness_gates_count_those_that_are_true() -> None:
    document = a_pod(RUNNING, conditions=[{"type": "x", "status": "True"}, {"type": "y", "status": "False"}])
    document["spec"]["readinessGates"] = [{"conditionType": "x"}, {"conditionType": "y"}]
    assert cells(document)[-1] == "1/2"


OTHERS: list[tuple[str, str, dict[str, Any], list[Any]]] = [
    (
        *("v1", "Node"),
        {
            "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "x"}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.37.0", "kernelVersion": "6.1", "architecture": "amd64", "osImage": "Debian"},
            },
        },
        [
            *("Ready,SchedulingDisabled", "worker,x", "109s", "v1.37.0", "127.0.0.1", "<none>"),
            *("Debian", "6.1 (amd64)", "<unknown>"),
        ],
    ),
    (
        "v1",
        "Node",
        {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        ["NotReady", "<none>", "109s", "", "<none>", "<none>", *["<unknown>"] * 3],
    ),
    ("v1", "Node", {}, ["Unknown", "<none>", "109s", "", "<none>", "<none>", *["<unknown>"] * 3]),
    ("v1", "Namespace", {"status": {"phase": "Active"}}, ["Active", "109s"]),
    ("v1", "ConfigMap", {"data": {"a": "1", "b": "2"}, "binaryData": {"c": ""}}, [3, "109s"]),
    ("v1", "ServiceAccount", {}, [0, "109s"]),
    ("v1", "LimitRange", {}, [CREATED]),
    (
        *("v1", "ResourceQuota"),
        {
            "status": {
                "hard": {"requests.cpu": "1", "pods": "3", "limits.cpu": "2"},
                "used": {"pods": "2", "requests.cpu": "500m", "limits.cpu": "0"},
            }
        },
        ["pods: 2/3, requests.cpu: 500m/1", "limits.cpu: 0/2", "109s"],
    ),
    (
        "policy/v1",
        "PodDisruptionBudget",
        {"spec": {"minAvailable": 1}, "status": {"disruptionsAllowed": 2}},
        ["1", "N/A", 2, "109s"],
    ),
    ("policy/v1", "PodDisruptionBudget", {"spec": {"maxUnavailable": "50%"}}, ["N/A", "50%", 0, "109s"]),
    ("scheduling.k8s.io/v1", "PriorityClass", {"value": 7, "preemptionPolicy": "Never"}, [7, False, "109s", "Never"]),
    ("coordination.k8s.io/v1", "Lease", {"spec": {"holderIdentity": "n1"}}, ["n1", "109s"]),
    (
        *("apps/v1", "Deployment"),
        {
            "spec": {
                "replicas": 3,
                "selector": {
                    "matchLabels": {"b": "2", "a": "1"},
                    "matchExpressions": [{"key": "t", "operator": "In", "values": ["y", "x"]}],
                },
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}},
            },
            "status": {"readyReplicas": 1, "updatedReplicas": 2},
        },
        ["1/3", 2, 0, "109s", "c,d", "i,j", "a=1,b=2,t in (x,y)"],
    ),
    ("apps/v1", "ReplicaSet", {"spec": {"replicas": 2}, "status": {"replicas": 1}}, [2, 1, 0, "109s", "", "", "<none>"]),
    (
        "apps/v1",
        "ControllerRevision",
        {
            "revision": 2,
            "metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": True}]},
        },
        ["statefulset.apps/s", 2, "109s"],
    ),
    ("apps/v1", "StatefulSet", {"spec": {"replicas": 3}, "status": {"readyReplicas": 1}}, ["1/3", "109s", "", ""]),
    (
        "apps/v1",
        "DaemonSet",
        {
            "spec": {"template": {"spec": {"nodeSelector": {"b": "2", "a": "1"}}}},
            "status": {"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberReady": 1},
        },
        [3, 2, 1, 0, 0, "a=1,b=2", "109s", "", "", "<none>"],
    ),
    (
        "batch/v1",
        "Job",
        {
            "spec": {"completions": 4},
            "status": {
                "succeeded": 1,
                "startTime": "2026-11-29T17:59:00Z",
                "conditions": [{"type": "Suspended", "status": "True"}],
            },
        },
        ["Suspended", "1/4", "60s", "109s", "", "", "<none>"],
    ),
    (
        "batch/v1",
        "Job",
        {
            "spec": {"parallelism": 3},
            "status": {
                "startTime": "2026-11-29T17:59:00Z",
                "completionTime": "2026-11-29T17:59:20Z",
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        },
        ["Complete", "0/1 of 3", "20s", "109s", "", "", "<none>"],
    ),
    (
        "batch/v1",
        "CronJob",
        {
            "spec": {"schedule": "* * * * *", "suspend": False},
            "status": {"lastScheduleTime": "2026-11-29T17:59:00Z", "active": [{}]},
        },
        ["* * * * *", "<none>", "False", 1, "60s", "109s", "", "", "<none>"],
    ),
    (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "maxReplicas": 5,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                    {"type": "Pods", "pods": {"target": {"averageValue": "2"}}},
                    {"type": "External", "external": {"target": {"value": "3"}}},
                ],
            }
        },
        ["Deployment/d", "cpu: <unknown>/80%, <unknown>/2 + 1 more...", "<unset>", 5, 0, "109s"],
    ),
    ("v1", "Secret", {"type": "Opaque", "data": {"a": "", "b": ""}}, ["Opaque", 2, "109s"]),
    (
        "v1",
        "PersistentVolumeClaim",
        {"status": {"phase": "Pending"}},
        ["Pending", "", "", "", "", "<unset>", "109s", "<unset>"],
    ),
    (
        "discovery.k8s.io/v1",
        "EndpointSlice",
        {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": list("abcd")}]},
        ["IPv4", "80", "a,b,c + 1 more...", "109s"],
    ),
    ("networking.k8s.io/v1", "Ingress", {"spec": {"tls": [{}], "rules": [{"host": "h"}]}}, ["<none>", "h", "", "80, 443", "109s"]),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", {}, [CREATED]),
    ("rbac.authorization.k8s.io/v1", "Role", {}, [CREATED]),
]


@pytest.mark.parametrize(("api_version", "kind", "document", "expected"), OTHERS)
def test_the_rows_of_other_kinds(api_version: str, kind: str, document: dict[str, Any], expected: list[Any]) -> None:
    meta = {"name": "x", "creationTimestamp": CREATED, **document.get("metadata", {})}
    whole = {"apiVersion": api_version, "kind": kind, **document, "metadata": meta}
    assert cells(whole) == ["x", *expected]
    assert len(tables.columns(api_version, kind)) == len(expected) + 1


def test_events_say_when_and_what_about() -> None:
    kubelets = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a.1", "creationTimestamp": CREATED},
        "involvedObject": {"kind": "Pod", "name": "a", "fieldPath": "spec.containers{c}"},
        "reason": "Started",
        "message": " Container started\n",
        "type": "Normal",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": "2026-11-29T17:59:00Z",
        "lastTimestamp": "2026-11-29T17:59:50Z",
        "count": 3,
    }
    expected = ["10s", "Normal", "Started", "pod/a", "spec.containers{c}", "kubelet, n1", "Container started", "60s", 3, "a.1"]
    assert cells(kubelets) == expected
    schedulers = {
        **{key: kubelets[key] for key in ("apiVersion", "kind", "metadata", "reason", "type")},
        "involvedObject": {"kind": "Pod", "name": "a"},
        "eventTime": "2026-11-29T17:59:30.123456Z",
        "firstTimestamp": None,
        "reportingComponent": "default-scheduler",
    }
    assert cells(schedulers) == ["29s", "Normal", "Started", "pod/a", "", "default-scheduler", "", "29s", 1, "a.1"]
    series = {**schedulers, "series": {"count": 9, "lastObservedTime": "2026-11-29T17:59:58.000000Z"}}
    assert (cells(series)[0], cells(series)[8]) == ("2s", 9)


def test_a_list_becomes_one_table_and_carries_what_was_asked_for() -> None:
    items = [{"metadata": {"name": name}} for name in ("a", "b")]
    meta = {"resourceVersion": "5", "continue": "x", "remainingItemCount": 3, "selfLink": "no"}
    whole = {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}
    found = tables.table(NOW, whole)
    assert found["metadata"] == {"resourceVersion": "5", "continue": "x", "remainingItemCount": 3}
    assert [column["name"] for column in found["columnDefinitions"] if not column["priority"]] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert [row["object"]["kind"] for row in found["rows"]] == ["PartialObjectMetadata"] * 2
    full = tables.table(NOW, whole, include_object="Object")["rows"][0]["object"]
    assert full == {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}
    assert tables.table(NOW, whole, include_object="None", with_columns=False) == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": found["metadata"],
        "columnDefinitions": [],
        "rows": [{"cells": row["cells"], "object": None} for row in found["rows"]],
    }


# ---------------------------------------------------------------- discovery


def test_the_two_forms_of_discovery_tell_the_same() -> None:
    for group, version in discovery.group_versions():
        plain = discovery.api_resource_list(group, version)
        assert plain is not None
        (item,) = (i for i in discovery.aggregated(core=not group)["items"] if i["metadata"].get("name", "") == group)
        aggregated = item["versions"][0]["resources"]
        names = [r["resource"] for r in aggregated]
        subresources = [f"{r['resource']}/{s['subresource']}" for r in aggregated for s in r.get("subresources", ())]
        assert sorted(r["name"] for r in plain["resources"]) == sorted(names + subresources)


def test_drain_finds_the_eviction_subresource() -> None:
    core = discovery.api_resource_list("", "v1")
    assert core is not None
    (eviction,) = (r for r in core["resources"] if r["name"] == "pods/eviction")
    assert eviction == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }


def test_every_served_kind_has_fields_and_is_described() -> None:
    for resource in discovery.RESOURCES:
        assert schema.find(resource.group, resource.version, resource.kind) is not None
        described = openapi.document(resource.group, resource.version)
        assert described is not None
        json.dumps(described)
        kinds = [g for s in described["components"]["schemas"].values() for g in s.get("x-kubernetes-group-version-kind", ())]
        assert {"group": resource.group, "version": resource.version, "kind": resource.kind} in kinds


def test_writing_operations_tell_that_the_server_validates_fields() -> None:
    described = openapi.document("", "v1")
    assert described is not None
    operation = described["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/resize"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]
    assert operation["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    containers = described["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name" and containers["x-kubernetes-list-map-keys"] == ["name"]


def test_references_in_openapi_lead_somewhere() -> None:
    for group, version in discovery.group_versions():
        described = openapi.document(group, version, previews=True)
        assert described is not None
        text = json.dumps(described)
        wanted = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
        assert wanted <= set(described["components"]["schemas"])


# ---------------------------------------------------------------- routes


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "resource", "namespace", "name", "sub"),
    [
        ("GET", "/api/v1/pods", "", "list", "pods", "", "", ""),
        ("GET", "/api/v1/pods", "watch=true", "watch", "pods", "", "", ""),
        ("GET", "/api/v1/pods", "watch=false", "list", "pods", "", "", ""),
        ("GET", "/api/v1/watch/namespaces/x/pods", "", "watch", "pods", "x", "", ""),
        ("GET", "/api/v1/namespaces/x/pods/a", "watch=1", "get", "pods", "x", "a", ""),
        ("DELETE", "/api/v1/namespaces/x/pods", "", "deletecollection", "pods", "x", "", ""),
        ("POST", "/api/v1/namespaces/x/pods/a/eviction", "", "create", "pods", "x", "a", "eviction"),
        ("GET", "/api/v1/namespaces/x/status", "", "get", "namespaces", "", "x", "status"),
        ("PUT", "/api/v1/namespaces/x/finalize", "", "update", "namespaces", "", "x", "finalize"),
        ("GET", "/api/v1/namespaces/x/", "", "get", "namespaces", "", "x", ""),
        ("PATCH", "/apis/apps/v1/namespaces/x/deployments/d/scale", "", "patch", "deployments", "x", "d", "scale"),
        ("GET", "/api/v1/nodes/n%20x/proxy/a/b", "", "get", "nodes", "", "n x", "proxy"),
    ],
)
def test_a_path_leads_to_its_resource(
    method: str, path: str, query: str, verb: str, resource: str, namespace: str, name: str, sub: str
) -> None:
    found = route(method, path, query)
    assert isinstance(found, Target)
    assert (found.verb, found.resource.plural, found.namespace, found.name) == (verb, resource, namespace, name)
    assert (found.subresource.name if found.subresource else "") == sub


def test_of_a_parameter_given_twice_the_first_counts() -> None:
    found = route("GET", "/version", "a=1&a=2&b=&c=x%20y")
    assert found == Document("/version", {"a": "1", "b": "", "c": "x y"})


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/x/pods/a%00", "/api/v1/namespaces/%2e%2e/pods", "/api/v1/" + "a/" * 80, "/apis/apps/v1/a//b"]
)
def test_odd_paths_lead_nowhere(path: str) -> None:
    with pytest.raises(ApiError) as refused:
        route("GET", path, "")
    assert refused.value.code == 404


def test_too_many_parameters_are_refused() -> None:
    with pytest.raises(ApiError) as refused:
        route("GET", "/api/v1/pods", "&".join(f"a{n}=1" for n in range(300)))
    assert refused.value.code == 400


def test_the_anonymous_user_is_nobody_special() -> None:
    assert not ANONYMOUS.is_master
