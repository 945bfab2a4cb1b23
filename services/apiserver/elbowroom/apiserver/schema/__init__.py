"""What fields exist, and strict decoding by it.

``find`` gives a kind's field tree; ``parse_json``, ``parse_yaml`` and ``parse_protobuf`` read bodies; ``decode`` turns what they
hold into the document that upstream would store; ``merge_key`` tells how a strategic merge patch treats a field.
"""

from elbowroom.apiserver.schema.bodies import Literal, MalformedBodyError, Parsed, parse_json, unrecognised
from elbowroom.apiserver.schema.decoding import Decoded, decode, zero
from elbowroom.apiserver.schema.fields import (
    ANY,
    ARRAY,
    BOOL,
    BYTES,
    FLOAT,
    INT32,
    INT64,
    INT_OR_STRING,
    MAP,
    MICRO_TIME,
    QUANTITY,
    STRING,
    STRUCT,
    TIME,
    Field,
    Struct,
    find,
    merge_key,
    served_kinds,
)
from elbowroom.apiserver.schema.protobuf import parse_protobuf
from elbowroom.apiserver.schema.yamls import parse_yaml

__all__ = [
    "ANY",
    "ARRAY",
    "BOOL",
    "BYTES",
    "FLOAT",
    "INT32",
    "INT64",
    "INT_OR_STRING",
    "MAP",
    "MICRO_TIME",
    "QUANTITY",
    "STRING",
    "STRUCT",
    "TIME",
    "Decoded",
    "Field",
    "Literal",
    "MalformedBodyError",
    "Parsed",
    "Struct",
    "decode",
    "find",
    "merge_key",
    "parse_json",
    "parse_protobuf",
    "parse_yaml",
    "served_kinds",
    "unrecognised",
    "zero",
]
