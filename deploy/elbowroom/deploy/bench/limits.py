"""What this machine can do at best, measured in the same run: no figure can be better than these."""

import os
import sqlite3
import tempfile
import threading
import time
from pathlib import Path

import zmq

from elbowroom.deploy.bench.figures import percentile


def fdatasyncs_per_second(directory: Path, seconds: float = 0.5) -> float:
    """How often a second a small append can be made durable, one by one."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        deadline, count, began = time.perf_counter() + seconds, 0, time.perf_counter()
        while time.perf_counter() < deadline:
            os.write(file.fileno(), b"x" * 1536)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.perf_counter() - began)


def zmq_round_trip_ms(directory: Path, count: int = 2000) -> float:
    """The median of a request and its answer between two sockets over ipc: what no message between processes can beat."""
    address = f"ipc://{directory}/echo.sock"
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()

    def echo() -> None:
        with context.socket(zmq.ROUTER) as router:
            router.bind(address)
            for _ in range(count):
                router.send_multipart(router.recv_multipart())

    answering = threading.Thread(target=echo)
    answering.start()
    with context.socket(zmq.DEALER) as dealer:
        dealer.connect(address)
        times = []
        for _ in range(count):
            began = time.perf_counter()
            dealer.send(b"x" * 1536)
            dealer.recv()
            times.append(1000 * (time.perf_counter() - began))
    answering.join()
    context.term()
    return percentile(times, 0.5)


def zmq_fan_out_per_second(directory: Path, readers: int, messages: int = 200) -> float:
    """How many messages a second one ROUTER hands to so many DEALERs of the same process, each message to all of them."""
    address = f"ipc://{directory}/fan-out.sock"
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        router.bind(address)
        dealers = [context.socket(zmq.DEALER) for _ in range(readers)]
        for number, dealer in enumerate(dealers):
            dealer.setsockopt(zmq.ROUTING_ID, f"reader/{number}".encode())
            dealer.connect(address)
            dealer.send(b"here")
        names = [router.recv_multipart()[0] for _ in dealers]
        began = time.perf_counter()
        for _ in range(messages):
            for name in names:
                router.send_multipart([name, b"x" * 1536])
            for dealer in dealers:
                dealer.recv()
        took = time.perf_counter() - began
        for dealer in dealers:
            dealer.close(linger=0)
    context.term()
    return readers * messages / took


def sqlite_rows_per_second(directory: Path, group: int, seconds: float = 0.5) -> float:
    """Rows a second made durable by SQLite (WAL, FULL), so many to a commit."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        database = sqlite3.connect(f"{folder}/raw.db", isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE log (revision INTEGER PRIMARY KEY, value BLOB)")
        value, rows, began = b"x" * 1536, 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            database.execute("BEGIN")
            database.executemany("INSERT INTO log (value) VALUES (?)", [(value,)] * group)
            database.execute("COMMIT")
            rows += group
        took = time.perf_counter() - began
        database.close()
    return rows / took


def pss_mib(pid: int) -> float:
    """A process's share of the memory it uses: shared pages count once among those who share them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid: int) -> float:
    """What a process's threads have spent, to the microsecond."""
    spent = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            spent += int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue  # it has ended meanwhile
    return spent / 1e9


def children(pid: int) -> list[int]:
    """All processes below ``pid``, itself included."""
    found, parents = [pid], {pid}
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            below.setdefault(parent, []).append(int(entry.name))
    while parents:
        parents = {child for parent in parents for child in below.get(parent, [])}
        found += parents
    return found
