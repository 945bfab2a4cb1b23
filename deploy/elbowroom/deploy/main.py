"""``elbowroom``: the command line.

Exit codes: 0 done, 1 the thing checked did not hold, 2 the command could not be carried out (one line on stderr says what was
wrong and what to do). What a command needs is imported when it runs, so that ``status`` answers at once.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.exceptions import TyperException

from elbowroom.deploy.ending import heed_signals
from elbowroom.deploy.errors import UserError

app = typer.Typer(
    name="elbowroom",
    help="Emulates the Kubernetes loop that resizes running pods in place and makes room for them by preemption.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

chaos = typer.Typer(help="Break a cluster of real processes, and judge what came of it.", no_args_is_help=True)
app.add_typer(chaos, name="chaos")

Name = Annotated[str, typer.Option("--name", envvar="ELBOWROOM_NAME", help="Which cluster; several live side by side.")]
FailpointLabel = Annotated[str | None, typer.Option("--at", metavar="FAILPOINT", help="Not now but at that step: K4, S7.1.")]


class SignalName(StrEnum):
    KILL = "KILL"
    TERM = "TERM"
    STOP = "STOP"
    CONT = "CONT"


class StoreKind(StrEnum):
    SQLITE = "sqlite"
    MEMORY = "memory"


class PlacementName(StrEnum):
    LOCAL = "local"
    RAY = "ray"


class ProfileName(StrEnum):
    LAB = "lab"
    V1_37 = "v1.37"


class StatusFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class Experiment(StrEnum):
    PREEMPTION = "preemption"


class Story(StrEnum):
    PREEMPTION = "preemption"
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"
    NODE_POLICY = "node-policy"
    CHAOS = "chaos"
    NUMA = "numa"
    SCALE_DELAY = "scale-delay"


class Suite(StrEnum):
    ALL = "all"
    SCHEDULING = "scheduling"
    API = "api"
    RESIZE_PREEMPTION = "resize-preemption"
    HISTORIES = "histories"
    AIMS = "aims"


def _can_be_written(option: str, path: Path | None) -> None:
    """``UserError``, before work of minutes begins, if what it finds could not be written there at its end."""
    if path is None or str(path) == "-":
        return
    folder = path.absolute().parent
    if path.is_dir():
        raise UserError(f"{option} {path}: Is a directory")
    if not folder.is_dir():
        raise UserError(f"{option} {path}: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UserError(f"{option} {path}: Permission denied")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"elbowroom {version('elbowroom')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """The options of the command itself."""


@app.command()
def up(
    name: Annotated[str, typer.Option("--name", envvar="ELBOWROOM_NAME", help="What to call the cluster.")] = "",
    file: Annotated[Path | None, typer.Option("-f", "--file", metavar="CLUSTER.YAML", help="Read the cluster from a file.")] = None,
    nodes: Annotated[int | None, typer.Option(min=0, help="How many nodes.", show_default="3")] = None,
    node_cpu: Annotated[str | None, typer.Option(help="CPUs of a node.", show_default="4")] = None,
    node_memory: Annotated[str | None, typer.Option(help="Memory of a node.", show_default="16Gi")] = None,
    kubelets_per_process: Annotated[
        int | None, typer.Option(min=1, help="How many kubelets share a process.", show_default="1")
    ] = None,
    feature_gates: Annotated[str | None, typer.Option(metavar="A=true,B=false", help="Feature gates by upstream's names.")] = None,
    store: Annotated[StoreKind | None, typer.Option(help="Where objects are kept.", show_default="sqlite")] = None,
    profile: Annotated[ProfileName | None, typer.Option(help="The design or the release.", show_default="lab")] = None,
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the cluster's state there.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Serve Kubernetes' API there; 0: any free port.")] = 0,
    all_addresses: Annotated[bool, typer.Option("--all-addresses", help="Serve it at all addresses, as in a container.")] = False,
    time_scale: Annotated[float | None, typer.Option(help="Emulated seconds a real second.", show_default="1")] = None,
    on: Annotated[PlacementName | None, typer.Option(help="Processes here, or actors of Ray.", show_default="local")] = None,
    address: Annotated[str | None, typer.Option(metavar="RAY", help="With --on ray: the Ray cluster; else one of our own.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return when every node is Ready.")] = False,
) -> None:
    """Start the control plane and the nodes; without --detach stay until Ctrl-C and then take all down."""
    from elbowroom.deploy import launch

    changes: dict[str, Any] = {
        "nodes": launch.node_group(nodes, node_cpu, node_memory),
        "kubeletsPerProcess": kubelets_per_process,
        "featureGates": None if feature_gates is None else launch.gates(feature_gates),
        "apiserver": None if store is None else {"store": store.value},
        "profile": None if profile is None else profile.value,
        "timeScale": time_scale,
        "placement": None if on is None else on.value,
        "ray": None if address is None else {"address": address},
    }
    wanted = {field: value for field, value in changes.items() if value is not None}
    launch.up(name, file, wanted, data_dir=data_dir, port=port, all_addresses=all_addresses, detach=detach)


@app.command()
def down(name: Name = "default") -> None:
    """Stop a cluster; its data stays."""
    from elbowroom.deploy import launch
    from elbowroom.deploy.home import Home

    print(launch.down(Home(name)))


@app.command()
def status(
    name: Name = "default",
    output: Annotated[StatusFormat, typer.Option("-o", "--output", help="For people or programs.")] = StatusFormat.TEXT,
) -> None:
    """Show the components and nodes of a cluster."""
    from elbowroom.deploy import control
    from elbowroom.deploy.home import Home

    answer = control.ask(Home(name).control(), {"do": "status"})["ok"]
    if output is StatusFormat.JSON:
        import json

        print(json.dumps(answer, indent=2))
        return
    from elbowroom.deploy.show import status_text

    print(status_text(answer))


@app.command()
def kubeconfig(name: Name = "default") -> None:
    """Print the path of a cluster's kubeconfig."""
    from elbowroom.deploy.home import Home

    home = Home(name)
    home.control()
    print(home.kubeconfig)


