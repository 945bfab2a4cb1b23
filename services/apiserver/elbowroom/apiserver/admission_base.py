"""Admission: plugins in upstream's fixed order that may change (``admit``) or refuse (``validate``) a write."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.apiserver.strategy import Context, Document


class Attributes(msgspec.Struct, frozen=True, eq=False):
    """The write that is judged. ``operation``: CREATE, UPDATE, DELETE."""

    operation: str
    resource: str
    """Plural with group: ``pods``, ``deployments.apps``."""
    subresource: str
    namespace: str
    name: str
    new: Document | None
    old: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A plugin's 403 (or another code). The registry says ``pods "NAME" is forbidden: MESSAGE`` around a 403's message; that of
    another code is whole."""

    message: str
    causes: tuple[Mapping[str, str], ...] = ()
    code: int = 403
    reason: str = "Forbidden"
    details: Mapping[str, str] | None = None
    """The Status's ``details`` (name, kind), where they are not those of the object that is written."""


class Plugin:
    """An admission plugin; the base lets everything pass."""

    name: str = ""
    concerns: tuple[str, ...] = ()
    """The resources that it decides anything about; none named: all."""

    def admit(self, context: Context, attributes: Attributes) -> Refusal | None:
        """May change ``attributes.new`` in place, before validation (RC-25)."""
        return None

    def validate(self, context: Context, attributes: Attributes) -> Refusal | None:
        """After validation; the first refusal ends the request."""
        return None
