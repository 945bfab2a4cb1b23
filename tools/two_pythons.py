"""One seed, one history, on two versions of Python: ``python tools/two_pythons.py python3.13`` compares this one with another.

The other is looked for on the path, among pyenv's versions and with uv. It gets an environment of its own, ``.venv-NAME``, from the
same lock file. Stories and a scenario of chaos are told on both, each with a hash seed of its own; exit 1 if any history differs.
Where there is no such Python nothing is compared, and the reason is said.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = [ROOT / "common", *sorted((ROOT / "services").iterdir()), ROOT / "deploy"]
RUNS = (
    "Run(5, hostile=True)",
    "Run(7, hostile=True, scenario='resize-storm')",
    "Run(1, hostile=True, scenario='chaos/preemption', duration=2.0)",
)
PROGRAM = "from elbowroom.deploy.explore.run import Run, make; made = make({}); print(made.history, made.failure)"


def interpreters(python: str) -> Iterator[str]:
    """Where there may be one of that name (``python3.13``) or path; not each of them runs."""
    if found := shutil.which(python):
        yield found
    name = Path(python).name
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    # A shim of pyenv's is on the path for each version, but runs the chosen ones only.
    yield from (str(path) for path in sorted(versions.glob(f"*/bin/{name}"), reverse=True))
    if uv := shutil.which("uv"):
        asked = subprocess.run([uv, "python", "find", name.removeprefix("python")], check=False, capture_output=True, text=True)
        yield from asked.stdout.split()


def version(interpreter: str | Path) -> str:
    """What it says it is; "" if it does not run."""
    try:
        return subprocess.run([str(interpreter), "-V"], check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def environment(python: str) -> Path | None:
    """The interpreter of an environment for ``python``, made for the lock file as it is; None if there is no such Python."""
    place = ROOT / f".venv-{Path(python).name}"
    interpreter = place / "bin" / "python"
    locked, done = (ROOT / "requirements.lock").read_text(), place / ".set-up"
    if not done.exists() or done.read_text() != locked:
        base = next((one for one in interpreters(python) if version(one)), None)
        if base is None:
            return None
        subprocess.run([base, "-m", "venv", "--clear", str(place)], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", "requirements.lock"]
        subprocess.run([str(interpreter), *install], check=True, cwd=ROOT)
        done.write_text(locked)
    return interpreter


def told(interpreter: Path, run: str, hash_seed: str) -> str:
    """The digest of the run's history, and how it failed if it did."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([str(interpreter), "-c", PROGRAM.format(run)], env=env, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def main(other: str) -> int:
    theirs = environment(other)
    if theirs is None:
        sys.stdout.write(f"skipped: no {other} runs here (on the path, among pyenv's versions, or with uv)\n")
        return 0
    versions = [version(one) for one in (sys.executable, theirs)]
    differing = 0
    for run in RUNS:
        ours, others = told(Path(sys.executable), run, "1"), told(theirs, run, "2")
        differing += ours != others
        sys.stdout.write(
            f"{'same' if ours == others else 'DIFFERENT'}  {run}\n    {versions[0]}: {ours}\n    {versions[1]}: {others}\n"
        )
    return 1 if differing else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/two_pythons.py PYTHON")
    sys.exit(main(sys.argv[1]))
