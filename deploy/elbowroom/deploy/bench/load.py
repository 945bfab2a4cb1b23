"""A load generator: a process of its own with some keep-alive connections, each resizing pods as fast as it is answered.

``python -m elbowroom.deploy.bench.load KUBECONFIG SECONDS POD...``: one connection a pod; prints
``{"seconds", "times", "failed"}`` as JSON.
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


async def _resize_on(context: Context, pod: str, until: float, times: list[float]) -> int:
    connection = await Connection.open(context)
    path = f"/api/v1/namespaces/default/pods/{pod}/resize"
    failed = number = 0
    while (began := time.perf_counter()) < until:
        number += 1
        resources = {"requests": {"cpu": f"{100 + number % 50}m"}}
        status, _ = await connection.request(
            "PATCH", path, {"spec": {"containers": [{"name": "main", "resources": resources}]}}, PATCH
        )
        if status == 200:
            times.append(time.perf_counter() - began)
        else:
            failed += 1
    connection.close()
    return failed


async def _main(kubeconfig: Path, seconds: float, pods: list[str]) -> None:
    context, times = context_of(kubeconfig), list[float]()
    began = time.perf_counter()
    failed = sum(await asyncio.gather(*(_resize_on(context, pod, began + seconds, times) for pod in pods)))
    result = {"seconds": time.perf_counter() - began, "times": times, "failed": failed}
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    uvloop.run(_main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
