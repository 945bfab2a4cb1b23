"""How many requests a second the API server answers over HTTPS, and what they cost it, beside the least that such a server can do.

Rates say little where other work is going on. So, of a cluster of ours, the processor's time is told too, as of the raw server.
"""

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.apiserver.drivers.certificates import make_credentials, write_kubeconfig
from elbowroom.client import context_of
from elbowroom.deploy.bench.clusters import Other, Running
from elbowroom.deploy.bench.figures import Figure, percentile
from elbowroom.deploy.bench.http import Connection
from elbowroom.deploy.bench.limits import cpu_seconds, sqlite_rows_per_second
from elbowroom.deploy.bench.loading import Load, generated
from elbowroom.deploy.bench.serving import PODS, pending_pod
from elbowroom.deploy.errors import UserError

CLIENTS = 16


async def gets(cluster: Running | Other, clients: int = CLIENTS, seconds: float = 5.0) -> list[Figure]:
    """GETs of pods, each client's of one, over and over."""
    async with _pods(cluster, clients) as (names, size):
        load, cpu = _loaded(cluster, "get", names, seconds)
    raw, raw_cpu = _raw(size, names, seconds)
    return [
        Figure(
            "get-rate",
            f"GETs of a pod, {clients} HTTPS clients",
            load.rate,
            "/s",
            more_is_better=True,
            limit=raw.rate,
            limit_is="uvicorn over TLS with bytes that lie ready",
            details={**_told(load, cpu), "raw server's CPU us": raw_cpu},
        )
    ]


async def resizes(cluster: Running | Other, clients: int = CLIENTS, seconds: float = 5.0) -> list[Figure]:
    """Durable PATCHes of /resize, each client's of a pod that nobody schedules: the API server's part alone."""
    async with _pods(cluster, clients) as (names, _):
        load, cpu = _loaded(cluster, "resize", names, seconds)
    return [
        Figure(
            "patch-rate",
            f"durable PATCHes of /resize, {clients} HTTPS clients, pods without a node",
            load.rate,
            "/s",
            more_is_better=True,
            limit=sqlite_rows_per_second(cluster.scratch, clients),
            limit_is=f"raw SQLite, {clients} rows to a commit",
            details=_told(load, cpu),
        )
    ]


def _told(load: Load, cpu: float | None) -> dict[str, float]:
    spent = {} if cpu is None else {"API server's CPU us": cpu}
    return {"p50 ms": percentile(load.times, 0.5), "p99 ms": percentile(load.times, 0.99), **spent}


def _loaded(cluster: Running | Other, what: str, names: list[str], seconds: float) -> tuple[Load, float | None]:
    """A load, and the API server's microseconds of processor time for each request of it, if they can be known."""
    if not isinstance(cluster, Running):
        return generated(cluster.kubeconfig, what, names, seconds=seconds), None
    return _costed(cluster.pid("apiserver"), cluster.kubeconfig, what, names, seconds)


def _costed(pid: int, kubeconfig: Path, what: str, names: list[str], seconds: float) -> tuple[Load, float]:
    before = cpu_seconds(pid)
    load = generated(kubeconfig, what, names, seconds=seconds)
    return load, 1e6 * (cpu_seconds(pid) - before) / len(load.times)


def _raw(size: int, names: list[str], seconds: float) -> tuple[Load, float]:
    """The same load on a server that does nothing, for as many bytes."""
    with _bare(size) as (pid, kubeconfig):
        return _costed(pid, kubeconfig, "get", names, seconds)


@contextmanager
def _bare(size: int) -> Iterator[tuple[int, Path]]:
    """The raw server over TLS: its process, and a kubeconfig for it."""
    with tempfile.TemporaryDirectory(prefix="elbowroom-bare-") as folder:
        credentials, kubeconfig = make_credentials(folder), Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "elbowroom.deploy.bench.bare", str(size), folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdin is not None
            write_kubeconfig(kubeconfig, credentials, f"https://127.0.0.1:{int(process.stdout.readline())}")
            try:
                yield process.pid, kubeconfig
            finally:
                process.stdin.close()


@asynccontextmanager
async def _pods(cluster: Running | Other, count: int) -> AsyncIterator[tuple[list[str], int]]:
    """The names of so many pods, and what the first weighs as JSON; they are gone afterwards."""
    lane = await Connection.open(context_of(cluster.kubeconfig))
    names = [f"rate-{number}" for number in range(count)]

    async def ask(method: str, path: str, body: Any = None) -> bytes:
        status, raw = await lane.request(method, path, body)
        if status >= 300:
            raise UserError(f"the bench failed: {method} {path}: {status} {raw.decode(errors='replace')[:300]}")
        return raw

    try:
        for name in names:
            await ask("POST", PODS, pending_pod(name))
        yield names, len(await ask("GET", f"{PODS}/{names[0]}"))
    finally:
        for name in names:
            await ask("DELETE", f"{PODS}/{name}", msgspec.json.encode({"gracePeriodSeconds": 0}))
        lane.close()
