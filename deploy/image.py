"""Build the image of deploy/Containerfile: ``make image``, or with options ``python deploy/image.py --tag elbowroom:mine``.

The context is the wheels of what elbowroom needs at run time, at the versions of the lock file, and its own: the build itself asks
no registry. ``--base host`` makes the base image, too, from this machine's interpreter and the libraries that it and the wheels
load, for machines that reach no registry of images; else the base is the Containerfile's.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOST_BASE = "elbowroom-base:host"
TOOLS = ("/bin/sh", "/bin/cat")
LEFT_OUT = re.compile(r"/(site-packages|test|tests|idlelib|tkinter|turtledemo|__pycache__|config-3[^/]*)(/|$)|\.a$")
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the image of deploy/Containerfile.")
    parser.add_argument("--tag", default="elbowroom:latest")
    parser.add_argument(
        "--base", default="", metavar="IMAGE", help="another base image; 'host': one made from this machine's Python"
    )
    parser.add_argument("--extras", default="", metavar="NAMES", help="extras to install, as in 'ray'")
    parser.add_argument("--engine", default="docker", help="the command that builds")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="elbowroom-image-") as folder:
        context = Path(folder)
        extras = f"[{chosen.extras}]" if chosen.extras else ""
        gather_wheels(context / "wheels", extras)
        shutil.copy(ROOT / "deploy/Containerfile", context / "Containerfile")
        base = chosen.base
        if base == "host":
            base = HOST_BASE
            import_host(context / "base.tar", context / "wheels", chosen.engine)
        arguments = [f"--build-arg=EXTRAS={extras}", *([f"--build-arg=BASE={base}"] if base else [])]
        run(chosen.engine, "build", "--quiet", *arguments, "--tag", chosen.tag, "--file", str(context / "Containerfile"), folder)
    print(chosen.tag)


def gather_wheels(folder: Path, extras: str) -> None:
    """The wheels of elbowroom and all that it needs to run."""
    folder.mkdir()
    pins = folder.parent / "pins.txt"
    lock = (ROOT / "requirements.lock").read_text()
    pins.write_text("".join(f"{line.rstrip(chr(92)).rstrip()}\n" for line in lock.splitlines() if re.match(r"[A-Za-z0-9]", line)))
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-build-isolation",
        "--constraint",
        str(pins),
        "--wheel-dir",
        str(folder),
        f"{ROOT}{extras}",
    )
    pins.unlink()


def import_host(tar: Path, wheels: Path, engine: str) -> None:
    """The base image: this interpreter with pip, a shell, and every shared library that they or the wheels load."""
    home = Path(sysconfig.get_config_var("installed_base"))
    interpreter = Path(sys.executable).resolve()
    unpacked = tar.parent / "unpacked"
    for wheel in wheels.glob("*.whl"):
        shutil.unpack_archive(wheel, unpacked, "zip")
    modules = [*unpacked.rglob("*.so*"), *(home / "lib").rglob("lib-dynload/*.so")]
    libraries = sorted({library for file in (interpreter, *map(Path, TOOLS), *modules) for library in loaded_by(file)})
    with tarfile.open(tar, "w") as archive:
        for name in ("bin", "lib"):
            archive.add(home / name, f"usr/local/{name}", filter=_kept)
        for path in (*TOOLS, *(path for path in libraries if not path.startswith((str(home), str(unpacked))))):
            archive.add(os.path.realpath(path), path.lstrip("/"))
        for folder in ("tmp", "root", "var/lib"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
    shutil.rmtree(unpacked)
    changes = ("--change", "ENV PATH=/usr/local/bin:/usr/bin:/bin", "--change", "ENV LD_LIBRARY_PATH=/usr/local/lib")
    run(engine, "import", *changes, str(tar), HOST_BASE)
    tar.unlink()


def loaded_by(file: Path) -> list[str]:
    """The shared libraries that a program or a library loads, by path; those that are not found are its own business."""
    told = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
    return _LIBRARY.findall(told)


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if LEFT_OUT.search(f"/{entry.name}") else entry


def run(*command: str) -> None:
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}")


if __name__ == "__main__":
    main()
