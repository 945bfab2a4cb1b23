"""The kind CustomResourceDefinition: its strategy, which of its names are accepted, and its end.

Upstream's controllers write the status a little later; here it follows the write at once, as revisions of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elbowroom.api.clock import as_time
from elbowroom.api.fielderrors import FieldError
from elbowroom.apiserver.definitions import rules
from elbowroom.apiserver.definitions.rules import is_true
from elbowroom.apiserver.kinds.base import Resource, StatusStrategy
from elbowroom.apiserver.store import Change
from elbowroom.apiserver.strategy import Context, Document, Strategy
from elbowroom.machine import Instant

GROUP = "apiextensions.k8s.io"
DEFINITIONS = f"customresourcedefinitions.{GROUP}"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

Node = Mapping[str, Any]


class DefinitionStrategy(Strategy):
    group, kind = GROUP, "CustomResourceDefinition"
    plural, singular = "customresourcedefinitions", "customresourcedefinition"
    short_names, categories = ("crd", "crds"), ("api-extensions",)
    namespaced, has_generation, unconditional_update = False, True, False

    def default(self, document: Document) -> None:
        spec = document.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind", "")
        names.setdefault("plural", "")
        if not names.get("singular") and kind:
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}

    def prepare_create(self, context: Context, new: Document) -> None:
        new["status"] = {}
        _note_storage(new)

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        new["status"] = dict(old.get("status") or {})
        _note_storage(new)

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        return rules.errors(new, None)

    def validate_update(self, context: Context, new: Document, old: Node) -> list[FieldError]:
        return rules.errors(new, old)


def _note_storage(definition: Document) -> None:
    """Objects may be stored in every version that was ever the one for it."""
    status = definition["status"]
    stored = list(status.get("storedVersions") or ())
    for version in definition["spec"].get("versions") or ():
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version.get("name"))
    status["storedVersions"] = stored


def served_anew(changes: Iterable[Change]) -> list[str]:
    """The custom kinds that these changes make something else of: another schema, other names, nothing at all."""
    return [
        change.record.name
        for change in changes
        if change.record.resource == DEFINITIONS
        and change.old is not None
        and (change.deleted or _serving(change.record.document) != _serving(change.old.document))
    ]


def _serving(definition: Node) -> tuple[Any, Any]:
    return definition["spec"], definition.get("status", {}).get("acceptedNames")


def row() -> Resource:
    """The row of definitions."""
    strategy = DefinitionStrategy()
    return Resource(strategy, {"status": StatusStrategy(strategy, status_errors)}, returns_deleted=True)


def status_errors(context: Context, new: Document, old: Node) -> list[FieldError]:
    """What is wrong with a status that somebody writes."""
    return rules.name_errors(new.get("status", {}).get("acceptedNames") or {}, "status.acceptedNames")


# ---------------------------------------------------------------- names


def settled(definition: Node, others: Iterable[Node], now: Instant) -> Document | None:
    """The status of a definition beside the ``others`` of its group, if it is another one than it has."""
    names, status = definition["spec"]["names"], definition.get("status") or {}
    had = status.get("acceptedNames") or {}
    if had == names and is_true(definition, "Established"):
        return None
    taken, kinds = _taken(others)
    accepted = dict(had)
    reason, message = "NoConflicts", "no conflicts found"
    for name, words, conflict in (
        ("plural", taken, "PluralConflict"),
        ("singular", taken, "SingularConflict"),
        ("shortNames", taken, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        wanted = names.get(name)
        asked = wanted if isinstance(wanted, list) else [wanted]
        mine = had.get(name) or ()
        clashes = [
            word for word in asked if word in words and word != mine and word not in (mine if isinstance(mine, list) else ())
        ]
        if clashes:
            told = [f'"{word}" is already in use' for word in clashes]
            reason, message = conflict, told[0] if len(told) == 1 else f"[{', '.join(told)}]"
        elif wanted:
            accepted[name] = wanted
        else:
            accepted.pop(name, None)
    if names.get("categories"):
        accepted["categories"] = names["categories"]
    else:
        accepted.pop("categories", None)
    good = reason == "NoConflicts"
    made = {**status, "acceptedNames": {name: accepted[name] for name in _ORDER if name in accepted}}
    made["conditions"] = with_condition(made.get("conditions") or (), now, "NamesAccepted", good, reason, message)
    if good and not is_true(definition, "Established"):
        why = ("InitialNamesAccepted", "the initial names have been accepted")
        made["conditions"] = with_condition(made["conditions"], now, "Established", True, *why)
    elif not is_true(definition, "Established"):
        why = ("NotAccepted", "not all names are accepted")
        made["conditions"] = with_condition(made["conditions"], now, "Established", False, *why)
    return made if made != status else None


_ORDER = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def _taken(others: Iterable[Node]) -> tuple[list[str], list[str]]:
    words: list[str] = []
    kinds: list[str] = []
    for other in others:
        names = (other.get("status") or {}).get("acceptedNames") or {}
        words += [*(names[name] for name in ("plural", "singular") if names.get(name)), *(names.get("shortNames") or ())]
        kinds += [names[name] for name in ("kind", "listKind") if names.get(name)]
    return words, kinds


def with_condition(conditions: Sequence[Node], now: Instant, kind: str, status: bool, reason: str, message: str) -> list[Document]:
    """The conditions with this one in its place; its time changes with its status only."""
    old = next((one for one in conditions if one.get("type") == kind), None)
    said = "True" if status else "False"
    since = old["lastTransitionTime"] if old is not None and old.get("status") == said else as_time(now)
    made = {"type": kind, "status": said, "lastTransitionTime": since, "reason": reason, "message": message}
    if old is None:
        return [*map(dict, conditions), made]
    return [made if one is old else dict(one) for one in conditions]


# ---------------------------------------------------------------- the end


def mark_terminating(definition: Document, now: Instant) -> bool:
    """Mark, in place, a definition whose objects are to go first; False if it is marked already."""
    meta = definition["metadata"]
    if meta.get("deletionTimestamp") is not None:
        return False
    meta["deletionTimestamp"] = as_time(now)
    meta["deletionGracePeriodSeconds"] = 0
    meta["generation"] = meta.get("generation", 0) + 1
    meta["finalizers"] = [*(name for name in meta.get("finalizers") or () if name != FINALIZER), FINALIZER]
    status = definition.setdefault("status", {})
    told = ("InstanceDeletionPending", "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
    status["conditions"] = with_condition(status.get("conditions") or (), now, "Terminating", True, *told)
    return True


def emptied(definition: Document, now: Instant) -> None:
    """Say, in place, that all objects of a definition are gone, and let it go."""
    status, meta = definition["status"], definition["metadata"]
    told = ("InstanceDeletionCompleted", "removed all instances")
    if not is_true(definition, "Established"):
        told = ("NeverEstablished", "resource was never established")
    status["conditions"] = with_condition(status.get("conditions") or (), now, "Terminating", False, *told)
    meta["finalizers"] = [name for name in meta["finalizers"] if name != FINALIZER]
    if not meta["finalizers"]:
        del meta["finalizers"]
