"""Linear programs over polytopes: few are solved, vertices have equal bits, and scaling rounds nothing."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorax import errors
from explorax.agent import arm_sets, polytopes


def as_halfspaces(low, high):
    unit = np.eye(len(low))
    return np.vstack([unit, -unit]), np.concatenate([high, -np.asarray(low)])


def simplex(features):
    """All x ≥ 0 that sum to 1: flat, and no coordinate is constant."""
    total = np.ones((1, features))
    return np.vstack([-np.eye(features), total, -total]), np.concatenate([np.zeros(features), [1.0, -1.0]])


def test_a_vertex_where_many_constraints_meet_has_the_same_bits_however_it_is_found():
    """At a vertex of a cross-polytope the solver ends in one of many bases, each with a rounding of its own."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    A = np.array(list(itertools.product([-1.0, 1.0], repeat=4))) @ turn
    arms = arm_sets.polytope(A, 1 + A @ np.full(4, 0.3))
    directions = np.random.default_rng(4).normal(size=(100, 4))
    alone = np.concatenate([arms.maximize(direction[None]) for direction in directions])
    assert len(np.unique(alone, axis=0)) == 8
    assert_array_equal(arms.maximize(directions), alone)


def test_directions_without_a_single_maximizer_do_not_mislead_the_others(monkeypatch):
    arms = arm_sets.polytope(*as_halfspaces([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]))
    solve, axes = polytopes.solve, np.vstack([np.eye(3), -np.eye(3)])

    def solve_like_an_interior_point_method(direction, rows, limits):
        """Where a whole face is best, some solvers end in its middle, which is no vertex."""
        result = solve(direction, rows, limits)
        result.x[direction == 0] = 0.0
        return result

    monkeypatch.setattr(polytopes, "solve", solve_like_an_interior_point_method)
    clear = np.random.default_rng(6).normal(size=(50, 3))
    best = arms.maximize(np.vstack([np.zeros((1, 3)), axes, clear]))
    assert_allclose(best, np.vstack([np.zeros((1, 3)), axes, np.sign(clear)]))


def test_nearly_parallel_constraints_do_not_move_a_vertex():
    """At (0, 0) the third constraint is nearly an equality; its vertex with the second is 0.005 away."""
    A, b = as_halfspaces([-1.0, -1.0], [1.0, 0.0])
    arms = arm_sets.polytope(np.vstack([A, [[1e-6, 1.0], [2e-6, 1.0]]]), np.append(b, [0.0, 5e-9]))
    assert_allclose(arms.maximize([[5e-7, 1.0]]), [[0.0, 0.0]], atol=1e-8)


def test_linear_programs_are_solved_for_vertices_and_not_for_directions(monkeypatch):
    arms = arm_sets.polytope(*simplex(4))
    solved = []
    monkeypatch.setattr(polytopes, "solve", lambda *program, solve=polytopes.solve: solved.append(1) or solve(*program))
    arms.maximize(np.random.default_rng(3).normal(size=(500, 4)))
    assert len(solved) == 4


@pytest.mark.parametrize("scale", [2.0**-300, 1.0, 2.0**300])
def test_a_polytope_is_found_wherever_it_lies_and_however_large_it_is(scale):
    low, high = np.array([-1.0, 2.0, 3.0]), np.array([0.5, 2.25, 3.0])
    middle, unit = polytopes.frame(*polytopes.normalized(*as_halfspaces(scale * low, scale * high)))
    assert_allclose(middle / scale, (low + high) / 2, rtol=1e-9)
    assert_allclose(unit / scale, [0.75, 0.125, 3.0], rtol=1e-9)  # a constant has the size of the whole
    rows, limits = polytopes.framed(*as_halfspaces(scale * low, scale * high), middle, unit)
    assert_allclose(limits / np.abs(rows).sum(axis=1), [1, 1, 0, 1, 1, 0], atol=1e-9)


def test_powers_of_two_round_nothing():
    rows = np.random.default_rng(0).normal(size=(5, 3)) * 10.0 ** np.arange(-200, 300, 100)[:, None]
    rows[2] = 0.0
    found = polytopes.scaled(rows)
    largest = np.abs(found).max(axis=1)
    assert np.all((largest == 0) | ((largest >= 0.5) & (largest < 1)))
    assert_array_equal(np.ldexp(found, polytopes.scale_of(rows)[:, None]), rows)
    normals, limits = polytopes.normalized(rows[:2], np.array([1e300, -1e300]))
    assert_array_equal(normals, found[:2])
    assert_array_equal(limits, [polytopes.LARGEST, -polytopes.LARGEST])  # beyond float64


def test_equalities_are_pairs_of_opposite_constraints():
    assert polytopes.opposites(*simplex(3)).tolist() == [False] * 3 + [True] * 2
    assert polytopes.opposites(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 1.0])).tolist() == [False, False]


def test_a_solver_that_fails_is_quoted(monkeypatch):
    arms = arm_sets.polytope(*as_halfspaces([-1.0], [1.0]))

    class Failed:
        status, message = 4, "Numerical difficulties encountered."

    monkeypatch.setattr(polytopes, "solve", lambda *program: Failed)
    with pytest.raises(
        errors.InvalidArgument, match=r"no maximum in this polytope: Numerical .* Scale A and b to sizes"
    ):
        arms.maximize([[1.0]])
    with pytest.raises(errors.InvalidArgument, match=r"cannot use the constraints Ax ≤ b: Numerical .* Scale A and b"):
        polytopes.bounding_box(np.eye(1), np.ones(1))
