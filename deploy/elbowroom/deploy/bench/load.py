"""A load generator: a process of its own with some keep-alive connections, each asking as fast as it is answered.

``python -m elbowroom.deploy.bench.load KUBECONFIG SECONDS resize|get POD...``: one connection a pod, which it resizes or gets;
prints ``{"seconds", "times", "failed"}`` as JSON.
"""

import asyncio
import sys
import time
from pathlib import Path

import msgspec
import uvloop

from elbowroom.client import Context, context_of
from elbowroom.deploy.bench.http import Connection

PATCH = "application/strategic-merge-patch+json"


async def _ask_on(context: Context, what: str, pod: str, until: float, times: list[float]) -> int:
    connection = await Connection.open(context)
    path = f"/api/v1/namespaces/default/pods/{pod}"
    failed = number = 0
    while (began := time.perf_counter()) < until:
        number += 1
        if what == "get":
            status, _ = await connection.request("GET", path)
        else:
            resources = {"requests": {"cpu": f"{100 + number % 50}m"}}
            patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
            status, _ = await connection.request("PATCH", f"{path}/resize", patch, PATCH)
        if status == 200:
            times.append(time.perf_counter() - began)
        else:
            failed += 1
    connection.close()
    return failed


async def _main(kubeconfig: Path, seconds: float, what: str, pods: list[str]) -> None:
    context, times = context_of(kubeconfig), list[float]()
    began = time.perf_counter()
    failed = sum(await asyncio.gather(*(_ask_on(context, what, pod, began + seconds, times) for pod in pods)))
    result = {"seconds": time.perf_counter() - began, "times": times, "failed": failed}
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    uvloop.run(_main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:]))
