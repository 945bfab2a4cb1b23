"""What would run or build whatever a stranger sends is nowhere: no pickle, no unsafe YAML, no eval."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("common", "services", "deploy") for path in (ROOT / folder).rglob("*.py"))
MODULES = frozenset(("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle"))
FUNCTIONS = frozenset(("eval", "exec"))
METHODS = frozenset(("recv_pyobj", "send_pyobj", "unsafe_load", "full_load", "unsafe_load_all", "full_load_all"))


def offences(text: str) -> Iterator[str]:
    """What of a module's text is forbidden."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in MODULES:
                yield module
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
                yield name
            case ast.Call(func=ast.Attribute(value=of, attr=name)) if name in METHODS:
                yield f"{ast.unparse(of)}.{name}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="yaml"), attr=("load" | "load_all") as name)):
                if "Safe" not in ast.unparse(node) and "Loader" not in ast.unparse(node):
                    yield f"yaml.{name}"
            case ast.Attribute(value=ast.Name(id="yaml"), attr=("Loader" | "UnsafeLoader" | "FullLoader" | "CLoader") as name):
                yield f"yaml.{name}"


def test_there_are_sources_to_look_at() -> None:
    assert len(SOURCES) > 200


def test_no_module_builds_what_strangers_say() -> None:
    found = {str(path.relative_to(ROOT)): list(offences(path.read_text())) for path in SOURCES}
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from cloudpickle import loads",
        "import shelve as s",
        "eval('1')",
        "socket.recv_pyobj()",
        "yaml.load(text)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
    ],
)
def test_the_search_finds_what_it_looks_for(text: str) -> None:
    assert list(offences(text))
