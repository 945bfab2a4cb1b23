"""Calls and streams, sans I/O: what a machine keeps of the questions it has asked and the streams it serves."""

from elbowroom.rpc.calls import Calls, Finished
from elbowroom.rpc.requests import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    create,
    delete,
    get,
    listing,
    patch,
    update,
)

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_PATCH",
    "Calls",
    "Finished",
    "create",
    "delete",
    "get",
    "listing",
    "patch",
    "update",
]
