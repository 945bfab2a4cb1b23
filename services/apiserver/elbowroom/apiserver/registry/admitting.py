"""The admission chain around a write: the first refusal ends it."""

from collections.abc import Sequence
from typing import NamedTuple

from elbowroom.api.gates import Profile
from elbowroom.apiserver import admission, statuses
from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.strategy import Context, Strategy


class _Asked(NamedTuple):
    """Who is asked before validation, and who after it."""

    first: tuple[Plugin, ...]
    then: tuple[Plugin, ...]


class Chain:
    """The plugins of a profile, for a life of the API server."""

    def __init__(self, profile: Profile) -> None:
        plugins = admission.chain(profile)
        named = {resource for plugin in plugins for resource in plugin.concerns}
        self._asked = {resource: _asked(plugins, resource) for resource in sorted(named)}
        """By resource; where some plugin is about it alone."""
        self._by_all = _asked(plugins, "")

    def admit(self, context: Context, kind: Strategy, attributes: Attributes) -> None:
        """Before validation; the object may be changed."""
        for plugin in self._asked.get(attributes.resource, self._by_all).first:
            refusal = plugin.admit(context, attributes)
            if refusal is not None:
                raise _refused(kind, attributes, refusal)

    def validate(self, context: Context, kind: Strategy, attributes: Attributes) -> None:
        """After validation."""
        for plugin in self._asked.get(attributes.resource, self._by_all).then:
            refusal = plugin.validate(context, attributes)
            if refusal is not None:
                raise _refused(kind, attributes, refusal)


def _asked(plugins: Sequence[Plugin], resource: str) -> _Asked:
    mine = [plugin for plugin in plugins if not plugin.concerns or resource in plugin.concerns]
    return _Asked(
        tuple(plugin for plugin in mine if type(plugin).admit is not Plugin.admit),
        tuple(plugin for plugin in mine if type(plugin).validate is not Plugin.validate),
    )


def _refused(kind: Strategy, attributes: Attributes, refusal: Refusal) -> ApiError:
    if refusal.code == 403:
        return statuses.forbidden(kind.group, kind.plural, attributes.name, refusal.message, refusal.causes)
    details = refusal.details
    if details is None:
        details = {"name": attributes.name, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}
    return ApiError(
        refusal.code, refusal.reason, refusal.message, {**details, **({"causes": list(refusal.causes)} if refusal.causes else {})}
    )
