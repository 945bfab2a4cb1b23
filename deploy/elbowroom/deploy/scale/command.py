"""The command: a cluster of its own, the run, the verdict, the report; and all gone again, whatever happens."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import uvloop

from elbowroom.client import context_of
from elbowroom.deploy import config, control, launch, planning
from elbowroom.deploy.bench.gauge import Gauge
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home
from elbowroom.deploy.scale import judging, report
from elbowroom.deploy.scale.drive import Run, drive
from elbowroom.deploy.scale.plan import Plan, plan
from elbowroom.deploy.scale.view import View

NAME = "scale"


def run(nodes: int, pods: int, growing: int | None, lanes: int, per_process: int, time_scale: float, html: Path | None) -> bool:
    """Whether the history was judged valid. ``UserError`` if the run could not be made."""
    wanted = plan(nodes, pods, growing)
    if html is not None:
        _see_that_it_can_be_written(html)
    load = os.getloadavg()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing may be left running
    scratch = Path(tempfile.mkdtemp(prefix="elbowroom-scale-"))
    try:
        made, history = driven(wanted, lanes, per_process, Home(NAME, scratch), time_scale)
        print("judging the history ...", flush=True)
        verdict = judging.judged(history, nodes)
        print(report.text(made, verdict), flush=True)
        if verdict.report.verdict != "valid":
            print(verdict.report.text())
        if html is not None:
            report.write(made, verdict, load, html)
            print(f"report: {html}", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)  # a large run leaves some twenty thousand files: the report does not wait for it
    return verdict.report.verdict == "valid"


def driven(wanted: Plan, lanes: int, per_process: int, home: Home, time_scale: float = 1.0) -> tuple[Run, Path]:
    """The run, and where its history is. The cluster is down on return."""
    cluster = config.overlay(config.Cluster(), wanted.cluster(per_process, time_scale))
    made, view = Run(wanted), View(wanted.nodes)
    try:
        launch.start(planning.plan(home, cluster), detach=True, show=view)
        made.ready = view.seconds_to_ready
        answer = control.ask(home.control(), {"do": "status"})["ok"]
        with view:
            uvloop.run(drive(made, context_of(home.kubeconfig), Gauge(home.state().pid), lanes, view.show))
    except OSError as why:
        raise UserError(f"the run broke off: {why}") from why
    finally:
        if home.path.exists() and home.is_running():
            launch.down(home)
    return made, Path(answer["history"])


def _see_that_it_can_be_written(file: Path) -> None:
    """Better said before the run than after it."""
    try:
        with file.open("a"):
            return
    except OSError as why:
        raise UserError(f"--html {file}: {why.strerror}") from why
