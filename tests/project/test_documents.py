"""What the documents point at is there: pages, sections, files and tests."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [path for folder in ("common", "services") for path in (ROOT / folder).rglob("*.py") if "testing" not in path.parts]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TESTS = {path.relative_to(ROOT / "tests").as_posix(): path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}


def sections(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, section = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not section or section in sections(found), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_test_that_is_named_exists(page: Path) -> None:
    for named, name in re.findall(r"`([\w/]*test_\w+\.py)(?:::(\w+))?", page.read_text()):
        texts = [text for path, text in TESTS.items() if f"/{path}".endswith(f"/{named.removeprefix('tests/')}")]
        assert texts, named
        assert not name or any(re.search(rf"def {name}\b", text) for text in texts), f"{named}::{name}"


def kinds_in(source: Path) -> set[str]:
    """The kinds of the records that a module makes, as far as they are written out there."""
    calls = (node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call))
    noted = (call for call in calls if getattr(call.func, "attr", getattr(call.func, "id", "")) in ("Note", "note") and call.args)
    return {str(call.args[0].value) for call in noted if isinstance(call.args[0], ast.Constant)}


def test_every_kind_of_record_is_in_the_page_of_histories() -> None:
    told: set[str] = set()
    for row in re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / "histories.md").read_text(), re.MULTILINE):
        before = ""
        for name in re.findall(r"`([\w.]+)`", row):
            before = before[: before.rindex(".")] + name if name.startswith(".") else name
            told.add(before)
    made = set().union(*map(kinds_in, SOURCES))
    assert len(made) > 40
    assert made - told == set()
