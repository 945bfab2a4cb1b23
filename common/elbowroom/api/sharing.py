"""Equal parts of different objects as one value.

Pods of a template differ in a few strings, but each that is decoded comes with values of its own: seven kilobytes in every process
that follows pods, of which six are the same in the next one. So whoever keeps views shows them to ``shared``, which puts earlier
values in the place of equal ones. What is worked out of a spec and kept with it (``resources.kept_with_spec``) is then shared, too.

Nobody changes a view or a status that came from the API server, which is what makes this right. Parts are known by their encoding,
and are forgotten all at once when there are too many: that costs memory for a while, and nothing else.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import force_setattr

from elbowroom.api.objects import NodeStatus, ObjectMeta, PodSpec, PodStatus

View = TypeVar("View")
Value = TypeVar("Value")

PARTS_MAX: Final = 16_384
_encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode


class Sharing:
    """The parts that were seen. One for a process: thousands of kubelets follow pods of the same few templates."""

    def __init__(self, parts_max: int = PARTS_MAX) -> None:
        self._parts_max = parts_max
        self._parts: dict[tuple[str, bytes], Any] = {}
        self._words: dict[str, str] = {}

    def shared(self, view: View) -> View:
        """The view itself, just decoded and seen by nobody yet, with shared parts."""
        metadata = getattr(view, "metadata", None)
        if isinstance(metadata, ObjectMeta):
            self._of_metadata(metadata)
        spec = getattr(view, "spec", None)
        if isinstance(spec, PodSpec) and isinstance(view, msgspec.Struct):
            force_setattr(view, "spec", self._spec(spec))
        match getattr(view, "status", None):
            case PodStatus() as status:
                self._of_status(status)
            case NodeStatus() as status:
                self._share(status, "capacity", "allocatable", "conditions", "images", "declared_features")
            case dict() as document:
                self.document(document)
        return view

    def document(self, status: dict[str, Any]) -> None:
        """The same for the status of a pod as JSON, in place."""
        words = self._words
        for name, value in status.items():
            if isinstance(value, str):
                status[name] = words.get(value) or self._word(value)
            elif name in ("containerStatuses", "initContainerStatuses") and isinstance(value, list):
                for each in value:
                    if isinstance(each, dict):
                        self.document(each)
            elif value:
                status[name] = self._one(f"status.{name}", value)

    def status(self, status: PodStatus) -> None:
        """The same for the status of a pod alone, in place."""
        self._of_status(status)

    def _spec(self, spec: PodSpec) -> PodSpec:
        key = ("spec", _encode(spec))
        known = self._parts.get(key)
        if known is None:
            self._share(spec, "containers", "init_containers", "tolerations", "volumes")
            known = self._keep(key, spec)
        return known

    def _of_metadata(self, metadata: ObjectMeta) -> None:
        self._share(metadata, "labels", "annotations", "owner_references")
        self._share_words(metadata, "namespace", "creation_timestamp")

    def _of_status(self, status: PodStatus) -> None:
        self._share(status, "conditions", "allocated_resources", "resources")
        self._share_words(status, "phase", "qos_class", "start_time", "host_ip")
        for each in (*status.container_statuses, *status.init_container_statuses):
            self._share(each, "state", "last_state", "allocated_resources", "resources")
            self._share_words(each, "name", "image", "image_id")

    def _share(self, holder: msgspec.Struct, *names: str) -> None:
        parts = self._parts
        for name in names:
            value = getattr(holder, name)
            if value:
                known = parts.get((name, raw := _encode(value)))
                force_setattr(holder, name, self._keep((name, raw), value) if known is None else known)

    def _share_words(self, holder: msgspec.Struct, *names: str) -> None:
        words = self._words
        for name in names:
            value = getattr(holder, name)
            if value:
                force_setattr(holder, name, words.get(value) or self._word(value))

    def _one(self, what: str, value: Value) -> Value:
        key = (what, _encode(value))
        known = self._parts.get(key)
        return self._keep(key, value) if known is None else known

    def _word(self, word: str) -> str:
        known = self._words.get(word)
        if known is None:
            if len(self._words) >= self._parts_max:
                self._words.clear()
            known = self._words[word] = word
        return known

    def _keep(self, key: tuple[str, bytes], value: Value) -> Value:
        if len(self._parts) >= self._parts_max:
            self._parts.clear()
        self._parts[key] = value
        return value


_PROCESS: Final = Sharing()
shared: Final = _PROCESS.shared
shared_document: Final = _PROCESS.document
shared_status: Final = _PROCESS.status
