"""How long it takes to judge a long history against every invariant, and what it was made of."""

import gc
import resource
import time

from elbowroom.deploy.bench.figures import Figure
from elbowroom.deploy.bench.long_run import recorded, stretched
from elbowroom.deploy.errors import UserError
from elbowroom.history.records import History, Pool
from elbowroom.history.report import judge

OPERATIONS = 1_000_000
LIMIT_SECONDS = 60.0


def judge_a_million(operations: int = OPERATIONS) -> list[Figure]:
    """CPU seconds for so many answered requests of clients, one in ten of them a resize, and all that they led to; and the most
    memory that the process had."""
    gc.collect()
    gc.disable()  # millions of records that stay are looked at again and again for nothing
    try:
        pool = Pool()
        history = History(tuple(map(pool.record, stretched(recorded(), operations))))
        del pool
        began = time.process_time()
        report = judge(history)
        took = time.process_time() - began
    finally:
        gc.enable()
    if report.verdict != "valid":
        raise UserError(f"the bench failed: the history is {report.verdict}: {[*report.failures[:1], *report.lacking[:1]]}")
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    counts = {name: float(history.count(kind)) for name, kind in (("operations", "api.ok"), ("writes", "commit"))}
    return [
        Figure(
            "judge-a-million",
            f"{operations:,} operations judged",
            took,
            "s",
            limit=LIMIT_SECONDS,
            limit_is="what the specification allows",
            details={
                **counts,
                "watch events": float(history.count("watch.event")),
                "records": float(len(history.records)),
                "peak MiB": round(peak_mib),
            },
        )
    ]
