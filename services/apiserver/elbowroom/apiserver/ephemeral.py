"""``pods/ephemeralcontainers``: debugging containers may be added to a pod, never changed or taken away."""

from collections.abc import Mapping
from typing import Any

from elbowroom.api.fielderrors import FieldError, duplicate, forbidden, invalid, not_found, required
from elbowroom.api.names import dns1123_label
from elbowroom.apiserver.pod_annotations import MIRROR
from elbowroom.apiserver.pods import PodStrategy
from elbowroom.apiserver.semantics import same
from elbowroom.apiserver.spec_diff import spec_diff
from elbowroom.apiserver.strategy import Context, Document

_FIELD = "ephemeralContainers"
_BARRED = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources", "resizePolicy")


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
        spec = new["spec"]
        names = [c["name"] for part in ("initContainers", "containers") for c in spec.get(part) or ()]
        containers: list[Mapping[str, Any]] = spec.get(_FIELD) or []
        found: list[FieldError] = []
        taken = list(names)
        for index, container in enumerate(containers):
            found += _errors(container, names, taken, f"spec.{_FIELD}[{index}]")
            taken.append(container.get("name", ""))
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


def _errors(container: Mapping[str, Any], names: list[str], taken: list[str], where: str) -> list[FieldError]:
    name, target = container.get("name", ""), container.get("targetContainerName", "")
    found = [invalid(f"{where}.name", name, finding) for finding in dns1123_label(name)] if name else [required(f"{where}.name")]
    if name in taken:
        found.append(duplicate(f"{where}.name", name))
    if not container.get("image"):
        found.append(required(f"{where}.image"))
    if target and target not in names:
        found.append(not_found(f"{where}.targetContainerName", target))
    found += [
        forbidden(f"{where}.{field}", "cannot be set for an Ephemeral Container") for field in _BARRED if container.get(field)
    ]
    return found
