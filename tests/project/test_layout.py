"""The layout holds: every part of the namespace is listed where builds, type checkers and layers look."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOTS = sorted(p.parent.relative_to(ROOT).as_posix() for p in ROOT.glob("*/elbowroom")) + sorted(
    p.parent.relative_to(ROOT).as_posix() for p in ROOT.glob("services/*/elbowroom")
)


def test_no_file_hides_the_other_parts_of_the_namespace() -> None:
    assert not [p for p in ROOT.glob("**/elbowroom/__init__.py") if ".venv" not in p.parts]


def test_every_root_is_built_and_checked() -> None:
    hatch = PROJECT["tool"]["hatch"]["build"]
    assert sorted(hatch["dev-mode-dirs"]) == sorted(ROOTS)
    assert sorted(hatch["targets"]["wheel"]["packages"]) == sorted(f"{root}/elbowroom" for root in ROOTS)
    assert sorted(PROJECT["tool"]["mypy"]["files"]) == sorted(f"{root}/elbowroom" for root in ROOTS)
    assert sorted(PROJECT["tool"]["mypy"]["mypy_path"].split(":")) == sorted(ROOTS)
    assert sorted(PROJECT["tool"]["pyright"]["extraPaths"]) == sorted(ROOTS)


def test_every_package_has_a_layer() -> None:
    layers = (ROOT / ".importlinter").read_text()
    packages = {p.parent.name for root in ROOTS for p in (ROOT / root / "elbowroom").glob("*/__init__.py")}
    assert packages, "the layout is not what this test believes"
    assert not {p for p in packages if f"elbowroom.{p}" not in layers}


def test_every_dependency_has_its_reason() -> None:
    reasons = (ROOT / "docs/dependencies.md").read_text().lower()
    project = PROJECT["project"]
    wanted = project["dependencies"] + [d for extra in project["optional-dependencies"].values() for d in extra]
    names = {d.split("[")[0].split(">")[0].split("=")[0].lower() for d in wanted}
    assert not {name for name in names if f"`{name}`" not in reasons}


def test_every_dependency_is_pinned_with_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pins = [line for line in lock.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    assert pins
    assert lock.count("--hash=sha256:") >= len(pins)
    assert "://" not in lock, "no address of a registry belongs in the lock"


def test_every_test_module_has_a_name_of_its_own() -> None:
    """pytest imports them by it."""
    names = [p.name for p in (ROOT / "tests").rglob("*.py") if p.name != "conftest.py"]
    assert len(names) == len(set(names)), sorted(name for name in set(names) if names.count(name) > 1)
