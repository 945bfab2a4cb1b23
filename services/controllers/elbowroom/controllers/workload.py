"""What controllers of workloads share: pods from templates, whose pod is whose, and the revisions of a template."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from elbowroom import rpc
from elbowroom.api.objects import LabelSelector, ObjectMeta, Pod
from elbowroom.api.selectors import of_view
from elbowroom.controllers.kit import Ask, controller_of, is_active, owner_reference
from elbowroom.controllers.rollout import template_hash
from elbowroom.controllers.views import ControllerRevision

REVISION_LABEL = "controller-revision-hash"
_HASH_LABEL = "controller.kubernetes.io/hash"


class Owner(msgspec.Struct, frozen=True):
    """Whose pods they are."""

    api_version: str
    kind: str
    metadata: ObjectMeta

    @property
    def reference(self) -> dict[str, Any]:
        """A managing ownerReference to it."""
        return owner_reference(self.api_version, self.kind, self.metadata)


def pod_of(owner: Owner, template: dict[str, Any], name: str, labels: dict[str, str]) -> dict[str, Any]:
    """The pod that a template makes, with ``labels`` beside its own."""
    said = template.get("metadata") or {}
    metadata: dict[str, Any] = {"name": name, "namespace": owner.metadata.namespace}
    metadata["labels"] = {**(said.get("labels") or {}), **labels}
    if said.get("annotations"):
        metadata["annotations"] = dict(said["annotations"])
    if said.get("finalizers"):
        metadata["finalizers"] = list(said["finalizers"])
    metadata["ownerReferences"] = [owner.reference]
    spec: dict[str, Any] = dict(template.get("spec") or {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def creation(pod: dict[str, Any]) -> Ask:
    metadata = pod["metadata"]
    return Ask(rpc.create("pods", pod, namespace=metadata["namespace"]), ("create", metadata["name"]))


def deletion(pod: Pod) -> Ask:
    options = {"preconditions": {"uid": pod.uid}}
    request = rpc.delete("pods", pod.metadata.name, namespace=pod.metadata.namespace, options=options)
    return Ask(request, ("delete", pod.metadata.name))


def ownership(owner: Owner, selector: LabelSelector, pods: Iterable[Pod]) -> tuple[list[Pod], list[Ask]]:
    """Of the namespace's pods, those that ``owner`` owns, and what to ask to take those it may and let go those it must."""
    owned: list[Pod] = []
    asks: list[Ask] = []
    fits = of_view(selector)
    leaving = owner.metadata.deletion_timestamp is not None
    for pod in pods:
        above, matches = controller_of(pod.metadata), fits.matches(pod.metadata.labels)
        if above is not None and above.uid == owner.metadata.uid:
            if matches:
                owned.append(pod)
            elif not leaving:
                asks.append(_owned(pod, {"$patch": "delete", "uid": owner.metadata.uid}))
        elif above is None and matches and is_active(pod) and not leaving:
            asks.append(_owned(pod, owner.reference))
    return owned, asks


def _owned(pod: Pod, entry: dict[str, Any]) -> Ask:
    body = {"metadata": {"uid": pod.uid, "ownerReferences": [entry]}}
    return Ask(rpc.patch("pods", pod.metadata.name, body, namespace=pod.metadata.namespace))


def status_patch(resource: str, metadata: ObjectMeta, status: dict[str, Any]) -> Ask:
    """A write of a status that is based on the object as it was read. None takes a field away."""
    body = {"metadata": {"resourceVersion": metadata.resource_version, "uid": metadata.uid}, "status": status}
    request = rpc.patch(resource, metadata.name, body, namespace=metadata.namespace, subresource="status", kind=rpc.MERGE_PATCH)
    return Ask(request)


# ---------------------------------------------------------------- revisions


class Revisions(msgspec.Struct, frozen=True):
    """The revisions of a workload's template: the present one (None: still to be written), and all, oldest first."""

    update: ControllerRevision | None
    all: tuple[ControllerRevision, ...]
    asks: tuple[Ask, ...]
    """What to ask so that the present template has a revision, the newest."""

    def named(self, name: str) -> ControllerRevision | None:
        return next((revision for revision in self.all if revision.metadata.name == name), None)


def data_of(template: dict[str, Any]) -> dict[str, Any]:
    """What a revision keeps of a template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template_of(revision: ControllerRevision) -> dict[str, Any]:
    """The template that a revision keeps."""
    kept = (revision.data.get("spec") or {}).get("template") or {}
    return {name: value for name, value in kept.items() if name != "$patch"}


def revisions_of(
    owner: Owner, template: dict[str, Any], known: Iterable[ControllerRevision], live: Sequence[str], limit: int
) -> Revisions:
    """``live``: the names of revisions that pods have; of the others the last ``limit`` are kept."""
    mine = [r for r in known if (above := controller_of(r.metadata)) is not None and above.uid == owner.metadata.uid]
    mine.sort(key=lambda r: (r.revision, r.metadata.creation_timestamp or "", r.metadata.name))
    wanted = data_of(template)
    update = next((r for r in reversed(mine) if r.data == wanted), None)
    newest = mine[-1].revision if mine else 0
    namespace = owner.metadata.namespace
    if update is None:
        digest = template_hash(template, None)
        labels = {**((template.get("metadata") or {}).get("labels") or {}), _HASH_LABEL: digest}
        document = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{owner.metadata.name}-{digest}",
                "namespace": namespace,
                "labels": labels,
                "ownerReferences": [owner.reference],
            },
            "data": wanted,
            "revision": newest + 1,
        }
        return Revisions(None, tuple(mine), (Ask(rpc.create("controllerrevisions.apps", document, namespace=namespace)),))
    if update.revision < newest:  # an old template came back
        body = {"metadata": {"uid": update.metadata.uid}, "revision": newest + 1}
        patch = rpc.patch("controllerrevisions.apps", update.metadata.name, body, namespace=namespace, kind=rpc.MERGE_PATCH)
        return Revisions(update, tuple(mine), (Ask(patch),))
    idle = [r for r in mine if r is not update and r.metadata.name not in live]
    asks = [
        Ask(rpc.delete("controllerrevisions.apps", r.metadata.name, namespace=namespace, options=_uid(r)))
        for r in idle[: max(0, len(idle) - limit)]
    ]
    return Revisions(update, tuple(mine), tuple(asks))


def _uid(revision: ControllerRevision) -> dict[str, Any]:
    return {"preconditions": {"uid": revision.metadata.uid}}
