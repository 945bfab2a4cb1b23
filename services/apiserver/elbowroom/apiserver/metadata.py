"""What is the same for the metadata of all kinds: names, owners, what may change."""

import random
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from elbowroom.api.fielderrors import FieldError, forbidden, invalid, required
from elbowroom.api.names import dns1123_label, dns1123_subdomain, label_value, qualified_name
from elbowroom.apiserver.strategy import Document

ANNOTATIONS_BYTES_MAX = 256 * 1024
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
NO_FINALIZER = "name is neither a standard finalizer name nor is it fully qualified"
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_BASE_MAX = 58


def generated_name(rng: random.Random, base: str) -> str:
    """``base`` and five characters from which no words can be made."""
    return base[:_GENERATED_BASE_MAX] + "".join(rng.choice(_SUFFIX_ALPHABET) for _ in range(5))


def new_uid(rng: random.Random) -> str:
    """A random (version 4) UUID."""
    bits = rng.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62)
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


# ---------------------------------------------------------------- names


def _name(check: Callable[[str], list[str]], name: str, is_prefix: bool) -> list[str]:
    if is_prefix and len(name) > 1 and name.endswith("-"):
        name = name[:-2] + "a"  # upstream's way to let a prefix end in a dash
    return [finding.replace(" bytes", " characters") for finding in check(name)]


def label_rule(name: str, is_prefix: bool) -> list[str]:
    """Namespaces: a DNS label."""
    return _name(dns1123_label, name, is_prefix)


def subdomain_rule(name: str, is_prefix: bool) -> list[str]:
    """Most kinds: a DNS subdomain."""
    return _name(dns1123_subdomain, name, is_prefix)


def path_rule(name: str, is_prefix: bool) -> list[str]:
    """Kinds whose name only has to fit into a URL (budgets, roles, events: client libraries name those ``web.`` and a suffix)."""
    if not is_prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{mark}'" for mark in "/%" if mark in name]


_RULES = {"label": label_rule, "subdomain": subdomain_rule, "path": path_rule}


# ---------------------------------------------------------------- validation


def validate(metadata: Mapping[str, Any], *, namespaced: bool, rule: str) -> list[FieldError]:
    """All errors of the metadata of an object that is created."""
    check = _RULES[rule]
    found: list[FieldError] = []
    name, base = metadata.get("name", ""), metadata.get("generateName", "")
    if base:
        found += [invalid("metadata.generateName", base, finding) for finding in check(base, True)]
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        found += [invalid("metadata.name", name, finding) for finding in check(name, False)]
    namespace = metadata.get("namespace", "")
    if not namespaced:
        if namespace:
            found.append(forbidden("metadata.namespace", "not allowed on this type"))
    elif not namespace:
        found.append(required("metadata.namespace"))
    else:
        found += [invalid("metadata.namespace", namespace, finding) for finding in _namespace_findings(namespace)]
    return found + _common(metadata, strict_finalizers=rule != "path")


def validate_update(new: Mapping[str, Any], old: Mapping[str, Any], *, rule: str) -> list[FieldError]:
    """All errors of metadata that replaces ``old``."""
    found: list[FieldError] = []
    if old.get("deletionTimestamp") is not None:
        added = [name for name in new.get("finalizers", ()) if name not in old.get("finalizers", ())]
        if added:
            shown = "[]string{" + ", ".join(f'"{name}"' for name in sorted(added)) + "}"
            text = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
            found.append(forbidden("metadata.finalizers", text))
    for field in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.get(field) != old.get(field):
            error = invalid(f"metadata.{field}", new.get(field), "field is immutable")
            found += [error, error]  # upstream checks, and says, it twice
    return found + _common(new, strict_finalizers=rule != "path")


@lru_cache(maxsize=1024)
def _namespace_findings(namespace: str) -> tuple[str, ...]:
    """Those of a namespace that is there, so of few."""
    return tuple(label_rule(namespace, False))


def _common(metadata: Mapping[str, Any], *, strict_finalizers: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for key, value in metadata.get("labels", {}).items():
        found += [invalid("metadata.labels", key, finding) for finding in qualified_name(key)]
        found += [invalid("metadata.labels", value, finding) for finding in label_value(value)]
    found += annotation_errors(metadata.get("annotations", {}))
    found += _owner_errors(metadata.get("ownerReferences", ()))
    finalizers = metadata.get("finalizers", ())
    for finalizer in finalizers:
        found += [invalid("metadata.finalizers", finalizer, finding) for finding in qualified_name(finalizer)]
        if strict_finalizers and "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            at = f"metadata.finalizers[{finalizers.index(finalizer)}]"
            found.append(invalid(at, finalizer, NO_FINALIZER))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        found.append(invalid("metadata.finalizers", list(finalizers), "finalizer orphan and foregroundDeletion cannot be both set"))
    return found


def annotation_errors(annotations: Mapping[str, str]) -> list[FieldError]:
    found: list[FieldError] = []
    size = 0
    for key, value in annotations.items():
        found += [invalid("metadata.annotations", key, finding) for finding in qualified_name(key.lower())]
        size += len(key) + len(value)
    if (
        size > ANNOTATIONS_BYTES_MAX
        and sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > ANNOTATIONS_BYTES_MAX
    ):
        text = f"Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes"
        found.append(FieldError("metadata.annotations", "FieldValueTooLong", text))
    return found


def _owner_errors(owners: Any) -> list[FieldError]:
    found: list[FieldError] = []
    controllers: list[str] = []
    for owner in owners:
        where = "metadata.ownerReferences"
        version = owner.get("apiVersion", "")
        group, slash, rest = version.rpartition("/")
        if not (rest if slash else version):
            found.append(invalid(f"{where}.apiVersion", version, "version must not be empty"))
        for field in ("kind", "name", "uid"):
            if not owner.get(field, ""):
                found.append(invalid(f"{where}.{field}", owner.get(field, ""), "must not be empty"))
        if group == "" and owner.get("kind") == "Event":
            shown = f"{version}, Kind={owner['kind']}"
            found.append(invalid(where, owner, f"{shown} is disallowed from being an owner"))
        if owner.get("controller"):
            controllers.append(owner.get("name", ""))
            if len(controllers) > 1:
                pair = f"{controllers[0]} and {controllers[-1]}"
                text = f'Only one reference can have Controller set to true. Found "true" in references for {pair}'
                found.append(invalid(where, list(owners), text))
    return found


# ---------------------------------------------------------------- updates


def keep(new: Document, old: Mapping[str, Any]) -> None:
    """Put back what an update cannot change, in place: identity where the request leaves it out, times, generation."""
    for field in ("uid", "namespace"):
        if not new.get(field) and field in old:
            new[field] = old[field]
    for field in ("creationTimestamp", "generation", "selfLink"):
        if field in old:
            new[field] = old[field]
        else:
            new.pop(field, None)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in old:
            new[field] = old[field]
        else:
            new.pop(field, None)
    new.pop("managedFields", None)
