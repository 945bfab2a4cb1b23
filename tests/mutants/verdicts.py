"""What became of each mutant, kept in a file, so that a run that was broken off goes on where it was."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

CAUGHT, SURVIVED, ARGUED, ERROR = "caught", "survived", "argued", "error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant. ``why`` says more of one that was not caught, ``by`` names the test that caught it."""

    name: str
    outcome: str
    why: str = ""
    seconds: float = 0.0
    """Of the processor."""
    by: str = ""


def digest(folders: Iterable[Path]) -> str:
    """Of all Python sources below the folders: a verdict holds for what it was found on."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            found.update(f"{path.relative_to(folder.parent)}\n".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


class Kept:
    """Verdicts in a file of JSON lines, the first of which says what sources they are about. Those about others are forgotten."""

    def __init__(self, path: Path | None, sources: str, *, afresh: bool = False) -> None:
        self._path = path
        self._found: dict[str, Verdict] = {}
        lines = path.read_text().splitlines() if path is not None and path.exists() and not afresh else []
        if lines and json.loads(lines[0]) == {"sources": sources}:
            for line in lines[1:]:
                verdict = Verdict(**json.loads(line))
                self._found[verdict.name] = verdict
        elif path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"sources": sources}) + "\n")

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def __getitem__(self, name: str) -> Verdict:
        return self._found[name]

    def add(self, verdict: Verdict) -> None:
        """Keep it; errors are tried again."""
        if verdict.outcome != ERROR and verdict.name not in self._found:
            self._found[verdict.name] = verdict
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(asdict(verdict)) + "\n")
