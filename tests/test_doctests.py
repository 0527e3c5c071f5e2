"""The examples in docstrings are run, and print what they say."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import explorax

SOURCE = Path(__file__).parents[1] / "src"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def dotted(path):
    """The name by which the module in a file is imported."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = sorted(dotted(path) for path in SOURCE.rglob("*.py") if ">>> " in path.read_text("utf-8"))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    done = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert done.attempted > 0, "examples are found in docstrings only"
    assert done.failed == 0


@pytest.mark.parametrize("name", explorax.list_policies())
def test_the_example_of_a_builder_runs(name):
    """Help of a builder is made when it is first asked for, so its module does not hold the example."""
    builder = getattr(explorax, name)
    (test,) = doctest.DocTestFinder(recurse=False).find(builder, name, globs={})
    done = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert done.attempted > 0
    assert done.failed == 0
    assert f"explorax.{name}(" in inspect.getdoc(builder)
