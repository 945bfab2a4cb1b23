"""A row of the registry: a strategy, its subresources, and what the generic code must know of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from elbowroom.api.fielderrors import FieldError
from elbowroom.apiserver import schema
from elbowroom.apiserver.faces import Face
from elbowroom.apiserver.strategy import Context, Document, Strategy


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """JSON paths: the replicas that are wanted and that are there, and a selector as text (or empty)."""

    spec_replicas: str
    status_replicas: str
    selector: str


@dataclass(frozen=True, slots=True)
class Resource:
    """What the registry serves under one plural."""

    strategy: Strategy
    subresources: Mapping[str, Strategy] = field(default_factory=dict)
    """Those that read and write the object itself (``status``, ``resize``, ``finalize``)."""
    name_rule: str = "subdomain"
    """What a name may look like: ``label``, ``subdomain`` or ``path`` (metadata.py)."""
    returns_deleted: bool = False
    """A deletion answers with the object instead of a Status."""
    orphans: bool = False
    """A deletion that says nothing about what the object owns leaves it (jobs)."""
    graceful: bool = False
    """A deletion leaves time to whoever runs the object (pods)."""
    fields: Mapping[str, Callable[[Mapping[str, Any]], str]] = field(default_factory=dict)
    """Field selectors beyond name and namespace."""
    scales: bool = False
    """Has the subresource ``scale``."""
    scale_paths: ScalePaths | None = None
    """Where a custom kind has what its ``scale`` shows."""
    field: schema.Field | None = None
    """The field tree, where it is not the one of the kind's name in the table."""
    face: Face | None = None
    """How it is shown, where that is not how it is stored."""
    is_custom: bool = False
    """Is it of a kind that a CustomResourceDefinition defines?"""
    is_terminating: bool = False
    """Is the kind on its way out, so that nothing new of it may be created?"""


class StatusStrategy(Strategy):
    """The status subresource of a kind: only status may change, and labels, annotations and the like with it."""

    def __init__(
        self, of: Strategy, errors: Callable[[Context, Document, Mapping[str, Any]], list[FieldError]] | None = None
    ) -> None:
        self._of, self._errors = of, errors
        for name in ("group", "version", "kind", "plural", "singular", "namespaced", "has_generation", "unconditional_update"):
            setattr(self, name, getattr(of, name))

    def default(self, document: Document) -> None:
        self._of.default(document)

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        _restore(new, old, "spec")

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return [] if self._errors is None else self._errors(context, new, old)

    def spec_changed(self, new: Document, old: Mapping[str, Any]) -> bool:
        return False


def _restore(new: Document, old: Mapping[str, Any], name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def with_status(
    strategy: Strategy, errors: Callable[[Context, Document, Mapping[str, Any]], list[FieldError]] | None = None
) -> dict[str, Strategy]:
    """The subresources of a kind that has a status."""
    return {"status": StatusStrategy(strategy, errors)}


def field_at(*path: str) -> Callable[[Mapping[str, Any]], str]:
    """A field selector's value: what stands at ``path``, the empty string for nothing."""

    def read(document: Mapping[str, Any]) -> str:
        found: Any = document
        for step in path:
            found = found.get(step)
            if found is None:
                return ""
        if isinstance(found, bool):
            return "true" if found else "false"
        return str(found)

    return read
