"""The workload of a run on real processes: its objects are created, and each user works in a thread while things go wrong."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from elbowroom.api.objects import Pod
from elbowroom.client import Witness
from elbowroom.deploy.chaos import workload
from elbowroom.deploy.chaos.ground import NAMESPACE, Ground, NotDoneError, pods_path
from elbowroom.deploy.chaos.scenario import Body
from elbowroom.deploy.chaos.workload import AGAIN, WAIT_SECONDS, Ask, Doing, Wait, is_write
from elbowroom.wire import ApiResponse


@dataclass
class Counts:
    """What became of the users' writes. Any thread may add."""

    acknowledged: int = 0
    unanswered: int = 0
    visitors: int = 0
    refused: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, status: int) -> None:
        """A write ended with that status."""
        with self._lock:
            if 200 <= status < 300:
                self.acknowledged += 1
            elif status == 0:
                self.unanswered += 1
            else:
                self.refused[status] = self.refused.get(status, 0) + 1

    def visited(self) -> None:
        with self._lock:
            self.visitors += 1


def populate(ground: Ground, body: Body, nodes: Sequence[str]) -> None:
    """Create priorities, pods, replica sets and budgets, and wait until all pods run. ``NotDoneError`` if they do not."""
    for document in workload.priorities(body):
        ground.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", document)
    for document in workload.pods(body, nodes):
        ground.ask("POST", pods_path(), document)
    for replicas in body.replica_sets:
        ground.ask("POST", f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets", workload.replica_set(replicas))
        budget = workload.budget(replicas)
        if budget is not None:
            ground.ask("POST", f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", budget)
    wanted = workload.pods_wanted(body)
    ground.until(f"{wanted} pods run", lambda: len([pod for pod in pods_now(ground) if pod.status.phase == "Running"]) >= wanted)


def pods_now(ground: Ground) -> list[Pod]:
    """The pods of chaos' namespace."""
    return msgspec.convert(ground.ask("GET", pods_path())["items"], list[Pod])


def users(ground: Ground, body: Body, counts: Counts) -> list[Callable[[], None]]:
    """What each user does until ``ground.over``, to be run in a thread each."""
    return [partial(_work, ground, who, doing, counts) for who, doing in workload.users(body, ground.seed)]


def _work(ground: Ground, who: str, doing: Doing, counts: Counts) -> None:
    """A client of its own does it. A refusal that is not allowed is an error."""
    witness = Witness(ground.kubeconfig, ground.history, f"chaos-{who}", ground.seed)
    try:
        answer: ApiResponse | None = None
        while not ground.over.is_set():
            match doing.send(answer):
                case Wait(seconds):
                    ground.over.wait(seconds)
                    answer = None
                case Ask() as ask:
                    answer = _sent(ground, witness, ask, counts)
                    if answer is not None and ask.request.verb == "create":
                        counts.visited()
    finally:
        witness.close()


def _sent(ground: Ground, witness: Witness, ask: Ask, counts: Counts) -> ApiResponse | None:
    """The answer; None when it is time to stop."""
    while not ground.over.is_set():
        answer = witness.send(ask.request)
        if is_write(ask.request):
            counts.answered(answer.status)
        if 200 <= answer.status < 300 or answer.status in ask.allowed:
            return answer
        if answer.status not in AGAIN:
            raise NotDoneError(f"{ask.request.verb} {ask.request.name}: {answer.status} {answer.body[:300]!r}")
        ground.over.wait(WAIT_SECONDS)
    return None
