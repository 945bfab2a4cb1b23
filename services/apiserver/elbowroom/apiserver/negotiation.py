"""In which form a client wants its answer: JSON or YAML, an object or a Table."""

from dataclasses import dataclass
from functools import lru_cache

from elbowroom.apiserver.statuses import ApiError

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

_OFFERED = (JSON, YAML, PROTOBUF)
_FORMS = {"": "", "Table": "Table", "PartialObjectMetadata": "Partial", "PartialObjectMetadataList": "Partial"}


@dataclass(frozen=True, slots=True)
class Form:
    """``media_type`` is JSON or YAML; ``shape`` is empty (as it is), ``Table`` or ``Partial`` (metadata only)."""

    media_type: str = JSON
    shape: str = ""
    version: str = "v1"

    @property
    def content_type(self) -> str:
        return self.media_type


PLAIN = Form()


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Form | None:
    """The best form that ``accept`` asks for and we have; None if there is none.

    Protobuf is never sent: whoever asks for it takes JSON too.
    """
    if not accept:
        return PLAIN
    for _, media_type, parameters in _clauses(accept):
        if media_type in ("*/*", "application/*"):
            media_type = JSON
        if media_type not in (JSON, YAML):
            continue
        shape = _FORMS.get(parameters.get("as", ""))
        if shape is None:
            continue
        version = parameters.get("v", "v1")
        if shape and (parameters.get("g", "meta.k8s.io") != "meta.k8s.io" or version not in ("v1", "v1beta1")):
            continue
        return PLAIN if media_type == JSON and not shape else Form(media_type, shape, version if shape else "v1")
    return None


def refusal(accept: str, *, watchable: bool) -> ApiError:
    """The 406 for an ``accept`` that asks for nothing that we have."""
    offered = list(_OFFERED)
    if any(media_type in _OFFERED for _, media_type, _ in _clauses(accept)):
        return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(offered)}", {})
    if watchable:
        offered += [f"{JSON};stream=watch", f"{PROTOBUF};stream=watch"]
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    return ApiError(406, "NotAcceptable", message, {})


def wants(accept: str, media_type: str) -> bool:
    """Does ``accept`` name exactly this type with its parameters (the aggregated discovery)?"""
    base, _, parameters = media_type.partition(";")
    wanted = dict(pair.split("=", 1) for pair in parameters.split(";"))
    return any(
        found == base and all(given.get(key) == value for key, value in wanted.items()) for _, found, given in _clauses(accept)
    )


def _clauses(accept: str) -> list[tuple[float, str, dict[str, str]]]:
    """(quality, media type, parameters), the best first; equal ones stay in order."""
    found = []
    for clause in accept.split(",")[:32]:
        media_type, *rest = (part.strip() for part in clause.split(";"))
        parameters = {name: value for name, _, value in (part.partition("=") for part in rest if part)}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        if quality > 0:
            found.append((quality, media_type.lower(), parameters))
    return sorted(found, key=lambda clause: -clause[0])
