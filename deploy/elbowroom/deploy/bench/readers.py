"""Many watches on the bus in a process of its own, which counts what comes and decodes nothing.

``python -m elbowroom.deploy.bench.readers ADDRESS REVISION POD READERS EVENTS CREDIT``: one connection a reader, each with a watch
of that pod from that revision on. It prints ``ready`` once the API server has them all; with a credit of 0 it then waits for a line
before it grants room for so many events; and ``done`` once each has had that many.
"""

import sys

import zmq

from elbowroom.rpc import get
from elbowroom.wire import ApiRequest, Call, StreamCredit, encode, encode_value

EVENT_BYTES_MIN = 500
"""A pod's document takes more, an answer's beginning and a bookmark less."""
WATCH, ASK = 1, 2


def main(address: str, revision: str, pod: str, readers: int, events: int, credit: int) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    poller, sockets = zmq.Poller(), []
    query = {"fieldSelector": f"metadata.name={pod}", "resourceVersion": revision, "allowWatchBookmarks": "true"}
    watch = encode_value(ApiRequest("watch", "pods", "", namespace="default", query=query))
    ask = encode_value(get("namespaces", "default"))
    for number in range(readers):
        socket = context.socket(zmq.DEALER)
        socket.setsockopt(zmq.ROUTING_ID, f"client/reader-{number}".encode())
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(address)
        socket.send(encode(Call(WATCH, "watch", watch, credit=credit)))
        socket.send(encode(Call(ASK, "api", ask)))
        poller.register(socket, zmq.POLLIN)
        sockets.append(socket)
    for socket in sockets:
        socket.recv()  # the answer comes once the watch before it is open
    print("ready", flush=True)
    if not credit:
        sys.stdin.readline()
        for socket in sockets:
            socket.send(encode(StreamCredit(WATCH, events)))
    left = readers * events
    while left > 0:
        for socket, _ in poller.poll():
            left -= _events(socket)
    print("done", flush=True)
    sys.stdin.readline()


def _events(socket: "zmq.Socket[bytes]") -> int:
    found = 0
    try:
        while True:
            found += len(socket.recv(zmq.NOBLOCK)) >= EVENT_BYTES_MIN
    except zmq.Again:
        return found


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
