"""A chaos scenario: what a person writes, checked whole before anything starts.

A file says what cluster there is, what its users do and what goes wrong; examples/chaos/ has them, ``schema()`` is their JSON
schema. Times are real seconds. ``of`` and the like are patterns over component names (``kubelet/*``).
"""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator, model_validator

from elbowroom.deploy.config import API_VERSION, FILE_BYTES_MAX, NAME, Loader, Model, Quantity, Spec, explain
from elbowroom.deploy.errors import UserError
from elbowroom.machine.steps import is_step

BUILT_IN = Path(__file__).parent / "scenarios"
KINDS_WITH_LINKS = ("cut", "partition", "isolate", "swizzle", "disturb")

Probability = Annotated[float, Field(ge=0, le=1)]
Pattern = Annotated[str, Field(min_length=1)]


def _pair(value: Any) -> Any:
    """One number stands for a range of one value."""
    return (value, value) if isinstance(value, int | float) else tuple(value) if isinstance(value, list) else value


def _ordered(value: tuple[float, float]) -> tuple[float, float]:
    if value[0] > value[1]:
        raise ValueError(f"{value[0]:g} is more than {value[1]:g}")
    return value


Range = Annotated[tuple[float, float], BeforeValidator(_pair), AfterValidator(_ordered)]
Span = Annotated[Range, AfterValidator(lambda value: value if value[0] >= 0 else _refuse("a span is not negative"))]


def _refuse(why: str) -> Any:
    raise ValueError(why)


class _Fault(Model):
    every: float = Field(default=5.0, gt=0)
    """Mean seconds from one to the next."""


class _Lasting(_Fault):
    span: Span = (0.2, 2.0)
    """How long it lasts, drawn evenly."""


class Kill(_Fault):
    """kill -9, at once or at a step of the component's work; it starts again, after ``down`` seconds if that is more than 0. At a
    step of its start (R1, B2) it dies twice: now, and there."""

    kind: Literal["kill"]
    of: list[Pattern]
    at: list[str] = []
    hits: Annotated[tuple[int, int], BeforeValidator(_pair)] = (1, 3)
    down: Span = (0.0, 0.0)

    @model_validator(mode="after")
    def _steps_are_passed(self) -> Self:
        kinds = ("apiserver", "scheduler", "controllers", "kubelet", "runtime")
        mine = [
            kind
            for kind in kinds
            if any(fnmatchcase(kind, p) or fnmatchcase(f"{kind}/x", p) or p.startswith(f"{kind}/") for p in self.of)
        ]
        for label in self.at:
            if not any(is_step(kind, label) for kind in mine):
                raise ValueError(f"none of {self.of} ever passes a step {label!r}")
        return self


class PowerCut(_Fault):
    """kill -9 of everything at once."""

    kind: Literal["powerCut"]


class Stop(_Lasting):
    """SIGSTOP, and SIGCONT afterwards."""

    kind: Literal["stop"]
    of: list[Pattern]


class Cut(_Lasting):
    """A link is down, and both sides know."""

    kind: Literal["cut"]
    between: tuple[Pattern, Pattern]

    _pairs = field_validator("between", mode="before")(_pair)


class Partition(_Lasting):
    """A link swallows frames, and nobody knows; ``oneWay``: only those of the first."""

    kind: Literal["partition"]
    between: tuple[Pattern, Pattern]
    one_way: bool = False

    _pairs = field_validator("between", mode="before")(_pair)


class Isolate(_Lasting):
    """Every link of a component is down."""

    kind: Literal["isolate"]
    of: list[Pattern]


class Swizzle(_Lasting):
    """The links of a component go down one by one and come back in another order."""

    kind: Literal["swizzle"]
    of: list[Pattern]


class Disturb(_Lasting):
    """Single frames between peers of these names go wrong."""

    kind: Literal["disturb"]
    source: Pattern = "*"
    target: Pattern = "*"
    drop: Probability = 0.0
    duplicate: Probability = 0.0
    delay: Probability = 0.0
    reorder: Probability = 0.0
    corrupt: Probability = 0.0
    delay_seconds: float = Field(default=0.5, ge=0)


class DiskFull(_Lasting):
    """Every write to the component's disk fails with ENOSPC."""

    kind: Literal["diskFull"]
    of: list[Pattern]


class FailedFsync(_Fault):
    """One write reaches the disk, but its fsync fails."""

    kind: Literal["failedFsync"]
    of: list[Pattern]


class ClockStep(_Lasting):
    """A component's clock jumps, and back again afterwards."""

    kind: Literal["clockStep"]
    of: list[Pattern]
    seconds: Range = (-30.0, 30.0)


