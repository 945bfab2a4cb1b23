"""The CURVE keys of a cluster's members, and what a socket needs of them to speak with nobody else.

A cluster has one pair of keys for each of its lives, which its supervisor makes and hands to every process it starts: whoever holds
them is a member. A CURVE listener alone lets in whoever knows its public key and has any pair of keys; what keeps strangers out is
the ``Gatekeeper`` of its context, without which such a listener here lets in nobody at all (``ZAP_ENFORCE_DOMAIN``). Addresses of
other kinds are guarded by the rights of their directory.
"""

import msgspec
import zmq

DOMAIN = b"elbowroom"


class Keys(msgspec.Struct, frozen=True):
    """The pair of keys of a cluster's members, Z85."""

    public: str
    secret: str

    def __repr__(self) -> str:
        return f"Keys({self.public})"  # no log and no traceback shall have the other


def make_keys() -> Keys:
    """A fresh pair."""
    public, secret = zmq.curve_keypair()
    return Keys(public.decode(), secret.decode())


def secure(socket: "zmq.Socket[bytes]", address: str, keys: Keys | None, *, listens: bool) -> None:
    """Let the socket, which is about to listen at or dial ``address``, speak with members only. ``ValueError`` for a tcp address
    without keys."""
    if not address.startswith("tcp://"):
        return
    if keys is None:
        raise ValueError(f"{address}: a tcp address needs keys")
    socket.curve_publickey = keys.public.encode()
    socket.curve_secretkey = keys.secret.encode()
    if listens:
        socket.curve_server = True
        socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
    else:
        socket.curve_serverkey = keys.public.encode()