@app.command()
def logs(
    component: Annotated[str, typer.Argument(help="apiserver, scheduler, controllers, kubelet/NODE, runtime/NODE or supervisor.")],
    name: Name = "default",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as more is written.")] = False,
) -> None:
    """Print what a component has decided and written."""
    from elbowroom.deploy import log
    from elbowroom.deploy.home import Home

    log.show(Home(name), component, follow=follow)


@app.command()
def kill(
    component: Annotated[str, typer.Argument(help="apiserver, scheduler, controllers, kubelet/NODE or runtime/NODE.")],
    name: Name = "default",
    signal: Annotated[SignalName, typer.Option("--signal", help="STOP freezes, CONT thaws.")] = SignalName.KILL,
    at: FailpointLabel = None,
    hits: Annotated[int, typer.Option(min=1, help="With --at: at the N-th time that it gets there.")] = 1,
    stay_dead: Annotated[bool, typer.Option("--stay-dead", help="Do not start it again; --signal CONT does.")] = False,
) -> None:
    """Send a component a signal, now or at a step of its work; the supervisor starts again what died."""
    from elbowroom.deploy import control
    from elbowroom.deploy.home import Home

    request = {
        "do": "kill",
        "component": component,
        "signal": signal.value,
        "at": at,
        "hits": hits,
        "stayDead": stay_dead,
    }
    control.ask(Home(name).control(), request)


@app.command()
def demo(
    story: Annotated[Story, typer.Argument(help="Which story to tell.")] = Story.PREEMPTION,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the cluster up afterwards.")] = False,
    profile: Annotated[ProfileName, typer.Option(help="The design or the release.")] = ProfileName.LAB,
) -> None:
    """Tell a story on a cluster of its own; exit 0 only if every step of it really happened."""
    from elbowroom.deploy.stories import tell

    raise typer.Exit(0 if tell(story.value, profile=profile.value, keep=keep) else 1)


@app.command()
def check(
    history: Annotated[Path, typer.Argument(help="A directory of histories (see status).")],
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write it as a page for a browser, too.")] = None,
) -> None:
    """Judge a recorded history against every invariant; exit 1 if one was broken."""
    from elbowroom.history import files, report

    _can_be_written("--html", html)
    try:
        told = files.load(history)
        verdict = report.judge(told)
        if html is not None:
            from elbowroom.deploy import page

            page.write(told, verdict, html)
    except (files.UnreadableHistoryError, OSError) as why:
        raise UserError(str(why)) from why
    print(verdict.text())
    raise typer.Exit(0 if verdict.verdict == "valid" else 1)


