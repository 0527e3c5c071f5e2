"""Run the other libraries' half of docs/migration, and compare what it prints with what the pages show.

    python benchmarks/peers/migration.py DIR

DIR has an environment for each library, made by `environments.py`.  The halves that use explorax run in the tests.
"""

import argparse
import re
import subprocess
from pathlib import Path

from environments import python_of

PAGES = Path(__file__).parents[2] / "docs" / "migration"
LIBRARIES = {"vowpal-wabbit": "vowpalwabbit"}  # pages that are not named after their package


def printed_and_shown(page: Path, directory: Path) -> tuple[str, str]:
    """Run the problem of a page with the other library, and return what it prints and what the page shows."""
    text = page.read_text("utf-8")
    problem = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    theirs = re.search(r"```py\n(.*?)```\n```text\n(.*?)```", text, re.DOTALL)
    if problem is None or theirs is None:
        raise SystemExit(f"{page.name} shows no problem or no program of another library.")
    python = python_of(directory, LIBRARIES.get(page.stem, page.stem))
    command = [python, "-W", "ignore", "-c", problem[1] + theirs[1]]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout, theirs[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="where environments.py made the environments")
    directory = parser.parse_args().directory.resolve()
    different = 0
    for page in sorted(PAGES.glob("*.md")):
        printed, shown = printed_and_shown(page, directory)
        different += printed != shown
        print(f"{page.stem}: {printed.strip()}" + ("" if printed == shown else f", but the page shows {shown.strip()}"))
    raise SystemExit(bool(different))


if __name__ == "__main__":
    main()
