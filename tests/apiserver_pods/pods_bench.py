"""The least of a registry that the pod strategies and the admission chain need to be seen at work: one writer, in memory."""

import copy
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elbowroom.api.fielderrors import FieldError
from elbowroom.api.gates import Profile, profile_of
from elbowroom.apiserver import schema
from elbowroom.apiserver.admission import chain
from elbowroom.apiserver.admission_base import Attributes, Refusal
from elbowroom.apiserver.pods import PodResizeStrategy, PodStatusStrategy, PodStrategy
from elbowroom.apiserver.strategy import Context, Document, Strategy
from elbowroom.machine import Instant

NOW = Instant(1_764_000_000_000_000_000)
STRATEGIES: dict[str, Strategy] = {"": PodStrategy(), "status": PodStatusStrategy(), "resize": PodResizeStrategy()}
POD = schema.find("", "v1", "Pod", previews=True)
assert POD is not None


class Refused(Exception):
    """A write that was not made: its code, what was said, and the causes as (field, message)."""

    def __init__(self, code: int, message: str, causes: list[tuple[str, str]]) -> None:
        super().__init__(message)
        self.code, self.message, self.causes = code, message, causes


@dataclass
class Bench:
    """Stored documents, and writes of pods as the registry makes them."""

    profile: Profile = field(default_factory=lambda: profile_of("v1.37"))
    stored: dict[tuple[str, str, str], Document] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    revision: int = 0

    def __post_init__(self) -> None:
        self._chain = chain(self.profile)
        self.put("namespaces", {"metadata": {"name": "ns"}, "status": {"phase": "Active"}})

    def get(self, resource: str, namespace: str, name: str) -> Document | None:
        return self.stored.get((resource, namespace, name))

    def list(self, resource: str, namespace: str = "") -> Iterable[Document]:
        return [document for (kind, where, _), document in self.stored.items() if kind == resource and namespace in ("", where)]

    def put(self, resource: str, document: Mapping[str, Any]) -> Document:
        """Store something as it is."""
        self.revision += 1
        new = copy.deepcopy(dict(document))
        metadata = new["metadata"]
        metadata.setdefault("uid", f"uid-{self.revision}")
        metadata["resourceVersion"] = str(self.revision)
        self.stored[(resource, metadata.get("namespace", ""), metadata["name"])] = new
        return new

    def pod(self, name: str = "a") -> Document:
        """A copy of the stored pod, to be changed and sent."""
        return copy.deepcopy(self.stored[("pods", "ns", name)])

    def create(self, pod: Mapping[str, Any], *, dry_run: bool = False) -> Document:
        """POST."""
        assert POD is not None
        decoded = schema.decode(POD, pod)
        if decoded.error:
            raise Refused(400, decoded.error, [])
        new = decoded.document
        new["metadata"].setdefault("namespace", "ns")
        strategy = STRATEGIES[""]
        context = self._context(dry_run)
        strategy.default(new)
        attributes = Attributes("CREATE", "pods", "", new["metadata"]["namespace"], new["metadata"].get("name", ""), new, None)
        self._admit(context, attributes)
        strategy.prepare_create(context, new)
        new["metadata"]["generation"] = 1
        return self._finish(context, attributes, strategy.validate_create(context, new))

    def update(self, pod: Mapping[str, Any], subresource: str = "", *, dry_run: bool = False) -> Document:
        """PUT."""
        assert POD is not None
        decoded = schema.decode(POD, pod)
        if decoded.error:
            raise Refused(400, decoded.error, [])
        new = decoded.document
        old = self.stored[("pods", "ns", new["metadata"]["name"])]
        for name in ("namespace", "uid", "resourceVersion", "creationTimestamp", "generation"):
            if name in old["metadata"]:
                new["metadata"][name] = old["metadata"][name]
        strategy = STRATEGIES[subresource]
        context = self._context(dry_run)
        strategy.default(new)
        attributes = Attributes("UPDATE", "pods", subresource, "ns", new["metadata"]["name"], new, old)
        self._admit(context, attributes)
        strategy.prepare_update(context, new, old)
        if strategy.spec_changed(new, old):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        return self._finish(context, attributes, strategy.validate_update(context, new, old))

    def resize(self, pod: Mapping[str, Any], **options: Any) -> Document:
        return self.update(pod, "resize", **options)

    def admit(self, attributes: Attributes) -> Refusal | None:
        """What the chain says of any write, in both phases."""
        context = self._context(False)
        for phase in ("admit", "validate"):
            for plugin in self._chain:
                refusal: Refusal | None = getattr(plugin, phase)(context, attributes)
                if refusal is not None:
                    return refusal
        for resource, _, _, document in context.also_write:
            self.put(resource, document)
        return None

    def _context(self, dry_run: bool) -> Context:
        return Context(NOW, random.Random(1), self.profile, self, dry_run=dry_run)

    def _admit(self, context: Context, attributes: Attributes) -> None:
        for plugin in self._chain:
            _raise(attributes, plugin.admit(context, attributes))

    def _finish(self, context: Context, attributes: Attributes, errors: Sequence[FieldError]) -> Document:
        if errors:
            texts = list(dict.fromkeys(map(str, errors)))
            shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            raise Refused(422, f'Pod "{attributes.name}" is invalid: {shown}', [(error.field, error.body) for error in errors])
        for plugin in self._chain:
            _raise(attributes, plugin.validate(context, attributes))
        self.warnings = context.warnings
        assert attributes.new is not None
        if context.dry_run:
            return attributes.new
        for resource, _, _, document in context.also_write:
            self.put(resource, document)
        return self.put("pods", attributes.new)


def _raise(attributes: Attributes, refusal: Refusal | None) -> None:
    if refusal is None:
        return
    message = f'pods "{attributes.name}" is forbidden: {refusal.message}' if refusal.code == 403 else refusal.message
    raise Refused(refusal.code, message, [(cause.get("field", ""), cause.get("reason", "")) for cause in refusal.causes])
