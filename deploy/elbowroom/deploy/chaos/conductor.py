"""A chaos run from beginning to end: cluster, users, nemesis, healing, convergence, verdict."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from elbowroom.deploy import config, control, launch, planning
from elbowroom.deploy.chaos import faults, settling, users
from elbowroom.deploy.chaos.ground import Ground, NotDoneError
from elbowroom.deploy.chaos.links import RelayedTopology, RelayProcess
from elbowroom.deploy.chaos.plan import Drawn, draw
from elbowroom.deploy.chaos.scenario import KINDS_WITH_LINKS, Body, Expected, Scenario
from elbowroom.deploy.chaos.show import shown
from elbowroom.deploy.chaos.state import Outcome, State
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home, root_of_homes
from elbowroom.deploy.show import Progress
from elbowroom.deploy.topology import Topology
from elbowroom.history.files import load
from elbowroom.history.records import History
from elbowroom.history.report import judge

LOOK_AGAIN_SECONDS = 0.05


def run(scenario: Scenario, seed: int, duration: float | None, *, name: str, keep: bool, show: Callable[[State], None]) -> Outcome:
    """Carry out a scenario, on the running cluster ``name`` or, with "", on one of its own. ``show`` is called with the state
    again and again from another thread. ``UserError`` if it cannot be carried out."""
    body = scenario.spec
    span = duration or body.duration
    state = State(seed, draw(body, seed, span), span)
    began = time.monotonic()
    root = root_of_homes() if keep or name else Path(tempfile.mkdtemp(prefix="elbowroom-chaos-"))
    outcome: Outcome | None = None
    try:
        stage = _on_running(name, body, seed) if name else _on_new(scenario, seed, root, stays=keep)
        with shown(state, show):
            with stage as ground:
                wrong, kills = _happen(ground, body, state)
            state.phase = "judging"
            recorded = load(ground.history)
            report = judge(recorded)
            wrong += _too_little(state, recorded, body.expect)
            outcome = Outcome(state, ground.history, recorded, report, kills, time.monotonic() - began, tuple(wrong))
        return outcome
    finally:
        if not (keep or name) and (outcome is None or outcome.went_well):
            shutil.rmtree(root, ignore_errors=True)


def _happen(ground: Ground, body: Body, state: State) -> tuple[list[str], int]:
    """Everything that happens on the cluster; what went wrong, and how many processes died."""
    wrong: list[str] = []
    try:
        nodes = sorted(found.partition("/")[2] for found in ground.components() if found.startswith("kubelet/"))
        state.phase = "filling the cluster"
        users.populate(ground, body, nodes)
        _break(ground, body, state, wrong)
        state.phase = "healed, settling"
        wrong += _settle(ground, body.settle)
    except NotDoneError as why:
        wrong.append(str(why))
    finally:
        kills = sum(component["restarts"] for component in ground.components().values())
        ground.close()
    return wrong, kills


# ------------------------------------------------------------ the cluster


@contextmanager
def _on_new(scenario: Scenario, seed: int, root: Path, *, stays: bool) -> Iterator[Ground]:
    body = scenario.spec
    with ExitStack() as stack:
        home = Home(f"chaos-{scenario.metadata.name}"[:40].rstrip("-"), root)
        made = config.Cluster(spec=body.cluster)
        relay = stack.enter_context(RelayProcess(_folder(stack), seed)) if body.needs_links else None
        plan = planning.plan(home, made)
        kept = {"history_max": body.history_kept, "compaction_seconds": body.compaction}
        topology = partial(RelayedTopology, relay=str(relay.path) if relay else "", apiserver_config=kept)
        with Progress(home.name, quiet=True) as show:
            launch.start(replace(plan, topology=topology), detach=True, show=show)
        if not stays or relay is not None:  # without the relay its links lead nowhere
            stack.callback(launch.down, home)
        supervisor = home.control()
        profile = dict(made.profile().as_config())
        services = Topology(supervisor.parent, plan.data, profile, body.cluster.apiserver.store, 1, body.cluster.scheduler.config)
        yield Ground(supervisor, home.kubeconfig, _history_of(home), seed, relay, services.service("scheduler"))


@contextmanager
def _on_running(name: str, body: Body, seed: int) -> Iterator[Ground]:
    if body.needs_links:
        kinds = sorted({fault.kind for fault in body.faults if fault.kind in KINDS_WITH_LINKS})
        raise UserError(f"the links of a running cluster cannot be broken ({', '.join(kinds)}); leave --name out for a new cluster")
    home = Home(name)
    yield Ground(home.control(), home.kubeconfig, _history_of(home), seed)


def _history_of(home: Home) -> Path:
    return Path(control.ask(home.control(), {"do": "status"})["ok"]["history"])


def _folder(stack: ExitStack) -> Path:
    """For the relay's socket: a path must be short."""
    folder = Path(tempfile.mkdtemp(prefix="eb-relay-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


# ------------------------------------------------------------ users and nemesis


def _break(ground: Ground, body: Body, state: State, wrong: list[str]) -> None:
    """Users and faults side by side until the time is over; every fault is healed on return."""

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as why:  # the run is over, and this is why
            wrong.append(f"{type(why).__name__}: {why}")
            ground.over.set()

    state.phase, state.began = "breaking", time.monotonic()
    working = [threading.Thread(target=guarded, args=(work,)) for work in users.users(ground, body, state.counts)]
    for thread in working:
        thread.start()
    breaking: list[threading.Thread] = []
    for drawn in state.plan:
        ground.over.wait(max(0.0, state.began + drawn.at - time.monotonic()))
        if ground.over.is_set():
            break
        breaking.append(threading.Thread(target=guarded, args=(partial(_one, ground, drawn, state),)))
        breaking[-1].start()
    ground.over.wait(max(0.0, state.began + state.duration - time.monotonic()))
    ground.over.set()
    for thread in (*breaking, *working):
        thread.join()


def _one(ground: Ground, drawn: Drawn, state: State) -> None:
    """One fault, from its begin to its end."""
    kind = drawn.fault.kind
    try:
        begun = faults.begin(ground, drawn)
    except NotDoneError as why:
        with state.lock:
            state.missed[kind] += 1
        state.tell(f"{kind}: {why}")
        return
    ground.note("begin", begun.name, begun.args)
    with state.lock:
        state.under_way[drawn.number] = f"{begun.name} {_args(begun.args)}"
    ground.over.wait(drawn.span)
    try:
        begun.heal()
    finally:
        ground.note("end", begun.name, begun.args)
        with state.lock:
            state.under_way.pop(drawn.number, None)
            (state.fired if begun.fired else state.missed)[kind] += 1
    state.tell(f"{begun.name} {_args(begun.args)}{'' if begun.fired else ': without effect'}")


def _args(args: Mapping[str, object]) -> str:
    return " ".join(str(value) for value in args.values())


# ------------------------------------------------------------ the verdict


def _settle(ground: Ground, within: float) -> list[str]:
    """What is not well ``within`` seconds after the last fault."""
    deadline = time.monotonic() + within
    while True:
        ill = [f"{c['name']} is {c['state']}" for c in ground.components().values() if c["state"] != "running"]
        if not ill:
            nodes = ground.ask("GET", "/api/v1/nodes")["items"]
            ill = settling.unsettled(users.pods_now(ground), settling.allocatable_of(nodes))
        if not ill:
            return []
        if time.monotonic() > deadline:
            return [f"not well {within:.0f} s after the last fault: {line}" for line in ill[:5]]
        time.sleep(LOOK_AGAIN_SECONDS)


def _too_little(state: State, recorded: History, expect: Expected) -> list[str]:
    """Why the run proves nothing, if it does not."""
    found: list[str] = []
    if state.counts.acknowledged < expect.writes:
        found.append(f"only {state.counts.acknowledged} writes were acknowledged; {expect.writes} are expected")
    allocated = recorded.count("kl.alloc")
    if allocated < expect.allocations:
        found.append(f"only {allocated} allocations were made; {expect.allocations} are expected")
    victims = recorded.count("sch.delete")
    if victims < expect.victims:
        found.append(f"only {victims} pods were deleted to make room; {expect.victims} are expected")
    for kind in sorted({drawn.fault.kind for drawn in state.plan}):
        fired, missed = state.fired[kind], state.missed[kind]
        if fired < expect.fired * (fired + missed) or not fired:
            found.append(f"of {fired + missed} faults {kind} only {fired} had an effect")
    return found
