"""How long 2,000 resize patches take in the machine alone: ``python tests/apiserver/bench_resize.py [--profile]``."""

import cProfile
import pstats
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from apiserver_world import START, World, a_node, a_pod, requests_of

from elbowroom.machine import Received
from elbowroom.rpc import requests
from elbowroom.wire import Call, encode_value

PODS, PATCHES = 200, 2000


def main() -> None:
    """Print microseconds a patch: decode, patch, validate, admit, store, publish to one watch of all and one of the node."""
    world = World()
    world.create("nodes", a_node("n1", cpu="4000", memory="4000Gi"))
    for number in range(PODS):
        assert world.create("pods", a_pod(f"p{number}", node="n1"), "default").status == 201
    world.watch("pods", peer="scheduler", credit=1 << 20, sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    world.watch(
        "pods",
        peer="kubelet/n1",
        credit=1 << 20,
        fieldSelector="spec.nodeName=n1",
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
    )
    calls = []
    for number in range(PATCHES):
        patch = requests_of(f"{101 + number}m")
        body = encode_value(requests.patch("pods", f"p{number % PODS}", patch, namespace="default", subresource="resize"))
        calls.append(Received("client/bench", Call(number + 10_000, "api", body)))
    profile = cProfile.Profile()
    begun = time.perf_counter()
    if "--profile" in sys.argv:
        profile.enable()
    for happened in calls:
        effects = world.machine.step(START, happened)
        assert len(effects) > 10, effects
    profile.disable()
    took = time.perf_counter() - begun
    sys.stdout.write(f"{took / PATCHES * 1e6:.0f} us a resize patch, {PATCHES / took:.0f}/s\n")
    if "--profile" in sys.argv:
        pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(32)


if __name__ == "__main__":
    main()
