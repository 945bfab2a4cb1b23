"""Paths and modes of files within volumes, as upstream wants them and in its words."""

from elbowroom.api.fielderrors import FieldError, invalid, required

Errors = list[FieldError]

_FILE_MODE_MAX = 0o777
_FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def file_mode(mode: int | None, path: str) -> Errors:
    """A file's mode, which may be absent."""
    return [] if mode is None or 0 <= mode <= _FILE_MODE_MAX else [invalid(path, mode, _FILE_MODE)]


def without_backsteps(target: str, path: str) -> Errors:
    """No part of it may be ``..``."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending(target: str, path: str) -> Errors:
    """A relative path that stays below where it starts."""
    found = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return found + without_backsteps(target, path)


def not_reserved(target: str, path: str) -> Errors:
    """A descending path whose first part a volume does not keep for itself."""
    found = descending(target, path)
    if target.startswith("..") and not target.startswith("../"):
        found.append(invalid(path, target, "must not start with '..'"))
    return found


def required_file(target: str, path: str) -> Errors:
    """``not_reserved``, and not empty."""
    return not_reserved(target, path) if target else [required(path)]
