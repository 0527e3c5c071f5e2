"""The list of modules in ARCHITECTURE.md, which is the only place where their order is written down."""

import re
from pathlib import Path

from explorax.registry import ENTRIES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "explorax"
EVERY_POLICY = "policies/<name>.py"  # stands for the module of each entry of the registry


def listed_paths():
    """The paths in the first column of the table, relative to `src/explorax`, in their order."""
    _, _, after = (ROOT / "ARCHITECTURE.md").read_text().partition("\n| module |")
    table, _, _ = after.partition("\n\n")
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [path for cell in cells for path in re.findall(r"`([^`]+)`", cell)]


def ranks():
    """The place of each module in the order, by its path; policies share one, since they may use each other's parts."""
    found = {}
    for place, path in enumerate(listed_paths()):
        for module in [f"policies/{entry.name}.py" for entry in ENTRIES] if path == EVERY_POLICY else [path]:
            assert module not in found, f"{module} is listed twice"
            found[module] = place
    return found
