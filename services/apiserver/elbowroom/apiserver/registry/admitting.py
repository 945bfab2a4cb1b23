"""The admission chain around a write: the first refusal ends it."""

from collections.abc import Sequence

from elbowroom.api.gates import Profile
from elbowroom.apiserver import admission, statuses
from elbowroom.apiserver.admission_base import Attributes, Plugin, Refusal
from elbowroom.apiserver.statuses import ApiError
from elbowroom.apiserver.strategy import Context, Strategy


class Chain:
    """The plugins of a profile, for a life of the API server."""

    def __init__(self, profile: Profile) -> None:
        self._plugins: Sequence[Plugin] = admission.chain(profile)

    def admit(self, context: Context, kind: Strategy, attributes: Attributes) -> None:
        """Before validation; the object may be changed."""
        for plugin in self._plugins:
            refusal = plugin.admit(context, attributes)
            if refusal is not None:
                raise _refused(kind, attributes, refusal)

    def validate(self, context: Context, kind: Strategy, attributes: Attributes) -> None:
        """After validation."""
        for plugin in self._plugins:
            refusal = plugin.validate(context, attributes)
            if refusal is not None:
                raise _refused(kind, attributes, refusal)


def _refused(kind: Strategy, attributes: Attributes, refusal: Refusal) -> ApiError:
    if refusal.code == 403:
        return statuses.forbidden(kind.group, kind.plural, attributes.name, refusal.message, refusal.causes)
    details = refusal.details
    if details is None:
        details = {"name": attributes.name, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}
    return ApiError(
        refusal.code, refusal.reason, refusal.message, {**details, **({"causes": list(refusal.causes)} if refusal.causes else {})}
    )