@app.command()
def explore(
    scenario: Annotated[
        str, typer.Argument(help="preemption, resize-storm, a scenario of chaos (chaos/NAME, see 'chaos list'), or its YAML file.")
    ],
    count: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")] = 100,
    first_seed: Annotated[int, typer.Option("--first-seed", help="The first of them.")] = 1,
    minutes: Annotated[float | None, typer.Option("--minutes", min=0.0, help="Stop after so long.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Processes side by side; 0: one a processor.")] = 0,
    replay: Annotated[int | None, typer.Option("--replay", metavar="SEED", help="One seed again, with the whole verdict.")] = None,
    shrink: Annotated[
        int | None, typer.Option("--shrink", metavar="SEED", help="Leave out of a failing seed's plan what it fails without.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Without the faults that a seed draws.")] = False,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="PEER@LABEL#HITS:ACTION", help="With --replay: a fault at a step (quiet but for it)."),
    ] = None,
    death: Annotated[
        int, typer.Option("--death", min=0, metavar="N", help="With --replay: a death before that effect (quiet but for it).")
    ] = 0,
    keep: Annotated[str, typer.Option("--keep", metavar="N,N", help="With --replay: only these parts of the plan.")] = "",
    systematic: Annotated[
        bool, typer.Option("--systematic", help="One seed: at each labelled step it passes a crash, a stop, a delay, a disk error.")
    ] = False,
    deaths: Annotated[bool, typer.Option("--deaths", help="One seed: a death before each single effect.")] = False,
    pairs: Annotated[int, typer.Option("--pairs", min=0, metavar="N", help="One seed: so many pairs of faults at steps.")] = 0,
    failures: Annotated[
        Path | None, typer.Option("--failures", metavar="FILE", help="Append each failure to it when it comes.")
    ] = None,
    profile: Annotated[
        ProfileName | None, typer.Option(help="The design or the release.", show_default="lab, or what the file of chaos says")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--duration", metavar="10s", help="Of chaos: so many virtual seconds.", show_default="the file's")
    ] = None,
) -> None:
    """Tell a story in one process, on a seeded bus and a virtual clock, once for each seed; exit 1 names those that went wrong."""
    from elbowroom.deploy.chaos import command
    from elbowroom.deploy.explore import run as runs
    from elbowroom.deploy.explore import show

    _can_be_written("--failures", failures)
    story, name = scenario, None if profile is None else profile.value
    long = command.seconds(duration) if duration is not None else None
    runs.scenario_of(story, long, name)  # or it is none
    if replay is not None or shrink is not None:
        try:
            points = tuple(runs.Point.of(text) for text in at or ())
        except ValueError as why:
            raise UserError(str(why)) from why
        try:
            kept = None if not keep else tuple(int(number) for number in keep.split(",") if number != "none")
        except ValueError as why:
            raise UserError(f"--keep {keep}: numbers of the plan's parts, with commas between them, or none") from why
        seed, hostile = (replay if replay is not None else shrink) or 0, not (quiet or points or death)
        one = runs.Run(seed, death, hostile, name, story, points, kept, long)
        raise typer.Exit(0 if (show.replay(one) if replay is not None else show.shrink(one)) else 1)
    if deaths:
        wanted, what = runs.deaths(first_seed, name, story, long), "deaths, one before each effect"
    elif pairs:
        wanted, what = runs.pairs(first_seed, pairs, name, story, long), "pairs of faults at steps"
    elif systematic:
        wanted, what = runs.systematic(first_seed, name, story, long), "faults, one at each step"
    else:
        wanted, what = runs.seeds(first_seed, count, name, story, long), "seeds with faults"
    raise typer.Exit(0 if show.explore(wanted, what, jobs=jobs, minutes=minutes, failures=failures) else 1)


@chaos.command("run")
def chaos_run(
    scenario: Annotated[str, typer.Argument(help="A built-in scenario (see 'chaos list') or a YAML file.")],
    seed: Annotated[int, typer.Option("--seed", help="Draws the faults; the same seed, the same plan.")] = 1,
    duration: Annotated[str | None, typer.Option("--duration", metavar="60s", help="How long things go wrong.")] = None,
    name: Annotated[str, typer.Option("--name", help="Break that running cluster instead of a new one.")] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Leave a new cluster up afterwards.")] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the history as a page for a browser.")] = None,
    profile: Annotated[
        ProfileName | None, typer.Option(help="The design or the release.", show_default="what the file says")
    ] = None,
) -> None:
    """Break a cluster while it is used, heal it, wait until all is well, and judge what was recorded; exit 1 if not all was."""
    from elbowroom.deploy.chaos import command

    _can_be_written("--html", html)
    chosen = None if profile is None else profile.value
    raise typer.Exit(0 if command.run(scenario, seed, duration, name=name, keep=keep, html=html, profile=chosen) else 1)


@chaos.command("list")
def chaos_list() -> None:
    """Print the built-in scenarios."""
    from elbowroom.deploy.chaos import command

    print(command.listing())


@chaos.command("schema")
def chaos_schema() -> None:
    """Print the JSON schema of a scenario file."""
    import json

    from elbowroom.deploy.chaos import scenario

    print(json.dumps(scenario.schema(), indent=2))


