"""What the registry asks of a kind: its names, its defaults, what a write may change, and what is valid.

The generic registry does what is the same for all (names, uids, timestamps, resourceVersion, generation bumps through
``spec_changed``, finalizers, graceful deletion, conflicts, selectors, pages, patches); a strategy has what is not. Documents
are plain dicts; methods that say "in place" may change the document they are given, which nobody else holds.
"""

import random
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Protocol

import msgspec

from elbowroom.api.fielderrors import FieldError
from elbowroom.api.gates import Profile
from elbowroom.machine import Instant

Document = dict[str, Any]


class Reader(Protocol):
    """The store as strategies and admission see it: the state that the write is based on. Documents must not be changed."""

    def get(self, resource: str, namespace: str, name: str) -> Document | None:
        """``resource`` is the plural, with its group where it has one: ``pods``, ``priorityclasses.scheduling.k8s.io``."""
        ...

    def list(self, resource: str, namespace: str = "") -> Iterable[Document]: ...


class Context(msgspec.Struct, frozen=True, eq=False):
    """One request on its way through the registry."""

    now: Instant
    rng: random.Random
    profile: Profile
    reader: Reader
    user: str = ""
    groups: tuple[str, ...] = ()
    warnings: list[str] = msgspec.field(default_factory=list)
    """Texts for ``Warning: 299`` headers; append to it."""
    dry_run: bool = False
    also_write: list[tuple[str, str, str, Document]] = msgspec.field(default_factory=list)
    """Other objects that this write changes: (resource, namespace, name, whole new document), say a quota's ``status.used``.

    The registry commits them together with the write itself, each as a revision of its own with a fresh resourceVersion, after
    the last refusal and not at all on a dry run. They are based on ``reader``, so there is no conflict to look for.
    """


class Strategy:
    """A kind (or a subresource of it) with upstream's defaults for all that a kind may leave alone."""

    group: str = ""
    version: str = "v1"
    kind: str = ""
    plural: str = ""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    has_generation: bool = False
    """``metadata.generation`` starts at 1 and rises when ``spec_changed``."""
    allows_create_on_update: bool = False
    unconditional_update: bool = True
    """A PUT without resourceVersion is accepted."""
    spares_stored: bool = False
    """Nothing that a patch left alone is changed in place, so that it may share it with the stored object."""

    @cached_property
    def resource(self) -> str:
        """``pods``, ``replicasets.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        """``PodList``."""
        return f"{self.kind}List"

    def default(self, document: Document) -> None:
        """The version's defaulting, in place; runs after every decode (create, update, patched object)."""

    def prepare_create(self, context: Context, new: Document) -> None:
        """Drop or set what a creator has no say in, in place (status, generation is set by the registry)."""

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        """All errors of the spec; the registry has checked metadata."""
        return []

    def prepare_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> None:
        """Put back what this (sub)resource may not change, in place; RC-26 for resize."""

    def validate_update(self, context: Context, new: Document, old: Mapping[str, Any]) -> list[FieldError]:
        return []

    def spec_changed(self, new: Document, old: Mapping[str, Any]) -> bool:
        """Does the write deserve a new generation? Semantic equality: ``1`` and ``1000m``, absent and empty are the same (RC-7)."""
        return bool(new.get("spec") != old.get("spec"))
