"""Bytes and values: msgpack through msgspec, validated against the Struct that is expected."""

from typing import Any, TypeVar, cast

import msgspec

from elbowroom.wire.messages import Message

PROTOCOL_VERSION = 1
FRAME_BYTES_MAX = 16 * 1024 * 1024

T = TypeVar("T")


class MalformedError(ValueError):
    """A peer sent bytes that are no message of ours."""


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message, ext_hook=None)
_decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}


def encode(message: Message) -> bytes:
    """The envelope as one frame."""
    return _encoder.encode(message)


def decode(frame: bytes) -> Message:
    """The message in a frame; ``MalformedError`` for anything else."""
    if len(frame) > FRAME_BYTES_MAX:
        raise MalformedError(f"a frame of {len(frame)} bytes; at most {FRAME_BYTES_MAX}")
    try:
        return _decoder.decode(frame)
    except (msgspec.MsgspecError, RecursionError, ValueError) as why:
        raise MalformedError(str(why)) from why


def encode_value(value: Any) -> bytes:
    """A call's or reply's body: a Struct or plain value as msgpack."""
    return _encoder.encode(value)


def decode_value(body: bytes, kind: type[T]) -> T:
    """A body as the Struct that is expected there; ``MalformedError`` if it is not."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    try:
        return cast(T, decoder.decode(body))
    except (msgspec.MsgspecError, RecursionError, ValueError) as why:
        raise MalformedError(str(why)) from why
