"""``elbowroom check --html``: a history as one self-contained page that needs no network and no script.

``timeline`` decides what is shown, ``axis`` where, ``words`` says it in sentences; the template lays it out.
"""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from elbowroom.deploy.page import words
from elbowroom.deploy.page.timeline import timeline
from elbowroom.history.records import History
from elbowroom.history.report import Report


def html(history: History, report: Report, title: str) -> str:
    """The page. Everything that comes from the history is escaped: a pod may be called anything."""
    environment = Environment(
        loader=PackageLoader("elbowroom.deploy", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    picture = timeline(history, report.failures)
    return environment.get_template("page.html.j2").render(
        title=title, report=report, picture=picture, verdicts=report.lines(), words=words.sentence
    )


def write(history: History, report: Report, file: Path) -> None:
    """Write the page to ``file``. ``OSError`` if that cannot be."""
    file.write_text(html(history, report, file.stem), encoding="utf-8")
