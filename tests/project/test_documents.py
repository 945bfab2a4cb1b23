"""What the documents point at is there: pages, sections, files and tests."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
