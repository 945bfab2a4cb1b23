"""The official Python client, release 37: its models are strict about types, so what it reads it has understood."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from clients_kinds import BEHIND_GATES, SAMPLES, sample
from kubernetes import client, config, watch
from kubernetes.client import models
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.resource import Resource

from elbowroom.testing.workspace import Workspace

MERGE = "application/merge-patch+json"
WATCH_SECONDS = 10
OF_THE_LAB = ("resizeStatus",)
"""Fields that the profile ``lab`` adds, and that no release has (docs/profiles.md)."""


@pytest.fixture(scope="module")
def api(elbowroom_kubeconfig: Path) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(elbowroom_kubeconfig)) as made:
        yield made


@pytest.fixture(scope="module")
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture(scope="module")
def dynamic(api: client.ApiClient) -> DynamicClient:
    return DynamicClient(api)


def served(dynamic: DynamicClient) -> list[Resource]:
    """Every resource that can be listed and watched, by discovery."""
    found = [r for r in dynamic.resources.search() if isinstance(r, Resource) and {"list", "watch"} <= set(r.verbs or ())]
    return [r for r in found if not r.kind.endswith("List") and "/" not in r.name]


def fetched(api: client.ApiClient, path: str) -> dict[str, Any]:
    """A document as the server wrote it."""
    answer = api.call_api("GET", f"{api.configuration.host}{path}", {"Authorization": _token(api), "Accept": "application/json"})
    return dict(json.loads(answer.read()))


def _token(api: client.ApiClient) -> str:
    return str(
        api.configuration.get_api_key_with_prefix("BearerToken") or api.configuration.get_api_key_with_prefix("authorization")
    )


def model_of(api_version: str, kind: str) -> Any:
    """The client's model of a kind; None for kinds that it has none of (custom resources)."""
    group, _, version = api_version.rpartition("/")
    name = f"{version[:1].upper()}{version[1:]}{kind}"
    special = {"V1Event": "EventsV1Event" if group else "CoreV1Event"}
    return getattr(models, special.get(name, name), None)


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """What a model dropped or changed of a document. A null is the same as nothing."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key, value in before.items() if value is not None and key not in OF_THE_LAB]
        return [finding for key in keys for finding in lost(before[key], after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [finding for n, (b, a) in enumerate(zip(before, after, strict=True)) for finding in lost(b, a, f"{path}[{n}]")]
    return [] if _moment(before) == _moment(after) else [f"{path}: {before!r} became {after!r}"]


def _moment(value: Any) -> Any:
    """A time as such, since the client writes ``+00:00`` for ``Z``; anything else as it is."""
    return datetime.fromisoformat(value) if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value) else value


def test_every_kind_is_created_read_listed_changed_watched_and_deleted(elbowroom: Workspace, dynamic: DynamicClient) -> None:
    seen = []
    for resource in served(dynamic):
        where = {"namespace": elbowroom.namespace} if resource.namespaced else {}
        listed = resource.get(**where)
        assert listed.kind == f"{resource.kind}List"
        body = sample(resource.kind, f"s-{elbowroom.namespace}", elbowroom.namespace, resource.group_version)
        if resource.kind in BEHIND_GATES or resource.group.endswith(".example.com"):
            continue
        assert body is not None, f"{resource.kind} is served and has no sample"
        seen.append(resource.kind)
        body |= {"apiVersion": resource.group_version, "kind": resource.kind}
        name = body["metadata"]["name"]
        made = resource.create(body=body, **where)
        assert resource.get(name=name, **where).metadata.uid == made.metadata.uid
        found = resource.get(label_selector=f"sample={elbowroom.namespace}", **where)
        assert [item.metadata.name for item in found.items] == [name]
        changed = {"metadata": {"annotations": {"changed": "yes"}}}
        resource.patch(body=changed, name=name, content_type=MERGE, **where)
        resource.delete(name=name, **where)
        told = []
        for event in resource.watch(
            resource_version=made.metadata.resourceVersion, field_selector=f"metadata.name={name}", timeout=WATCH_SECONDS, **where
        ):
            told.append(event["type"])
            if event["type"] == "DELETED" or (resource.kind == "Namespace" and event["object"].metadata.deletionTimestamp):
                assert event["object"].metadata.annotations.changed == "yes"
                break
        assert told and told[0] == "MODIFIED", (resource.kind, told)
    assert set(seen) >= set(SAMPLES), f"not served: {set(SAMPLES) - set(seen)}"


def test_the_models_lose_nothing_of_what_is_served(elbowroom: Workspace, api: client.ApiClient, dynamic: DynamicClient) -> None:
    """A field of another name or place would be dropped, one of another type refused."""
    elbowroom.pod("whole", guaranteed=True, priority=3, workload={"memoryUsage": "10Mi"})
    elbowroom.replicas("set", 1)
    elbowroom.defer("whole")
    made: list[tuple[Resource, str]] = []
    for resource in served(dynamic):
        body = sample(resource.kind, f"m{len(made)}-{elbowroom.namespace}", elbowroom.namespace, resource.group_version)
        if body is not None and resource.kind not in ("Namespace", "Node", "Pod"):
            where = {"namespace": elbowroom.namespace} if resource.namespaced else {}
            resource.create(body={**body, "apiVersion": resource.group_version, "kind": resource.kind}, **where)
            made.append((resource, body["metadata"]["name"]))
    judged: set[str] = set()
    for resource in served(dynamic):
        model = model_of(resource.group_version, resource.kind)
        listed = fetched(api, f"/{resource.prefix}/{resource.group_version}/{resource.name}")
        assert listed["kind"] == f"{resource.kind}List"
        for document in listed["items"] if model is not None else ():
            if document.get("eventTime") is None and model is models.EventsV1Event:
                continue  # an event of the older group: the client cannot read it from a real server, either
            document |= {"apiVersion": resource.group_version, "kind": resource.kind}
            read = model.from_dict(document)
            assert lost(document, api.sanitize_for_serialization(read)) == [], resource.kind
            judged.add(resource.kind)
    for resource, name in made:
        if not resource.namespaced:
            resource.delete(name=name)
    assert judged == set(SAMPLES)


def test_a_pod_is_created_resized_evicted_and_logged_by_typed_calls(elbowroom: Workspace, core: client.CoreV1Api) -> None:
    space = elbowroom.namespace
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = client.V1Container(
        name="main", image="registry.k8s.io/pause:3.10", resources=client.V1ResourceRequirements(requests=requests)
    )
    pod = client.V1Pod(
        metadata=client.V1ObjectMeta(name="typed"),
        spec=client.V1PodSpec(containers=[container], termination_grace_period_seconds=0),
    )
    made = core.create_namespaced_pod(space, pod)
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_pod, space, resource_version=made.metadata.resource_version, timeout_seconds=WATCH_SECONDS
    ):
        if any(c.type == "Ready" and c.status == "True" for c in event["object"].status.conditions or ()):
            stream.stop()
    ready = core.read_namespaced_pod("typed", space)
    assert ready.status.phase == "Running" and ready.status.container_statuses[0].ready

    wanted = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}}
    assert core.patch_namespaced_pod_resize("typed", space, wanted).metadata.generation == 2
    elbowroom.until_resized("typed")
    resized = core.read_namespaced_pod_resize("typed", space)
    assert resized.status.container_statuses[0].resources.requests == {"cpu": "200m", "memory": "64Mi"}
    resized.spec.containers[0].resources.requests["cpu"] = "150m"
    core.replace_namespaced_pod_resize("typed", space, resized)
    elbowroom.until_resized("typed")

    assert core.read_namespaced_pod_log("typed", space) == ""
    assert core.read_namespaced_pod_status("typed", space).status.qos_class == "Burstable"
    labelled = core.patch_namespaced_pod("typed", space, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}])
    assert labelled.metadata.labels == {"a": "b"}
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="typed"))
    core.create_namespaced_pod_eviction("typed", space, eviction)
    elbowroom.until_gone("pods", "typed")
    with pytest.raises(client.ApiException) as refused:
        core.delete_namespaced_pod("typed", space)
    assert (refused.value.status, json.loads(refused.value.body)["reason"]) == (404, "NotFound")


def test_a_conflict_is_told_and_pages_are_continued(elbowroom: Workspace, core: client.CoreV1Api) -> None:
    space = elbowroom.namespace
    for number in range(3):
        core.create_namespaced_config_map(space, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=f"m{number}"), data={}))
    page = core.list_namespaced_config_map(space, limit=2)
    names = [item.metadata.name for item in page.items]
    rest = core.list_namespaced_config_map(space, limit=2, _continue=page.metadata._continue)
    assert [*names, *(item.metadata.name for item in rest.items)] == ["m0", "m1", "m2"] and not rest.metadata._continue
    stale = core.read_namespaced_config_map("m0", space)
    core.patch_namespaced_config_map("m0", space, {"data": {"a": "1"}})
    stale.data = {"a": "2"}
    with pytest.raises(client.ApiException) as refused:
        core.replace_namespaced_config_map("m0", space, stale)
    assert (refused.value.status, json.loads(refused.value.body)["reason"]) == (409, "Conflict")


def test_workloads_are_scaled_and_rights_asked_for(elbowroom: Workspace, api: client.ApiClient) -> None:
    apps, space = client.AppsV1Api(api), elbowroom.namespace
    labels = {"app": "typed"}
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")], termination_grace_period_seconds=0),
    )
    spec = client.V1DeploymentSpec(replicas=1, selector=client.V1LabelSelector(match_labels=labels), template=template)
    apps.create_namespaced_deployment(space, client.V1Deployment(metadata=client.V1ObjectMeta(name="d"), spec=spec))
    apps.patch_namespaced_deployment_scale("d", space, {"spec": {"replicas": 2}})
    elbowroom.until("two replicas", lambda: apps.read_namespaced_deployment_status("d", space).status.ready_replicas == 2)
    scale = apps.read_namespaced_deployment_scale("d", space)
    assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (2, 2, "app=typed")
    attributes = client.V1ResourceAttributes(verb="patch", resource="pods", subresource="resize", namespace=space)
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    assert client.AuthorizationV1Api(api).create_self_subject_access_review(review).status.allowed
    assert client.VersionApi(api).get_code().minor == "37"
    assert "apps" in [group.name for group in client.ApisApi(api).get_api_versions().groups]


def test_events_may_be_named_as_other_controllers_name_theirs(elbowroom: Workspace, core: client.CoreV1Api) -> None:
    """Of a core event's name upstream asks only that it fits into a path."""
    about = client.V1ObjectReference(kind="Pod", name="x", namespace=elbowroom.namespace)
    named = client.CoreV1Event(metadata=client.V1ObjectMeta(generate_name="Web_1."), involved_object=about, reason="R", message="m")
    assert core.create_namespaced_event(elbowroom.namespace, named).metadata.name.startswith("Web_1.")