class RuntimeErrors(_Lasting):
    """The runtime refuses the next ``times`` updates of a pod's containers."""

    kind: Literal["runtimeErrors"]
    pods: Pattern = "*"
    times: int = Field(default=2, ge=1)


class SlowRuntime(_Lasting):
    """The runtime takes ``seconds`` for each update of a pod's containers."""

    kind: Literal["slowRuntime"]
    pods: Pattern = "*"
    seconds: float = Field(default=0.5, gt=0)


class NodeLoss(_Lasting):
    """A node's kubelet and runtime are gone, and come back."""

    kind: Literal["nodeLoss"]
    nodes: Pattern = "*"


class Allocatable(_Lasting):
    """A node's allocatable shrinks to a share of its capacity, and grows again."""

    kind: Literal["allocatable"]
    nodes: Pattern = "*"
    share: Range = (0.5, 0.9)


class SlowReaders(_Lasting):
    """So many watches are opened and not read."""

    kind: Literal["slowReaders"]
    watches: int = Field(default=20, ge=1, le=1000)


class Herd(_Fault):
    """So many watchers lose the API server at once and come back at once."""

    kind: Literal["herd"]
    watchers: int = Field(default=100, ge=1, le=2000)


class Slow(_Lasting):
    """A component gets only a share of a processor's time, in slices."""

    kind: Literal["slow"]
    of: list[Pattern]
    share: float = Field(default=0.3, gt=0, lt=1)


class Usage(_Lasting):
    """A pod's containers begin to use so much memory, from one moment to the next."""

    kind: Literal["usage"]
    pods: Pattern = "*"
    memory: list[Quantity] = ["64Mi", "300Mi", "600Mi", "900Mi"]


class Rules(_Lasting):
    """A rule of the namespace comes, and goes: a quota or a limit on containers that leaves little ``memory``, or a budget that
    protects all pods."""

    kind: Literal["rules"]
    of: list[Literal["quota", "limitRange", "budget"]] = ["quota", "limitRange", "budget"]
    memory: list[Quantity] = ["1Gi", "2Gi", "4Gi"]


class Hog(_Lasting):
    """So many processes beside the cluster's take all the processor's time that they can get."""

    kind: Literal["hog"]
    processes: int = Field(default=2, ge=1, le=64)


class FewFiles(_Lasting):
    """A component may open only so many files more than it has."""

    kind: Literal["fewFiles"]
    of: list[Pattern]
    more: int = Field(default=2, ge=0, le=1000)


class Hostile(_Lasting):
    """A client sends what no client should: bodies that are none, too deep or without end, odd numbers, odd paths, odd heads, and
    tokens that it made up. None may be answered as if the server had failed."""

    kind: Literal["hostile"]


class SecondScheduler(_Lasting):
    """Somebody starts a scheduler where there is one."""

    kind: Literal["secondScheduler"]


Fault = Annotated[
    Kill
    | PowerCut
    | Stop
    | Cut
    | Partition
    | Isolate
    | Swizzle
    | Disturb
    | DiskFull
    | FailedFsync
    | ClockStep
    | RuntimeErrors
    | SlowRuntime
    | NodeLoss
    | Allocatable
    | SlowReaders
    | Herd
    | Slow
    | Usage
    | Rules
    | Hog
    | FewFiles
    | Hostile
    | SecondScheduler,
    Field(discriminator="kind"),
]


class Template(Model):
    """Pods with one container ``c``. ``limits`` are the requests where ``guaranteed``."""

    priority: str = ""
    cpu: Quantity = "250m"
    memory: Quantity = "512Mi"
    grace: int = Field(default=1, ge=0)
    stop_seconds: float | None = 0.0
    """How long a container takes to end after SIGTERM; null: it does not heed it."""
    guaranteed: bool = False


class Pods(Template):
    """So many pods ``NAME-1`` and so on, each bound to the next node."""

    name: str = Field(pattern=NAME)
    count: int = Field(default=1, ge=1, le=500)


class ReplicaSet(Template):
    name: str = Field(pattern=NAME)
    replicas: int = Field(default=3, ge=0, le=500)
    min_available: int | None = None
    """With it, a PodDisruptionBudget."""


class Resizer(Model):
    """Clients that resize pods at random, each write repeated until it is acknowledged."""

    does: Literal["resize"]
    pods: Pattern = "*"
    clients: int = Field(default=2, ge=1, le=32)
    cpu: list[Quantity] = ["100m", "250m", "500m", "800m", "1200m"]
    memory: list[Quantity] = ["256Mi", "512Mi", "1Gi", "1536Mi", "2Gi"]
    pause: Span = (0.0, 0.05)
    """Seconds between two writes of a client."""


