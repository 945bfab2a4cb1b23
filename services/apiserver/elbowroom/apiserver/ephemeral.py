"""``pods/ephemeralcontainers``: debugging containers may be added to a pod, never changed or taken away."""

from collections.abc import Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, forbidden
from elbowroom.apiserver.pod_annotations import MIRROR, validate_annotations
from elbowroom.apiserver.pod_validation import validate_pod
from elbowroom.apiserver.pods import PodStrategy
from elbowroom.apiserver.semantics import same
from elbowroom.apiserver.spec_diff import spec_diff
from elbowroom.apiserver.strategy import Context, Document

_FIELD = "ephemeralContainers"


class EphemeralContainersStrategy(PodStrategy):
    """Only ``spec.ephemeralContainers`` is taken from the request."""

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        wanted = new["spec"].get(_FIELD)
        new["spec"] = {name: value for name, value in old["spec"].items() if name != _FIELD}
        if wanted:
            new["spec"][_FIELD] = wanted
        new["status"] = old.get("status", {})
        for name in ("labels", "annotations", "finalizers", "ownerReferences"):
            if name in old["metadata"]:
                new["metadata"][name] = old["metadata"][name]
            else:
                new["metadata"].pop(name, None)

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        if MIRROR in (old["metadata"].get("annotations") or {}):
            return [forbidden("[]", "static pods do not support ephemeral containers")]
        found = validate_annotations(new) + validate_pod(new, old)
        containers: list[Mapping[str, Any]] = new["spec"].get(_FIELD) or []
        wanted = {container.get("name", ""): container for container in containers}
        for before in old["spec"].get(_FIELD) or ():
            after = wanted.get(before["name"])
            if after is None:
                found.append(forbidden(f"spec.{_FIELD}", f'existing ephemeral containers "{before["name"]}" may not be removed\n'))
            elif not same(after, before):
                difference = spec_diff(before, after, "EphemeralContainer")
                why = f'existing ephemeral containers "{before["name"]}" may not be changed\n{difference}'
                found.append(forbidden(f"spec.{_FIELD}", why))
        return found
