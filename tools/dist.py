"""What a wheel and an sdist must hold: `python -m tools.dist FOLDER` looks, and says what is missing."""

from __future__ import annotations

import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
KINDS = (".py", ".toml", ".html", ".css", ".js", ".typed")
BESIDE = ("README.md", "LICENSE", "pyproject.toml")


def wanted(source: Path = SOURCE) -> set[str]:
    """Every file that a wheel must hold, as it names them.

    >>> {"reticent/py.typed", "reticent/experiments/presets.toml"} <= wanted()
    True
    """
    found = (path for path in source.rglob("*") if path.suffix in KINDS and ".egg-info" not in str(path))
    return {path.relative_to(source).as_posix() for path in found}


def missing(folder: Path) -> list[str]:
    """What is missing in the wheel and the sdist of a folder, and what is there that should not be."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened, tarfile.open(sdist) as unpacked:
        in_wheel = set(opened.namelist())
        in_sdist = {name.partition("/")[2] for name in unpacked.getnames()}
    wrong = [f"{wheel.name}: no {name}" for name in sorted(wanted() - in_wheel)]
    wrong += [f"{sdist.name}: no {name}" for name in sorted({f"src/{name}" for name in wanted()} - in_sdist)]
    wrong += [f"{sdist.name}: no {name}" for name in BESIDE if name not in in_sdist]
    tops = {name.partition("/")[0] for name in in_wheel}
    wrong += [f"{wheel.name}: {top} does not belong" for top in sorted(tops) if not top.startswith("reticent")]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    wrong += [f"{path.name} is not of version {version}" for path in (wheel, sdist) if version not in path.name]
    return wrong


if __name__ == "__main__":
    wrong = missing(Path(sys.argv[1]))
    print("\n".join(wrong) or f"{len(wanted())} files, in the wheel and in the sdist")
    sys.exit(bool(wrong))
