"""The bytes of the bus: whatever a peer sends, it is a message of ours or a refusal, soon."""

import struct
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.wire import ApiRequest, Call, MalformedError, decode, decode_value, encode, encode_value
from elbowroom.wire.codec import FRAME_BYTES_MAX

CALL = Call(1, "api", b"x")
BOMBS: dict[str, bytes] = {
    "nothing": b"",
    "half a message": encode(CALL)[:-1],
    "more than a message": encode(CALL) + b"\x01",
    "an array without end": b"\xdd\xff\xff\xff\xff",
    "a map without end": b"\xdf\xff\xff\xff\xff",
    "a string without end": b"\xdb\xff\xff\xff\xff",
    "a hundred thousand arrays in each other": b"\x91" * 100_000 + b"\xc0",
    "a hundred thousand maps in each other": b"\x81\xa1a" * 100_000 + b"\xc0",
    "an extension type": b"\xd6\x05abcd",
    "a timestamp": b"\xd6\xff" + struct.pack(">I", 1),
    "a map with a number as key": b"\x81\x01\x02",
    "an integer beyond 64 bits in a text": b"\xa5" + b"9" * 5,
    "no UTF-8": b"\xa2\xff\xfe",
    "pickle": b"\x80\x04\x95\x00\x00",
    "JSON": b'{"id": 1}',
    "another type in a field": msgspec.msgpack.encode(["call", "one", 2, 3]),
    "an unknown kind": msgspec.msgpack.encode({"kind": "Explode", "id": 1}),
}


@pytest.mark.parametrize("what", list(BOMBS))
def test_what_is_no_message_is_refused_at_once(what: str) -> None:
    began = time.process_time()
    with pytest.raises(MalformedError):
        decode(BOMBS[what])
    with pytest.raises(MalformedError):
        decode_value(BOMBS[what], ApiRequest)
    assert time.process_time() - began < 0.5


def test_a_frame_beyond_the_bound_is_not_even_looked_at() -> None:
    with pytest.raises(MalformedError, match="at most"):
        decode(b"\xc0" * (FRAME_BYTES_MAX + 1))


def test_extension_types_are_refused_within_a_message_too() -> None:
    good = encode_value(ApiRequest("get", "pods"))
    assert decode_value(good, ApiRequest) == ApiRequest("get", "pods")
    for value in (msgspec.msgpack.Ext(5, b"x"), msgspec.msgpack.Ext(-1, b"\0" * 4)):
        bad = msgspec.msgpack.encode({"verb": "get", "resource": "pods", "query": {"a": value}})
        with pytest.raises(MalformedError):
            decode_value(bad, ApiRequest)


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_but_a_refusal(frame: bytes) -> None:
    for read in (decode, lambda raw: decode_value(raw, ApiRequest)):
        try:
            read(frame)
        except MalformedError:
            continue


@given(st.integers(0, len(encode(CALL)) - 1), st.integers(1, 255))
def test_a_flipped_byte_makes_another_message_or_none(at: int, change: int) -> None:
    frame = bytearray(encode(CALL))
    frame[at] ^= change
    found: Any = None
    try:
        found = decode(bytes(frame))
    except MalformedError:
        return
    assert found != CALL
