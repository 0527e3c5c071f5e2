"""The problems of the arena can be drawn."""

import pytest

from explorax import environments
from explorax.arena.problems import LABELLED, PROBLEMS


@pytest.mark.parametrize("problem", [one for one in PROBLEMS if one.group != LABELLED], ids=lambda one: one.name)
def test_problems_can_be_drawn(problem):
    environment = environments.make(problem.environment, **problem.settings)
    assert environment.n_features == problem.settings["n_features"]
    assert problem.norm is not None
