"""Docstrings and errors are said as the field says them: imperative, complete, and understandable alone."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/hooks/*.py")])
TEXTS = sorted([*MODULES, *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.py")])
# What a function does: the first word of its docstring.  A new verb is welcome here, an article or a noun is not.
VERBS = frozenset((ROOT / "tests/verbs.txt").read_text("utf-8").split())
# Habits of ours that hold readers up, with what to write instead.
AVOIDED = {
    r"\b(that is|which is|are|is) none\b": "say what it is: NaN, missing, not a …",
    r"\bin small\b": "a small version of",
    r"\bunless not\b": "if … is true",
    r"\botherwise than\b": "differently from",
    r"\band says so\b": "leave it out",
    r"\bunless given\b": "Default: …",
}


def functions(path):
    """Yield the functions of a module that have a docstring, and whether each is a property."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            yield node, "property" in decorators


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_function_says_what_it_does(path):
    wrong = []
    for node, is_property in functions(path):
        first, _, _ = ast.get_docstring(node).partition("\n")
        if not is_property and first.split()[0].rstrip(",") not in VERBS:
            wrong.append(f"line {node.lineno}, {node.name}: {first}")
        elif not re.search(r"[.?]$", first):
            wrong.append(f"line {node.lineno}, {node.name}: the first line is no sentence: {first}")
    assert not wrong, "\n".join(wrong)


def message_parts(call):
    """Return the text of an error's message with {} for values; None where it is put together elsewhere."""
    text = ""
    for argument in call.args[:1]:
        parts = [argument]
        while parts:
            part = parts.pop(0)
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
                parts = [part.left, part.right, *parts]
            elif isinstance(part, ast.JoinedStr):
                parts = [*part.values, *parts]
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                text += part.value
            else:
                text += "{}"
    return text if re.search(r"\w", text.replace("{}", "")) else None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_an_error_is_sentences_that_show_the_value(path):
    wrong = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            kind, message = ast.unparse(node.exc.func), message_parts(node.exc)
            if message is None or kind in ("UnknownName", "SystemExit", "KeyError", "AttributeError", "typer.Exit"):
                continue
            if not re.search(r"(\.|\?|…|\{\})$", message):
                wrong.append(f"line {node.lineno}: no full stop: {message}")
            if " must " in message and "got " not in message and "{}" in message:
                wrong.append(f"line {node.lineno}: … must be …, got {{value}}: {message}")
            if re.search(r"=\{\}", message.split(" must ")[0]):
                wrong.append(f"line {node.lineno}: {{argument}} must be {{what}}, got {{value}}: {message}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_texts_are_plain(path):
    text = path.read_text("utf-8")
    found = [f"{match[0]!r}: {remedy}" for habit, remedy in AVOIDED.items() for match in re.finditer(habit, text)]
    assert not found, found
