"""Errors are drawn as one tree, and an unknown name comes with the nearest known one."""

import inspect
import re

import pytest

from explorax import errors
from explorax.errors import UnknownName, check_names


def test_the_tree_is_that_of_the_docstring():
    drawn = {}
    above = []  # the errors on the way to the one of a line
    for depth, name in re.findall(r"^    ([ │├└─]*)(\w+)", errors.__doc__, re.MULTILINE):
        level = len(depth) // 4
        above[level:] = [name]
        drawn[name] = above[level - 1] if level else None
    found = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)}
    assert drawn.keys() == found.keys()
    for name, parent in drawn.items():
        assert found[name].__bases__[0] is (found[parent] if parent else Exception), name
    assert issubclass(errors.InvalidArgument, ValueError)
    assert issubclass(errors.CannotWrite, OSError)


def test_an_unknown_name_comes_with_the_nearest():
    assert str(UnknownName("policy", "GLM-TLS", ["uniform", "glm_tsl"])) == (
        "unknown policy 'GLM-TLS': did you mean 'glm_tsl'? known are glm_tsl, uniform"
    )
    assert str(UnknownName("policy", 3, ["uniform"])) == "unknown policy 3: known are uniform"


def test_many_and_long_names_are_cut():
    said = str(UnknownName("arm", "x" * 1000, [f"arm {number:04d}" for number in range(2000)]))
    assert "x" * 60 + "…'" in said
    assert "x" * 61 not in said
    assert said.endswith("arm 0049 and 1950 more")
    assert "did you mean 'arm 1999'?" in str(UnknownName("arm", "arm 19999", [f"arm {n:04d}" for n in range(2000)]))


def test_names_are_checked_one_by_one():
    check_names("setting", [], [])
    check_names("setting", ["a", "b"], iter(["b", "a"]))
    with pytest.raises(UnknownName, match="unknown setting 'c'"):
        check_names("setting", ["a", "c", "d"], ["a"])
