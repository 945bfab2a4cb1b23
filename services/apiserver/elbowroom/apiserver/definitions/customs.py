"""From a definition to what is served: an entry of discovery and a row of the registry for each of its versions."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError, invalid
from elbowroom.apiserver import discovery
from elbowroom.apiserver.definitions import expressions, structural, values
from elbowroom.apiserver.definitions.rules import is_true
from elbowroom.apiserver.definitions.structural import META_FIELDS
from elbowroom.apiserver.faces import Face
from elbowroom.apiserver.gotext import go_type
from elbowroom.apiserver.jsonpath import look
from elbowroom.apiserver.kinds.base import Resource, ScalePaths
from elbowroom.apiserver.store import Record
from elbowroom.apiserver.strategy import Context, Document, Strategy

Node = Mapping[str, Any]
INT32_MAX = 2_147_483_647
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_STATUS_VERBS = ("get", "patch", "update")
_encode = msgspec.json.Encoder().encode


# ---------------------------------------------------------------- discovery


def _age(version: str) -> tuple[int, int, int, str]:
    """The key that puts ``v2`` before ``v1``, those before betas and alphas, and anything else last, by name."""
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if found is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (stage, -int(found[1]), -int(found[3] or 0), "")


def resources(definition: Node) -> list[discovery.Resource]:
    """What discovery says of a definition: nothing until it is established."""
    if not is_true(definition, "Established"):
        return []
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    found = []
    for version in sorted(spec["versions"], key=lambda one: _age(one["name"])):
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        subs = []
        if "status" in subresources:
            subs.append(discovery.Subresource("status", names["kind"], _STATUS_VERBS))
        if subresources.get("scale") is not None:
            subs.append(discovery.Subresource("scale", "Scale", _STATUS_VERBS, "autoscaling", "v1"))
        found.append(
            discovery.Resource(
                names["plural"],
                names["kind"],
                spec["group"],
                version["name"],
                spec["scope"] == "Namespaced",
                tuple(names.get("shortNames") or ()),
                tuple(names.get("categories") or ()),
                _VERBS,
                tuple(subs),
                singular_name=names["singular"],
                list_kind=names["listKind"],
                definition=version,
            )
        )
    return found


def catalog(definitions: Iterable[Node], built_in: tuple[discovery.Resource, ...] = discovery.RESOURCES) -> discovery.Catalog:
    """All that is served, with what the definitions define."""
    found = [resource for definition in definitions for resource in resources(definition)]
    found.sort(key=lambda one: (one.group, _age(one.version), one.plural))
    return discovery.Catalog((*built_in, *found))


# ---------------------------------------------------------------- rows


class VersionFace(Face):
    """A version of a custom kind. Versions differ by name only (conversion None), and what is stored is as the schema of the
    version for storage wants it; what an older definition let in is pruned, and gets the present one's defaults, when it is read.
    """

    def __init__(self, kind: str, api_version: str, stored_version: str, stored_schema: Node, since: int) -> None:
        self._kind, self._api_version, self._stored_version = kind, api_version, stored_version
        self._schema, self._since = stored_schema, since

    def document(self, record: Record) -> Document:
        made: Document = {"kind": self._kind, "apiVersion": self._api_version}
        made |= {name: value for name, value in record.copy().items() if name not in made}
        if record.revision <= self._since:
            self._conform(made)
        return made

    def data(self, record: Record) -> bytes:
        if self._api_version == self._stored_version and record.revision > self._since:
            return record.data
        return _encode(self.document(record))

    def stored(self, document: Document) -> Document:
        if self._api_version == self._stored_version:
            return document
        made: Document = structural.plain({**document, "apiVersion": self._stored_version})
        self._conform(made)
        return made

    def _conform(self, document: Document) -> None:
        structural.prune(document, self._schema)
        structural.default(document, self._schema)


class CustomStrategy(Strategy):
    """An object of a custom kind in one of its versions."""

    has_generation, unconditional_update = True, False

    def __init__(self, definition: Node, version: Node) -> None:
        spec = definition["spec"]
        names = definition["status"]["acceptedNames"]
        self.group, self.version, self.kind = spec["group"], version["name"], names["kind"]
        self.plural, self.singular = names["plural"], names["singular"]
        self.namespaced = spec["scope"] == "Namespaced"
        self._list_kind: str = names["listKind"]
        self.schema: Node = version["schema"]["openAPIV3Schema"]
        subresources = version.get("subresources") or {}
        self.has_status = "status" in subresources
        self._scale: Node | None = subresources.get("scale")
        self._rules = expressions.node_of(self.schema, is_root=True)

    @property
    def list_kind(self) -> str:
        return self._list_kind

    def default(self, document: Document) -> None:
        structural.default(document, self.schema)

    def prepare_create(self, context: Context, new: Document) -> None:
        if self.has_status:
            new.pop("status", None)

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        if not self.has_status:
            return
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)

    def validate_create(self, context: Context, new: Document) -> list[FieldError]:
        found = self._schema_errors(new)
        return found + self.rule_errors(context, found, new, None)

    def _schema_errors(self, new: Document) -> list[FieldError]:
        found = values.errors(self.schema, new)
        return [*found, *self.scale_errors(new, "specReplicasPath", "statusReplicasPath"), *values.list_errors(self.schema, new)]

    def validate_update(self, context: Context, new: Document, old: Node) -> list[FieldError]:
        """What was wrong before and did not change may stay (ratcheting)."""
        before = {*values.errors(self.schema, dict(old)), *values.list_errors(self.schema, dict(old))}
        found = [error for error in self._schema_errors(new) if error not in before]
        return found + self.rule_errors(context, found, new, old)

    def rule_errors(self, context: Context, found: list[FieldError], new: Node, old: Node | None) -> list[FieldError]:
        """The rules of the schema that an object breaks, if it is not too wrong already to ask."""
        if self._rules is None:
            return []
        blocked = expressions.blocked(found)
        return [blocked] if blocked is not None else expressions.errors(self._rules, new, old, warnings=context.warnings)

    def scale_errors(self, document: Node, *paths: str) -> list[FieldError]:
        """Counts of replicas that are none."""
        found: list[FieldError] = []
        for path in [] if self._scale is None else [self._scale[name] for name in paths]:
            for count in look(document, path):
                if isinstance(count, bool) or not isinstance(count, int):
                    text = f"{path} accessor error: {count} is of the type {go_type(count)}, expected int64"
                    found.append(invalid(path, 0, text))
                elif count < 0:
                    found.append(invalid(path, count, "should be a non-negative integer"))
                elif count > INT32_MAX:
                    found.append(invalid(path, count, f"should be less than or equal to {INT32_MAX}"))
        return found

    def spec_changed(self, new: Document, old: Node) -> bool:
        return any(new.get(name) != old.get(name) for name in {**new, **old} if name != "metadata")


class CustomStatusStrategy(CustomStrategy):
    """Only the status changes, and who manages it."""

    def prepare_update(self, context: Context, new: Document, old: Node) -> None:
        status, entries = new.get("status"), new["metadata"].get("managedFields")
        revision = new["metadata"].get("resourceVersion")
        new.clear()
        new |= {name: value for name, value in old.items() if name not in ("metadata", "status")}
        new["metadata"] = {**old["metadata"], **({"resourceVersion": revision} if revision else {})}
        new["metadata"].pop("managedFields", None)
        if entries:
            new["metadata"]["managedFields"] = entries
        if status is not None:
            new["status"] = status

    def validate_update(self, context: Context, new: Document, old: Node) -> list[FieldError]:
        schema = (self.schema.get("properties") or {}).get("status")
        found: list[FieldError] = []
        if schema is not None and "status" in new:
            before = values.errors(schema, old.get("status"), "", "status") if "status" in old else []
            found = [error for error in values.errors(schema, new["status"], "", "status") if error not in before]
        found += self.scale_errors(new, "statusReplicasPath")
        return found + self.rule_errors(context, found, new, old)

    def spec_changed(self, new: Document, old: Node) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Custom:
    """What the registry serves under a plural of one group and version."""

    resource: discovery.Resource
    row: Resource


def customs(definition: Node, revision: int) -> dict[str, Custom]:
    """By version, what a definition that was written at ``revision`` makes the registry serve."""
    found = {}
    versions = {version["name"]: version for version in definition["spec"]["versions"]}
    stored = next(version["name"] for version in versions.values() if version.get("storage"))
    for resource in resources(definition):
        version = versions[resource.version]
        strategy = CustomStrategy(definition, version)
        subresources = version.get("subresources") or {}
        paths = subresources.get("scale")
        schema = versions[stored]["schema"]["openAPIV3Schema"]
        face = VersionFace(strategy.kind, strategy.api_version, f"{strategy.group}/{stored}", schema, revision)
        row = Resource(
            strategy,
            {"status": CustomStatusStrategy(definition, version)} if strategy.has_status else {},
            fields={one["jsonPath"].removeprefix("."): _reader(one["jsonPath"]) for one in version.get("selectableFields") or ()},
            scales=paths is not None,
            scale_paths=None
            if paths is None
            else ScalePaths(paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath") or ""),
            field=structural.tree(strategy.kind, strategy.schema),
            face=face,
            is_custom=True,
            is_terminating=is_true(definition, "Terminating"),
        )
        found[resource.version] = Custom(resource, row)
    return found


def _reader(path: str) -> Callable[[Node], str]:
    def read(document: Node) -> str:
        found = look(document, path)
        if not found or found[0] is None:
            return ""
        return {True: "true", False: "false"}[found[0]] if isinstance(found[0], bool) else str(found[0])

    return read


def unmanaged(field_names: Mapping[str, Any]) -> tuple[str, ...]:
    """The top-level fields that a write of a custom status cannot change."""
    return tuple(name for name in field_names if name not in META_FIELDS and name != "status")
