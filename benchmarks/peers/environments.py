"""A virtual environment for each library that explorax is measured against.

    python benchmarks/peers/environments.py DIR

makes DIR/bayesianbandits, DIR/coba, DIR/contextualbandits, DIR/mabwiser and DIR/vowpalwabbit with exactly the packages
that `requirements/` pins, for the Python that runs this (the pins are of Python 3.11).  An environment that has them is
left alone; one that does not is made anew.  pip compiles contextualbandits, which needs a C++ compiler.
"""

import argparse
import subprocess
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"
PEERS = sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def python_of(directory: Path, peer: str) -> Path:
    """The interpreter that runs this library's adapter."""
    return directory / peer / "bin" / "python"


def is_complete(python: Path, pinned: Path) -> bool:
    """Whether the environment has the pinned packages and no others."""
    if not python.exists():
        return False
    found = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True)
    return found.returncode == 0 and set(found.stdout.split()) == set(pinned.read_text().split())


def make(directory: Path, peer: str) -> None:
    """The environment of one library, unless it is there and complete."""
    python, pinned = python_of(directory, peer), REQUIREMENTS / f"{peer}.txt"
    if is_complete(python, pinned):
        print(f"{peer}: there")
        return
    venv.create(directory / peer, clear=True, with_pip=True)
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", pinned], check=True
    )
    if not is_complete(python, pinned):
        raise SystemExit(
            f"{peer}: what pip installed is not what {pinned} pins; compare it with `{python} -m pip freeze`"
        )
    print(f"{peer}: made")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="where to make them")
    directory = parser.parse_args().directory.resolve()
    for peer in PEERS:
        make(directory, peer)


if __name__ == "__main__":
    main()
