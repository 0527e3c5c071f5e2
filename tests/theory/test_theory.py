"""The names of `explorax.theory` are those that its page explains."""

import re
from pathlib import Path

from explorax import theory

PAGE = Path(__file__).parents[2] / "docs/theory.md"


def test_the_page_explains_every_function():
    _, _, table = PAGE.read_text("utf-8").partition("| in `explorax.theory` |")
    table, _, _ = table.partition("\n\n")
    functions = {name for name in theory.__all__ if name[0].islower()}
    assert functions == {name for name in re.findall(r"`(\w+)", table) if name[0].islower()}
