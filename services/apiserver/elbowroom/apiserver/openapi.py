"""OpenAPI v3, made from the field tree: enough for kubectl to validate (by asking the server) and to explain.

kubectl looks for three things: which kinds exist (``x-kubernetes-group-version-kind``), whether the server validates fields itself
(a ``fieldValidation`` parameter on the writing operations), and what the fields are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elbowroom.apiserver import discovery, schema
from elbowroom.apiserver.discovery import Catalog, Resource
from elbowroom.apiserver.schema import Field, Struct
from elbowroom.apiserver.schema.descriptions import description

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_META_TYPES = frozenset(
    (
        *("ObjectMeta", "ListMeta", "LabelSelector", "LabelSelectorRequirement", "OwnerReference", "ManagedFieldsEntry"),
        *("Condition", "Status", "StatusDetails", "StatusCause", "DeleteOptions", "Preconditions"),
    )
)
_SCALARS: Mapping[int, tuple[str, str]] = {
    schema.STRING: ("string", ""),
    schema.INT32: ("integer", "int32"),
    schema.INT64: ("integer", "int64"),
    schema.BOOL: ("boolean", ""),
    schema.FLOAT: ("number", "double"),
    schema.QUANTITY: ("string", ""),
    schema.TIME: ("string", "date-time"),
    schema.MICRO_TIME: ("string", "date-time"),
    schema.BYTES: ("string", "byte"),
    schema.ANY: ("object", ""),
}
_PATCHES = (
    *("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"),
    "application/strategic-merge-patch+json",
)
_CONTENT = ("application/json", "application/yaml")


def index(hash_of: Callable[[str, str], str], catalog: Catalog = discovery.BUILT_IN) -> dict[str, Any]:
    """``/openapi/v3``; ``hash_of(group, version)`` lets clients cache a document for ever."""
    paths = {}
    for group, version in catalog.group_versions():
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={hash_of(group, version)}"}
    return {"paths": paths}


def document(group: str, version: str, *, previews: bool = False, catalog: Catalog = discovery.BUILT_IN) -> dict[str, Any] | None:
    """``/openapi/v3/apis/GROUP/VERSION``; None if that is not served."""
    resources = catalog.of(group, version)
    if not resources:
        return None
    maker = _Maker(group, version, previews, resources)
    paths: dict[str, Any] = {}
    for resource in resources:
        paths |= _paths(maker, resource)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": discovery.GIT_VERSION},
        "paths": paths,
        "components": {"schemas": dict(sorted(maker.schemas.items()))},
    }


class _Maker:
    """Collects the component schemas that paths refer to."""

    def __init__(self, group: str, version: str, previews: bool, resources: Sequence[Resource]) -> None:
        self.schemas: dict[str, Any] = {}
        self._customs = {resource.kind: resource.definition for resource in resources if resource.definition is not None}
        self._lists = {resource.list_kind: resource.kind for resource in resources if resource.definition is not None}
        self._of = (group, version)
        self._package = f"io.k8s.api.{(group or 'core').partition('.')[0]}.{version}"
        self._previews = previews

    def kind(self, group: str, version: str, kind: str) -> dict[str, Any]:
        """A reference to the schema of a kind; of one without fields here, an object."""
        if (group, version) == self._of and (kind in self._customs or kind in self._lists or kind[:-4] in self._customs):
            return self._custom(group, version, kind)
        field = schema.find(group, version, kind, previews=self._previews)
        if field is None or field.struct is None:
            return {"type": "object"}
        name = self._struct(field.struct)
        whole = self.schemas[name]
        gvk = {"group": group, "kind": kind, "version": version}
        if gvk not in whole.setdefault("x-kubernetes-group-version-kind", []):
            whole["x-kubernetes-group-version-kind"].append(gvk)
        return _reference(name)

    def is_custom(self, group: str, version: str, kind: str) -> bool:
        """Is it a custom kind?"""
        return (group, version) == self._of and kind in self._customs

    def _custom(self, group: str, version: str, kind: str) -> dict[str, Any]:
        """A custom kind, or a list of one, under upstream's name: ``com.example.stable.v1.CronTab``."""
        package = ".".join((*reversed(group.split(".")), version))
        name = f"{package}.{kind}"
        if name in self.schemas:
            return _reference(name)
        whole: dict[str, Any] = {"type": "object"}
        self.schemas[name] = whole
        properties: dict[str, Any] = {
            "apiVersion": {"description": description("*", "apiVersion"), "type": "string"},
            "kind": {"description": description("*", "kind"), "type": "string"},
        }
        definition = self._customs.get(kind)
        if definition is None:
            item = self._lists.get(kind, kind[:-4])
            whole["description"] = f"{kind} is a list of {item}"
            properties["items"] = {"type": "array", "items": self._custom(group, version, item)}
            properties["metadata"] = {"allOf": [_reference(self._meta("ListMeta"))]}
            whole["required"] = ["items"]
        else:
            said = definition["schema"]["openAPIV3Schema"]
            whole |= {word: value for word, value in said.items() if word not in ("properties", "x-kubernetes-validations")}
            properties |= {word: value for word, value in (said.get("properties") or {}).items() if word not in properties}
            properties["metadata"] = {"allOf": [_reference(self._meta("ObjectMeta"))]}
        whole["properties"] = dict(sorted(properties.items()))
        whole["x-kubernetes-group-version-kind"] = [{"group": group, "kind": kind, "version": version}]
        return _reference(name)

    def _meta(self, name: str) -> str:
        """The schema of ``ObjectMeta`` or ``ListMeta``."""
        field = schema.find("", "v1", "ConfigMapList" if name == "ListMeta" else "ConfigMap")
        assert field is not None
        struct = field.fields["metadata"].struct
        assert struct is not None
        return self._struct(struct)

    def _struct(self, struct: Struct) -> str:
        name = f"{_META if struct.go in _META_TYPES else self._package}.{struct.go}"
        if name not in self.schemas:
            whole: dict[str, Any] = {"type": "object"}
            self.schemas[name] = whole
            text = description(struct.go)
            if text:
                whole["description"] = text
            whole["properties"] = {field.name: self._property(struct, field) for field in struct.fields.values()}
            required = [field.name for field in struct.fields.values() if field.required]
            if required:
                whole["required"] = required
        return name

    def _property(self, struct: Struct, field: Field) -> dict[str, Any]:
        found = self._type(field)
        text = description(struct.go, field.name)
        if field.list_type:
            found["x-kubernetes-list-type" if field.kind == schema.ARRAY else "x-kubernetes-map-type"] = field.list_type
        if field.list_keys:
            found["x-kubernetes-list-map-keys"] = list(field.list_keys)
        if field.strategy:
            found["x-kubernetes-patch-strategy"] = field.strategy
        if field.key:
            found["x-kubernetes-patch-merge-key"] = field.key
        return {"description": text, **found} if text else found

    def _type(self, field: Field) -> dict[str, Any]:
        if field.kind == schema.STRUCT:
            assert field.struct is not None
            return {"allOf": [_reference(self._struct(field.struct))], "default": {}}
        if field.kind == schema.ARRAY:
            assert field.item is not None
            return {"type": "array", "items": self._type(field.item)}
        if field.kind == schema.MAP:
            assert field.item is not None
            return {"type": "object", "additionalProperties": self._type(field.item)}
        if field.kind == schema.INT_OR_STRING:
            return {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}
        kind, form = _SCALARS[field.kind]
        return {"type": kind, "format": form} if form else {"type": kind}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


