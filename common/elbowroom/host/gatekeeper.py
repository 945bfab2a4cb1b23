"""Who may connect to the listeners of a context: libzmq asks its ZAP handler, which is this one."""

import asyncio

import zmq
from zmq.utils import z85

from elbowroom.host.keys import DOMAIN, Keys
from elbowroom.host.sockets import Pump

_ADDRESS = "inproc://zeromq.zap.01"
_VERSION = b"1.0"


class Gatekeeper:
    """Lets in whoever holds ``keys``. To be there before the context's first listener."""

    def __init__(self, loop: asyncio.AbstractEventLoop, context: "zmq.Context[zmq.Socket[bytes]]", keys: Keys) -> None:
        socket = context.socket(zmq.ROUTER)
        socket.linger = 0
        socket.bind(_ADDRESS)
        self._member = z85.decode(keys.public.encode())
        self._pump = Pump(loop, socket, self._on_request)

    def close(self) -> None:
        self._pump.close()

    def _on_request(self, frames: list[bytes]) -> None:
        match frames:
            case [peer, b"", version, request, domain, _, _, mechanism, *credentials]:
                known = (version, domain, mechanism) == (_VERSION, DOMAIN, b"CURVE")
                status = b"200" if known and credentials == [self._member] else b"400"
                self._pump.send([peer, b"", _VERSION, request, status, b"", b"", b""])
