"""The key that signs service accounts' tokens: JSON Web Tokens with ES256, as upstream makes them of an elliptic key."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from elbowroom.apiserver.identity import BadTokenError, Identity
from elbowroom.apiserver.tokens import ISSUER, Claims, check_time, identity_of
from elbowroom.machine import Instant

TOKEN_BYTES_MAX = 16 * 1024
KNOWN_MAX = 1024
"""How many tokens are remembered whose signature was found good."""
_ECDSA = ec.ECDSA(hashes.SHA256())
_SIZE = 32


class _Header(msgspec.Struct):
    alg: str = ""
    kid: str = ""


class TokenKey:
    """Signs claims and reads tokens. ``path`` is a PEM file with an elliptic key on P-256."""

    def __init__(self, path: Path) -> None:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey), "the cluster makes elliptic keys"
        self._key, self._public = key, key.public_key()
        der = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._id = _text(hashlib.sha256(der).digest())
        self._known: dict[str, Claims] = {}

    def sign(self, claims: Mapping[str, Any]) -> str:
        """The token that says ``claims``."""
        said = f"{_text(msgspec.json.encode({'alg': 'ES256', 'kid': self._id}))}.{_text(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._key.sign(said.encode(), _ECDSA))
        return f"{said}.{_text(r.to_bytes(_SIZE, 'big') + s.to_bytes(_SIZE, 'big'))}"

    def read(self, token: str, now: Instant, audiences: tuple[str, ...] = (ISSUER,)) -> tuple[Identity, tuple[str, ...]]:
        """Whose token it is, and which of the ``audiences`` it is for; ``BadTokenError`` if it is not ours, out of its time, or for
        none of them."""
        claims = self._known.get(token)
        if claims is None:
            claims = self._checked(token)
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[token] = claims
        check_time(claims, now)
        meant = tuple(audience for audience in audiences if audience in claims.aud)
        if not meant:
            shown, wanted = (f"[{' '.join(map(_quoted, names))}]" for names in (claims.aud, audiences))
            raise BadTokenError(f"token audiences {shown} is invalid for the target audiences {wanted}")
        return identity_of(claims), meant

    def _checked(self, token: str) -> Claims:
        parts = token.split(".") if len(token) <= TOKEN_BYTES_MAX else []
        if len(parts) != 3:
            raise BadTokenError("invalid bearer token")
        try:
            header = msgspec.json.decode(_bytes(parts[0]), type=_Header)
            signature = _bytes(parts[2])
            # No other algorithm: what the header may choose, a forger would.
            if (header.alg, header.kid, len(signature)) != ("ES256", self._id, 2 * _SIZE):
                raise BadTokenError("invalid bearer token")
            r, s = (int.from_bytes(half, "big") for half in (signature[:_SIZE], signature[_SIZE:]))
            self._public.verify(encode_dss_signature(r, s), f"{parts[0]}.{parts[1]}".encode(), _ECDSA)
            claims = msgspec.json.decode(_bytes(parts[1]), type=Claims)
        except (InvalidSignature, msgspec.MsgspecError, ValueError, RecursionError) as why:
            raise BadTokenError("invalid bearer token") from why
        if claims.iss != ISSUER:
            raise BadTokenError("invalid bearer token")
        return claims


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    if not text.isascii() or "=" in text:
        raise binascii.Error("no base64url")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