# ---------------------------------------------------------------- paths


def _paths(maker: _Maker, resource: Resource) -> dict[str, Any]:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    inside = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    collection, single = f"{inside}/{resource.plural}", f"{inside}/{resource.plural}/{{name}}"
    found: dict[str, Any] = {}

    def add(path: str, method: str, operation: dict[str, Any]) -> None:
        entry = found.setdefault(path, {})
        entry[method] = operation
        if "parameters" not in entry:
            entry["parameters"] = [_path_parameter(name) for name in ("namespace", "name") if f"{{{name}}}" in path]

    own = (resource.group, resource.version, resource.kind)
    for verb in resource.verbs:
        match verb:
            case "create":
                add(collection, "post", _operation(maker, "post", own, own))
            case "list":
                whole = (resource.group, resource.version, resource.list_kind or f"{resource.kind}List")
                add(collection, "get", _operation(maker, "list", own, whole))
                if resource.namespaced:
                    add(f"{root}/{resource.plural}", "get", _operation(maker, "list", own, whole))
            case "deletecollection":
                add(collection, "delete", _operation(maker, "deletecollection", own, ("", "v1", "Status")))
            case "get":
                add(single, "get", _operation(maker, "get", own, own))
            case "update":
                add(single, "put", _operation(maker, "put", own, own))
            case "patch":
                add(single, "patch", _operation(maker, "patch", own, own))
            case "delete":
                add(single, "delete", _operation(maker, "delete", own, ("", "v1", "Status")))
    for sub in resource.subresources:
        kind = (sub.group if sub.version else resource.group, sub.version or resource.version, sub.kind)
        for verb in sub.verbs:
            action = {"create": "post", "update": "put"}.get(verb, verb)
            add(f"{single}/{sub.name}", action, _operation(maker, action, kind, kind))
    return found


def _operation(maker: _Maker, action: str, kind: tuple[str, str, str], answer: tuple[str, str, str]) -> dict[str, Any]:
    group, version, name = kind
    found: dict[str, Any] = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": name},
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": maker.kind(*answer)}}}},
    }
    if action in ("post", "put", "patch"):
        body = {"schema": maker.kind(*kind) if action != "patch" else {"type": "object"}}
        patches = _PATCHES[:-1] if maker.is_custom(*kind) else _PATCHES  # kubectl makes strategic ones where they are listed
        content = dict.fromkeys(patches if action == "patch" else _CONTENT, body)
        found["requestBody"] = {"content": content, "required": True}
        parameters = ["dryRun", "fieldManager", "fieldValidation", *(["force"] if action == "patch" else [])]
        found["parameters"] = [_query_parameter(parameter) for parameter in parameters]
    elif action == "list":
        names = (
            "allowWatchBookmarks",
            "continue",
            "fieldSelector",
            "labelSelector",
            "limit",
            "resourceVersion",
            "timeoutSeconds",
            "watch",
        )
        found["parameters"] = [_query_parameter(parameter) for parameter in names]
    return found


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}


_INTEGERS = ("limit", "timeoutSeconds")
_BOOLEANS = ("allowWatchBookmarks", "force", "watch")


def _query_parameter(name: str) -> dict[str, Any]:
    kind = "integer" if name in _INTEGERS else "boolean" if name in _BOOLEANS else "string"
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}
