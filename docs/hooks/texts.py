"""Docstrings as Markdown, and rows of tables."""

import re


def markdown(docstring: str) -> str:
    """Turn a docstring into Markdown: what would be taken for markup by mistake is escaped.

    Our docstrings are nearly Markdown: formulas and code are indented, names are in backticks, and some words between
    stars.  Nothing else in them is meant as markup: other stars are the paper's, brackets are intervals.

    Args:
        docstring: A docstring, or a part of one.

    Returns:
        The same words as Markdown.
    """
    return "\n".join(line if line.startswith("    ") else escaped(line) for line in docstring.splitlines())


def escaped(line: str) -> str:
    """Mark all markup of a line as text, except for `code`, *words* and **words**."""
    kept = r"`[^`]*`|(?<![^\s(])\*\*?[A-Za-z][^*`]*\*\*?(?![\w*])"
    return re.sub(rf"({kept})|([*_<\[\]])", lambda found: found[1] or f"\\{found[2]}", line)


def capitalized(words: str) -> str:
    """Make the first letter a capital one, and leave the others as they are."""
    return words[:1].upper() + words[1:]


def row(*cells: str) -> str:
    """Join cells to one line of a table."""
    return f"| {' | '.join(cells)} |"