@chaos.command("marathon")
def chaos_marathon(
    minutes: Annotated[float, typer.Option("--minutes", min=0.0, help="Stop after so long.")] = 5.0,
    kills: Annotated[int, typer.Option("--kills", min=1, help="Stop after so many kill -9.")] = 10_000,
    first_seed: Annotated[int, typer.Option("--first-seed", help="The seed of the first round.")] = 1,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="SCENARIO", help="Only scenarios of that name.")] = None,
    profile: Annotated[
        ProfileName | None, typer.Option(help="The design or the release.", show_default="what the files say")
    ] = None,
) -> None:
    """Run all scenarios in turn, round after round with seed after seed; exit 1 at the first that goes wrong."""
    from elbowroom.deploy.chaos import command

    chosen = None if profile is None else profile.value
    raise typer.Exit(0 if command.marathon(minutes, kills, first_seed, only or [], chosen) else 1)


@app.command()
def experiment(
    which: Annotated[Experiment, typer.Argument(help="Which question.")],
    count: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds for each policy.")] = 20,
    first_seed: Annotated[int, typer.Option("--first-seed", help="The first of them.")] = 1,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Processes side by side; 0: one a processor.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write it as JSON, too; - for stdout.")] = None,
) -> None:
    """Tell the same stories under each policy of the scheduler, and count victims, needless ones, and the time to resize."""
    from elbowroom.deploy.experiment import show

    assert which is Experiment.PREEMPTION, "there is one experiment so far"
    _can_be_written("--json", json_file)
    show.preemption(first_seed, count, jobs, json_file)


@app.command()
def bench(
    suite: Annotated[Suite, typer.Argument(help="Which figures.")] = Suite.ALL,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="Only figures of that name.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write them as JSON, too; - for stdout.")] = None,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="KUBECONFIG", help="Take another cluster's figures as the peer's.")
    ] = None,
    profiles: Annotated[
        Path | None, typer.Option("--profiles", metavar="FOLDER", help="Save what our processes do with their time, too.")
    ] = None,
) -> None:
    """Take the figures, each beside its peer's or the physical limit."""
    from elbowroom.deploy.bench import run

    if against is not None and not against.is_file():
        raise UserError(f"--against {against}: no such file")
    _can_be_written("--json", json_file)
    run(suite.value, only or [], json_file, against, profiles)


@app.command()
def scale(
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=50_000, help="How many nodes.")] = 100,
    pods: Annotated[int, typer.Option("--pods", min=1, help="How many pods, at most 100 a node.")] = 300,
    resizes: Annotated[
        int | None,
        typer.Option("--resizes", min=1, help="How many pods grow by a victim's room.", show_default="a third of the pods"),
    ] = None,
    at_once: Annotated[int, typer.Option("--at-once", min=1, max=1000, help="How many resizes are under way at a time.")] = 16,
    per_process: Annotated[
        int, typer.Option("--kubelets-per-process", min=2, max=4000, help="How many nodes share a process.")
    ] = 500,
    time_scale: Annotated[
        float, typer.Option("--time-scale", min=0.01, max=1.0, help="Emulated seconds in a real one, where Leases are too many.")
    ] = 1.0,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page for a browser, too.")
    ] = None,
) -> None:
    """Bring many nodes and pods up, storm them with resizes that need room made, and report; exit 1 if an invariant was broken."""
    from elbowroom.deploy.scale import command

    _can_be_written("--html", html)
    raise typer.Exit(0 if command.run(nodes, pods, resizes, at_once, per_process, time_scale, html) else 1)


def _fail(why: str) -> NoReturn:
    if why:  # without arguments the help has been printed already
        print(f"elbowroom: {' '.join(why.replace('Value error, ', '').split())}", file=sys.stderr)
    raise SystemExit(2)


def _carried_out(command: Callable[[], Any]) -> int:
    try:
        code = command() or 0
        sys.stdout.flush()
        return code
    except UserError as why:
        _fail(str(why))
    except TyperException as why:
        _fail(why.format_message() if hasattr(why, "format_message") else str(why))
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as why:  # of this machine: no room, no right, no such folder
        if not isinstance(why.strerror, str):
            raise
        with suppress(OSError):  # nor is there at the end
            sys.stdout.close()
        _fail(f"{why.filename}: {why.strerror}" if why.filename else why.strerror)
    except (KeyboardInterrupt, typer.Abort):
        return 130


def main() -> None:
    """The entry point of the console script."""
    heed_signals()
    raise SystemExit(_carried_out(lambda: app(standalone_mode=False)))


if __name__ == "__main__":
    main()
