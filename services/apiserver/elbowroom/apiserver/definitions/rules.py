"""Is a CustomResourceDefinition valid? Upstream's rules and words."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elbowroom.api.fielderrors import FieldError, forbidden, invalid, not_supported, required
from elbowroom.api.names import dns1035_label, dns1123_subdomain
from elbowroom.apiserver.definitions import expressions, structural, values
from elbowroom.apiserver.definitions.patterns import compiled
from elbowroom.apiserver.definitions.structural import EMBEDDED, INT_OR_STRING, PRESERVES
from elbowroom.apiserver.jsonpath import JsonPathError, steps

Node = Mapping[str, Any]
Errors = list[FieldError]

_SCOPES = ("Cluster", "Namespaced")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_PROTECTED = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")
APPROVED = "api-approved.kubernetes.io"
SELECTABLE_MAX = 8
_NO_FIELDS: Node = {}


def errors(new: Node, old: Node | None) -> Errors:
    """All that is wrong with a definition, which may replace ``old``."""
    spec = new["spec"]
    found: Errors = []
    if old is None:
        name = new["metadata"].get("name", "")
        if name and name != f"{spec['names'].get('plural', '')}.{spec.get('group', '')}":
            found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    found += _spec_errors(spec)
    if old is not None:
        found += _fixed(spec, old)
    found += _stored_errors(new.get("status", {}).get("storedVersions") or [], spec.get("versions") or ())
    found += _approval_errors(new, old)
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(invalid("spec.preserveUnknownFields", True, text))
    return found


def _fixed(spec: Node, old: Node) -> Errors:
    """What cannot change: the group and the plural ever, scope and kind once it is established."""
    before = old["spec"]
    pairs = [("spec.group", spec.get("group"), before.get("group"))]
    pairs.append(("spec.names.plural", spec["names"].get("plural"), before["names"].get("plural")))
    if is_true(old, "Established"):
        pairs.insert(0, ("spec.scope", spec.get("scope"), before.get("scope")))
        pairs.insert(1, ("spec.names.kind", spec["names"].get("kind"), before["names"].get("kind")))
    return [invalid(where, now, "field is immutable") for where, now, was in pairs if now != was]


def is_true(definition: Node, kind: str) -> bool:
    """Does a definition have that condition?"""
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(one.get("type") == kind and one.get("status") == "True" for one in conditions)


def _spec_errors(spec: Node) -> Errors:
    found: Errors = []
    group, scope, names = spec.get("group", ""), spec.get("scope", ""), spec["names"]
    if not group:
        found.append(required("spec.group"))
    elif whys := dns1123_subdomain(group):
        found.append(invalid("spec.group", group, ",".join(whys)))
    elif "." not in group:
        found.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    if not scope:
        found.append(required("spec.scope"))
    elif scope not in _SCOPES:
        found.append(not_supported("spec.scope", scope, _SCOPES))
    versions: Sequence[Node] = spec.get("versions") or ()
    for index, version in enumerate(versions):
        found += _version_errors(version, f"spec.versions[{index}]")
    called = [version.get("name", "") for version in versions]
    if len(set(called)) != len(called):
        found.append(invalid("spec.versions", versions, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        found.append(invalid("spec.versions", versions, "must have exactly one version marked as storage version"))
    found += [required(f"spec.names.{name}") for name in ("plural", "singular", "kind", "listKind") if not names.get(name)]
    return found + name_errors(names, "spec.names") + _conversion_errors(spec.get("conversion") or {})


def name_errors(names: Node, where: str) -> Errors:
    """What is wrong with the names of a kind, as far as they are there."""
    found: Errors = []
    for name in ("plural", "singular"):
        if names.get(name) and (whys := dns1035_label(names[name])):
            found.append(invalid(f"{where}.{name}", names[name], ",".join(whys)))
    for name in ("kind", "listKind"):
        if names.get(name) and (whys := dns1035_label(names[name].lower())):
            text = "may have mixed case, but should otherwise match: " + ",".join(whys)
            found.append(invalid(f"{where}.{name}", names[name], text))
    for name in ("shortNames", "categories"):
        for index, word in enumerate(names.get(name) or ()):
            if whys := dns1035_label(word):
                found.append(invalid(f"{where}.{name}[{index}]", word, ",".join(whys)))
        if name == "shortNames" and names.get("kind") and names["kind"] == names.get("listKind"):
            found.append(invalid(f"{where}.listKind", names["listKind"], "kind and listKind may not be the same"))
    return found


def _conversion_errors(conversion: Node) -> Errors:
    strategy = conversion.get("strategy", "")
    if not strategy:
        return [required("spec.conversion.strategy")]
    if strategy not in ("None", "Webhook"):
        return [not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))]
    if strategy == "Webhook":
        # Said here only: nothing of this server calls out.
        return [invalid("spec.conversion.strategy", strategy, "webhooks are not called by this server, use None")]
    if conversion.get("webhook") is not None:
        text = "should not be set when strategy is not set to Webhook"
        return [forbidden("spec.conversion.webhookClientConfig", text)]
    return []


def _stored_errors(stored: Sequence[str], versions: Sequence[Node]) -> Errors:
    where = "status.storedVersions"
    if not stored:
        return [invalid(where, list(stored), "must have at least one stored version")]
    found: Errors = []
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            found.append(invalid(where, list(stored), f"must have the storage version {version.get('name')}"))
    names = [version.get("name") for version in versions]
    for index, name in enumerate(stored):
        if name not in names:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a "
                f"storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            )
            found.append(invalid(f"{where}[{index}]", name, text))
    return found


def _approval_errors(new: Node, old: Node | None) -> Errors:
    """Groups of the community need a sign that the API was reviewed."""
    if not _PROTECTED.fullmatch(new["spec"].get("group", "")):
        return []
    said = (new["metadata"].get("annotations") or {}).get(APPROVED)
    if old is not None and said == (old["metadata"].get("annotations") or {}).get(APPROVED):
        return []
    where = f"metadata.annotations[{APPROVED}]"
    if said is None:
        return [required(where, "protected groups must have approval annotation " + f'"{APPROVED}", see {_REVIEW}')]
    if said.startswith("unapproved") or re.match("https?://", said):
        return []
    return [
        invalid(where, said, f'protected groups must have approval annotation "{APPROVED}" with either a URL or a reason ' + _OR)
    ]


_REVIEW = "https://github.com/kubernetes/enhancements/pull/1111"
_OR = f'starting with "unapproved", see {_REVIEW}'

# ---------------------------------------------------------------- versions


def _version_errors(version: Node, at: str) -> Errors:
    found: Errors = []
    if whys := dns1035_label(version.get("name", "")):
        found.append(invalid(f"{at}.name", version.get("name", ""), ",".join(whys)))
    warning = version.get("deprecationWarning")
    if warning is not None:
        found += [invalid(f"{at}.deprecationWarning", warning, why) for why in _warning_findings(version, warning)]
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    subresources = version.get("subresources") or {}
    if schema is None:
        found.insert(0, required(f"{at}.schema.openAPIV3Schema"))
    else:
        found += schema_errors(schema, f"{at}.schema.openAPIV3Schema")
    found += _scale_errors(subresources.get("scale"), f"{at}.subresources.scale")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        found += _column_errors(column, f"{at}.additionalPrinterColumns[{index}]")
    return found + _selectable_errors(version.get("selectableFields") or (), schema, f"{at}.selectableFields")


def _warning_findings(version: Node, warning: str) -> Iterable[str]:
    if not version.get("deprecated"):
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > 256:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    index = next((place for place, letter in enumerate(warning) if not letter.isprintable()), None)
    if index is not None:
        yield f"must only contain printable UTF-8 characters; non-printable character found at index {index}"


def _scale_errors(scale: Node | None, at: str) -> Errors:
    if scale is None:
        return []
    found: Errors = []
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        path = scale.get(name, "")
        if not path:
            found.append(required(f"{at}.{name}"))
        elif not path.startswith("."):
            found.append(invalid(f"{at}.{name}", path, "must be a simple json path starting with ."))
        elif not path.startswith(root):
            found.append(invalid(f"{at}.{name}", path, f"should be a json path under {root[:-1]}"))
    selector = scale.get("labelSelectorPath")
    if selector and not selector.startswith((".spec.", ".status.")):
        text = (
            "should be a json path under either .spec or .status"
            if selector[0] == "."
            else "must be a simple json path starting with ."
        )
        found.append(invalid(f"{at}.labelSelectorPath", selector, text))
    return found


def _column_errors(column: Node, at: str) -> Errors:
    found: Errors = []
    if not column.get("name"):
        found.append(required(f"{at}.name"))
    kind, form, path = column.get("type", ""), column.get("format", ""), column.get("jsonPath", "")
    if not kind:
        found.append(required(f"{at}.type", f"must be one of {','.join(_COLUMN_TYPES)}"))
    elif kind not in _COLUMN_TYPES:
        found.append(invalid(f"{at}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}"))
    if form and form not in _COLUMN_FORMATS:
        found.append(invalid(f"{at}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not path:
        found.append(required(f"{at}.JSONPath"))
    elif path[0] != ".":
        found.append(invalid(f"{at}.JSONPath", path, "must be a simple json path starting with ."))
    else:
        try:
            steps(path)
        except JsonPathError as why:
            found.append(invalid(f"{at}.JSONPath", path, str(why)))
    return found


def _selectable_errors(fields: Sequence[Node], schema: Node | None, at: str) -> Errors:
    found: Errors = []
    seen: list[str] = []
    for index, one in enumerate(fields):
        where, path = f"{at}[{index}].jsonPath", one.get("jsonPath", "")
        if not path:
            found.append(required(where))
            continue
        described: Node | None = schema
        for name in path.removeprefix(".").split("."):
            described = structural.child(described, name)
        if path.startswith(".metadata."):
            found.append(invalid(where, path, "must not point to fields in metadata"))
        elif described is None:
            found.append(invalid(where, path, f"is an invalid path: does not refer to a valid field: {path}"))
        elif described.get("type") not in ("string", "boolean", "integer"):
            text = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
            )
            found.append(invalid(where, path, text))
        if path in seen:
            found.append(FieldError(where, "FieldValueDuplicate", f'Duplicate value: "{path}"'))
        seen.append(path)
    if len(seen) > SELECTABLE_MAX:
        found.append(values.too_many(at, len(seen), SELECTABLE_MAX))
    return found


# ---------------------------------------------------------------- schemas

_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_INT_OR_STRING_PAIR = [{"type": "integer"}, {"type": "string"}]


def schema_errors(schema: Node, at: str) -> Errors:
    """What is wrong with a schema: that it is not structural, first and in order; then extensions, lists and defaults."""
    found = sorted(_structural_errors(schema, at, _ROOT), key=str)
    if schema.get("nullable"):
        found.insert(0, forbidden(f"{at}.nullable", "nullable cannot be true at the root"))
    if not found:
        found += _default_errors(schema, at)
    found += _extension_errors(schema, at)
    return found or expressions.definition_errors(schema, at)


def _structural_errors(schema: Node, at: str, level: str) -> Errors:
    found: Errors = []
    kind, more = schema.get("type", ""), schema.get("additionalProperties")
    if kind == "array" and schema.get("items") is None:
        found.append(required(f"{at}.items", "must be specified"))
    if schema.get("items") is not None:
        found += _structural_errors(schema["items"], f"{at}.items", _ITEM)
    named: Node = schema.get("properties") or {}
    for name, inner in named.items():
        found += _structural_errors(inner, f"{at}.properties[{name}]", _FIELD)
    if more is not None:
        if level == _ROOT:
            found.append(forbidden(f"{at}.additionalProperties", "must not be used at the root"))
        if isinstance(more, dict):
            found += _structural_errors(more, f"{at}.additionalProperties", _FIELD)
    if schema.get(INT_OR_STRING):
        for name in (PRESERVES, EMBEDDED):
            if schema.get(name):
                found.append(invalid(f"{at}.{name}", True, f"must be false if {INT_OR_STRING} is true"))
    found += _junctor_errors(schema, at)
    if schema.get(EMBEDDED) and kind != "object":
        text = f"must be object if {EMBEDDED} is true"
        found.append(invalid(f"{at}.type", kind, text) if kind else required(f"{at}.type", text))
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVES):
        found.append(required(f"{at}.type", f"must not be empty {level}"))
    if level == _ROOT and kind not in ("", "object"):
        found.append(invalid(f"{at}.type", kind, "must be object at the root"))
    if level == _ROOT or schema.get(EMBEDDED):
        for name in ("kind", "apiVersion"):
            if name in named and named[name].get("type") != "string":
                found.append(invalid(f"{at}.properties[{name}].type", named[name].get("type", ""), "must be string"))
        if "metadata" in named:
            found += _metadata_errors(named["metadata"], f"{at}.properties[metadata]", level)
    if schema.get(EMBEDDED) and not schema.get(PRESERVES) and not named:
        text = f"must not be empty if {EMBEDDED} is true without {PRESERVES}"
        found.append(required(f"{at}.properties", text))
    return found


def _metadata_errors(schema: Node, at: str, level: str) -> Errors:
    found: Errors = []
    if schema.get("type") != "object":
        found.append(invalid(f"{at}.type", schema.get("type", ""), "must be object"))
    rest = {name: value for name, value in schema.items() if name not in ("type", "description", "properties", "default") and value}
    if level == _ROOT and (rest or set(schema.get("properties") or ()) - {"name", "generateName"}):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        found.append(forbidden(at, text))
    return found


def _junctor_errors(schema: Node, at: str) -> Errors:
    """Inside of anyOf and its kind, values may be judged, but nothing may be said of the structure."""
    found: Errors = []
    for name in ("anyOf", "allOf", "oneOf"):
        for index, inner in enumerate(schema.get(name) or ()):
            pair = name == "anyOf" and schema[name] == _INT_OR_STRING_PAIR and schema.get(INT_OR_STRING)
            first = name == "allOf" and index == 0 and inner.get("anyOf") == _INT_OR_STRING_PAIR and schema.get(INT_OR_STRING)
            if not pair and not first:
                found += _nested_errors(inner, schema, f"{at}.{name}[{index}]", at)
    if schema.get("not") is not None:
        found += _nested_errors(schema["not"], schema, f"{at}.not", at)
    pattern = schema.get("pattern")
    if pattern:
        try:
            compiled(pattern)
        except (re.error, OverflowError, ValueError) as why:
            found.append(invalid(f"{at}.pattern", pattern, f"must be a valid regular expression, but isn't: {why}"))
    return found


_STRUCTURE = (
    *(("type", "must be empty to be structural"), ("additionalProperties", "must be undefined to be structural")),
    *(("default", "must be undefined to be structural"), ("title", "must be empty to be structural")),
    *(("description", "must be empty to be structural"), ("nullable", "must be false to be structural")),
    *((PRESERVES, "must be false to be structural"), (EMBEDDED, "must be false to be structural")),
    *((INT_OR_STRING, "must be false to be structural"), ("x-kubernetes-list-map-keys", "must be empty to be structural")),
    *(
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
    ),
)


def _nested_errors(inner: Node, outer: Node | None, at: str, outer_at: str) -> Errors:
    found: Errors = []
    if outer is None:
        return [required(outer_at, f"because it is defined in {at}")]
    for name, text in _STRUCTURE:
        if inner.get(name):
            found.append(forbidden(f"{at}.{name}", text))
    for name, deeper in (inner.get("properties") or _NO_FIELDS).items():
        if name == "metadata":
            found.append(forbidden(f"{at}.properties[metadata]", "must not be specified in a nested context"))
        where = f"{outer_at}.properties[{name}]"
        found += _nested_errors(deeper, (outer.get("properties") or _NO_FIELDS).get(name), f"{at}.properties[{name}]", where)
    if inner.get("items") is not None:
        found += _nested_errors(inner["items"], outer.get("items"), f"{at}.items", f"{outer_at}.items")
    for name in ("anyOf", "allOf", "oneOf"):
        for index, deeper in enumerate(inner.get(name) or ()):
            found += _nested_errors(deeper, outer, f"{at}.{name}[{index}]", outer_at)
    if inner.get("not") is not None:
        found += _nested_errors(inner["not"], outer, f"{at}.not", outer_at)
    return found


def _default_errors(schema: Node, at: str) -> Errors:
    found: Errors = []
    given = schema.get("default")
    if given is not None:
        whole = structural.plain(given)
        unknown = (
            structural.prune(whole, {**schema, "properties": schema.get("properties") or {}}) if isinstance(whole, dict) else []
        )
        if unknown:
            found.append(invalid(f"{at}.default", given, "must be pruned"))
        for error in values.errors(schema, structural.plain(given), "", ""):
            where = f"{at}.default" if error.field == values.NOWHERE else f"{at}.default.{error.field}"
            found.append(FieldError(where, error.kind, error.body))
    for name, inner in (schema.get("properties") or _NO_FIELDS).items():
        found += _default_errors(inner, f"{at}.properties[{name}]")
    if isinstance(schema.get("additionalProperties"), dict):
        found += _default_errors(schema["additionalProperties"], f"{at}.additionalProperties")
    if schema.get("items") is not None:
        found += _default_errors(schema["items"], f"{at}.items")
    return found


def _extension_errors(schema: Node, at: str) -> Errors:
    found: Errors = []
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        found.append(not_supported(f"{at}.type", kind, _TYPES))
    for name in ("definitions", "dependencies", "patternProperties"):
        if schema.get(name):
            found.append(forbidden(f"{at}.{name}", f"{name} is not supported"))
    if schema.get("$ref"):
        found.append(forbidden(f"{at}.$ref", "$ref is not supported"))
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(forbidden(f"{at}.uniqueItems", text))
    more = schema.get("additionalProperties")
    if more is not None and schema.get("properties") and more is not True:
        text = "additionalProperties and properties are mutual exclusive"
        found.append(forbidden(f"{at}.additionalProperties", text))
    if schema.get(PRESERVES) is False:
        found.append(invalid(f"{at}.{PRESERVES}", False, "must be true or undefined"))
    found += _list_errors(schema, kind, at)
    found += expressions.statement_errors(schema, at)
    if isinstance(more, dict):
        found += _extension_errors(more, f"{at}.additionalProperties")
    for name, inner in (schema.get("properties") or _NO_FIELDS).items():
        found += _extension_errors(inner, f"{at}.properties[{name}]")
    if schema.get("items") is not None:
        found += _extension_errors(schema["items"], f"{at}.items")
    return found


def _list_errors(schema: Node, kind: str, at: str) -> Errors:
    """``x-kubernetes-map-type``, ``-list-type`` and ``-list-map-keys``."""
    found: Errors = []
    for name, wanted, known in (
        ("x-kubernetes-map-type", "object", ("atomic", "granular")),
        ("x-kubernetes-list-type", "array", ("atomic", "set", "map")),
    ):
        said = schema.get(name)
        if said is None:
            continue
        if kind != wanted:
            text = f"must be {wanted} if {name} is specified"
            found.append(invalid(f"{at}.type", kind, text) if kind else required(f"{at}.type", text))
        if said not in known:
            found.append(not_supported(f"{at}.{name}", said, known))
    said, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    items: Node = schema.get("items") or {}
    if keys and said != "map":
        text, where = "must be map if x-kubernetes-list-map-keys is non-empty", f"{at}.x-kubernetes-list-type"
        found.append(required(where, text) if said is None else invalid(where, said, text))
    if said == "map":
        found += _map_key_errors(items, keys, at)
    if said in ("set", "map") and items.get("nullable"):
        found.append(forbidden(f"{at}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {said}"))
    if said == "set" and kind == "array":
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            found.append(invalid(f"{at}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), text))
        elif items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
            found.append(invalid(f"{at}.items.x-kubernetes-list-type", items["x-kubernetes-list-type"], text))
    return found


def _map_key_errors(items: Node, keys: Sequence[str], at: str) -> Errors:
    found: Errors = []
    where = f"{at}.x-kubernetes-list-map-keys"
    if not keys:
        found.append(required(where, "must not be empty if x-kubernetes-list-type is map"))
    if items and items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        return [*found, invalid(f"{at}.items.type", items.get("type", ""), text)]
    named: Node = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in named:
            found.append(invalid(where, list(keys), "entries must all be names of item properties"))
            continue
        field, here = named[key], f"{at}.items.properties[{key}]"
        if field.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            found.append(invalid(f"{here}.type", items.get("type"), text))
        if key in keys[:index]:
            found.append(invalid(where, list(keys), "must not contain duplicate entries"))
        if key not in (items.get("required") or ()) and field.get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            found.append(required(f"{here}.default", text))
        if field.get("nullable"):
            found.append(forbidden(f"{here}.nullable", "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
    return found
