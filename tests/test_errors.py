"""Errors are drawn as one tree, and an unknown name comes with the nearest known one."""

import inspect
import pickle
import re

import numpy as np
import pytest

from explorax import errors
from explorax.errors import UnknownName, check_names, shown


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
        "policy must be one of glm_tsl, uniform, got 'GLM-TLS'. Did you mean 'glm_tsl'?"
    )
    assert str(UnknownName("policy", 3, ["uniform"])) == "policy must be one of uniform, got 3."
    assert (
        str(UnknownName("setting", "x", []))
        == "setting must be left out, because there are no names to choose from, got 'x'."
    )


def test_many_and_long_names_are_cut():
    said = str(UnknownName("arm", "x" * 1000, [f"arm {number:04d}" for number in range(2000)]))
    assert "x" * 60 + "…'" in said
    assert "x" * 61 not in said
    assert said.startswith("arm must be one of 2000 names, got 'xxx")
    assert "…'. The names are arm 0000, arm 0001, " in said
    assert said.endswith("arm 0049 and 1950 more.")
    assert "Did you mean 'arm 1999'?" in str(UnknownName("arm", "arm 19999", [f"arm {n:04d}" for n in range(2000)]))


def test_errors_can_be_sent_to_another_process():
    for error in (UnknownName("policy", "glm_tls", ["glm_tsl"]), errors.InvalidShape("x"), errors.RunFailed("y")):
        sent = pickle.loads(pickle.dumps(error))
        assert (type(sent), str(sent)) == (type(error), str(error))


def test_names_are_checked_one_by_one():
    check_names("setting", [], [])
    check_names("setting", ["a", "b"], iter(["b", "a"]))
    with pytest.raises(UnknownName, match="setting must be one of a, got 'c'"):
        check_names("setting", ["a", "c", "d"], ["a"])


def test_values_are_shown_in_short():
    assert shown(2.5) == "2.5"
    assert shown("red") == "'red'"
    assert shown(None) == "None"
    assert shown(np.zeros((2, 3))) == "an array of shape (2, 3) and dtype float64"
    assert shown((np.eye(2),)) == "(array([[1., 0.], [0., 1.]]),)"
    assert max(len(shown(long)) for long in ("x" * 10**6, list(range(10**6)), 10**500)) < 100
