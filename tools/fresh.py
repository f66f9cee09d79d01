"""The wheel, installed into an environment of its own: `python -m tools.fresh DIST FOLDER` runs the demo there.

Dependencies are those of the environment that runs this, lent by a path file, since a second torch would take minutes:
it shows that the wheel is whole and needs nothing of the sources, not that its list of dependencies is. `--whole`
installs these too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHERE = "import reticent, sys; print(reticent.__version__, reticent.__file__)"


def fresh(dist: Path, folder: Path, *, whole: bool) -> None:
    """Make the environment, install the wheel, run the demo in an empty folder beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder / "env", with_pip=True)
    python, (wheel,) = folder / "env" / "bin" / "python", dist.glob("*.whl")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if whole:
        subprocess.run([*pip, "--constraint", ROOT / "constraints.txt", wheel], check=True)
    else:
        subprocess.run([*pip, "--no-deps", wheel], check=True)
        lent = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "env")}))
        (lent / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    empty = folder / "empty"
    empty.mkdir()
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = subprocess.run(
        [python, "-c", WHERE], cwd=empty, env=clean, check=True, capture_output=True, text=True
    ).stdout
    print(said, end="")
    if not Path(said.split(maxsplit=1)[1].strip()).is_relative_to((folder / "env").resolve()):
        sys.exit("the sources were imported, not the wheel")
    subprocess.run([folder.resolve() / "env" / "bin" / "reticent", "demo"], cwd=empty, env=clean, check=True)


if __name__ == "__main__":
    fresh(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), whole="--whole" in sys.argv)