class Visitor(Template):
    """Pods that come, stay for a while and are deleted."""

    does: Literal["visit"]
    name: str = Field(default="visitor", pattern=NAME)
    at_once: int = Field(default=2, ge=1, le=50)
    stays: Span = (0.2, 2.0)
    pause: Span = (0.1, 1.0)


class Pager(Model):
    """Clients that go through all pods page by page, while others write."""

    does: Literal["page"]
    clients: int = Field(default=1, ge=1, le=32)
    limit: int = Field(default=3, ge=1, le=500)
    pause: Span = (0.0, 0.1)
    """Seconds between two pages."""


class Replacer(Template):
    """Pods that are resized, deleted (by ``force``, without grace, in so many of all cases) and made again under the same name."""

    does: Literal["replace"]
    name: str = Field(default="phoenix", pattern=NAME)
    at_once: int = Field(default=2, ge=1, le=50)
    force: Probability = 0.3
    stays: Span = (0.2, 2.0)


User = Annotated[Resizer | Visitor | Replacer | Pager, Field(discriminator="does")]


class Expected(Model):
    """What must have happened at least, or the run proves nothing."""

    writes: int = 20
    allocations: int = 10
    victims: int = 0
    fired: float = Field(default=0.5, ge=0, le=1)
    """The share of each kind of fault that must have had its effect."""


class Body(Model):
    about: str
    duration: float = Field(default=30.0, gt=0, le=86_400)
    settle: float = Field(default=60.0, gt=0)
    """Seconds within which all must be well after the last fault."""
    cluster: Spec = Field(default_factory=Spec)
    history_kept: int = Field(default=20_000, ge=10)
    """Revisions that the API server remembers for those who resume a watch."""
    compaction: float = Field(default=300.0, gt=0)
    priorities: dict[str, int] = {"high": 1000, "low": 10}
    pods: list[Pods] = []
    replica_sets: list[ReplicaSet] = []
    users: list[User] = []
    faults: list[Fault] = []
    expect: Expected = Expected()

    @model_validator(mode="after")
    def _priorities_exist(self) -> Self:
        for made in [*self.pods, *self.replica_sets, *(user for user in self.users if isinstance(user, Visitor | Replacer))]:
            if made.priority and made.priority not in self.priorities:
                raise ValueError(f"no priority {made.priority!r}; there is: {', '.join(sorted(self.priorities))}")
        return self

    @property
    def needs_links(self) -> bool:
        """Do its faults need a relay in the middle of the bus?"""
        return any(fault.kind in KINDS_WITH_LINKS for fault in self.faults)


class Metadata(Model):
    name: str = Field(pattern=NAME)


class Scenario(Model):
    """The whole file."""

    api_version: Literal["elbowroom.dev/v1alpha1"]
    kind: Literal["Chaos"]
    metadata: Metadata
    spec: Body

    def under(self, profile: str | None) -> Self:
        """The same on a cluster of that profile, with resize preemption on, since the stories need it; None: as the file says."""
        if profile is None:
            return self
        gates = {**self.spec.cluster.feature_gates, "InPlacePodVerticalScalingSchedulerPreemption": True}
        cluster = self.spec.cluster.model_copy(update={"profile": profile, "feature_gates": gates})
        return self.model_copy(update={"spec": self.spec.model_copy(update={"cluster": cluster})})


def names() -> list[str]:
    """The built-in scenarios."""
    return sorted(path.stem for path in BUILT_IN.glob("*.yaml"))


def load(name: str) -> Scenario:
    """A built-in scenario by its name, or that of a file; ``UserError`` says what is wrong with it."""
    path = Path(name)
    if not path.suffix and not path.exists():
        path = BUILT_IN / f"{name}.yaml"
        if not path.is_file():
            raise UserError(f"no scenario {name!r}; there is: {', '.join(names())}; or name a YAML file")
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise UserError(f"{path}: larger than {FILE_BYTES_MAX} bytes; this is no scenario")
        document = Loader(path.read_text(encoding="utf-8")).get_single_data()
    except OSError as why:
        raise UserError(f"{path}: {why.strerror or why}") from why
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as why:
        raise UserError(f"{path}: not YAML: {' '.join(str(why).split())}") from why
    if not isinstance(document, dict) or document.get("apiVersion") != API_VERSION or document.get("kind") != "Chaos":
        raise UserError(f"{path}: expected apiVersion {API_VERSION} and kind Chaos")
    try:
        return Scenario.model_validate(document)
    except ValidationError as why:
        raise UserError(f"{path}: {explain(why)}") from why


def schema() -> dict[str, Any]:
    """The JSON schema of a scenario, for editors."""
    return Scenario.model_json_schema(by_alias=True)
