"""A virtual environment for the Open Bandit Pipeline (obp), with which explorax is compared, and questions to it.

    python benchmarks/obp_environment.py DIR

makes DIR with exactly the packages that `obp_requirements.txt` pins, for the Python that runs this (the pins are of
Python 3.11).  An environment that has them is left alone; one that does not is made anew.  obp also asks for PyTorch,
which its estimators do not use: a stand-in takes its place (`obp_without_torch.py`).
"""

import argparse
import json
import subprocess
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
PINNED, ANSWERS = HERE / "obp_requirements.txt", HERE / "obp_answers.py"


def is_complete(python: Path) -> bool:
    """Whether the environment has the pinned packages and no others."""
    if not python.exists():
        return False
    found = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True)
    return found.returncode == 0 and set(found.stdout.split()) == set(PINNED.read_text().split())


def make(directory: Path) -> Path:
    """The interpreter of the environment, which is made unless it is there and complete."""
    python = directory.resolve() / "bin" / "python"
    if is_complete(python):
        return python
    venv.create(directory, clear=True, with_pip=True)
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement", str(PINNED)]
    subprocess.run([python, "-m", "pip", *install], check=True)
    if not is_complete(python):
        raise SystemExit(f"what pip installed is not what {PINNED} pins; compare it with `{python} -m pip freeze`")
    return python


def ask(python: Path, question: str, arrays: dict[str, np.ndarray], **settings: Any) -> dict[str, np.ndarray]:
    """What obp answers to one of the questions in `obp_answers.py`, with arrays and settings as its arguments."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given.npz"), Path(folder, "found.npz")
        np.savez(given, **arrays)  # type: ignore[arg-type]
        subprocess.run([python, ANSWERS, question, json.dumps(settings), given, found], check=True)
        with np.load(found) as answer:
            return dict(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="where to make it")
    print(make(parser.parse_args().directory))


if __name__ == "__main__":
    main()
