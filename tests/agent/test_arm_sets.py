"""Maximizers over infinite sets of arms, against other ways to find them: sampling, SciPy, all vertices."""

import itertools
import sys

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from explorax import errors
from explorax.agent import arm_sets

CENTER = np.array([0.5, -2.0, 1.0])
SHAPE = np.array([[2.0, 0.9, 0.1], [0.9, 1.0, -0.3], [0.1, -0.3, 0.5]])
LOW, HIGH = np.array([-1.0, 0.1, 2.0]), np.array([0.5, 0.3, 2.0])
PYRAMID = np.array([[1.0, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 1], [0, 0, -1]]), np.array([1.0, 1, 1, 1, 0])
SEEDS = st.integers(0, 2**32 - 1)
MODEST = settings(max_examples=30, deadline=None, database=None, derandomize=True)


def as_halfspaces(low, high):
    unit = np.eye(len(low))
    return np.vstack([unit, -unit]), np.concatenate([high, -np.asarray(low)])


def simplex(features):
    """All x ≥ 0 that sum to 1: flat, and no coordinate is constant."""
    total = np.ones((1, features))
    return np.vstack([-np.eye(features), total, -total]), np.concatenate([np.zeros(features), [1.0, -1.0]])


def cut_box(rng, features, cuts):
    """A random box off the origin with some corners cut off by random half-spaces; its middle is always inside."""
    middle, half = rng.normal(size=features), rng.uniform(0.5, 2.0, features)
    A, b = as_halfspaces(middle - half, middle + half)
    normals = rng.normal(size=(cuts, features))
    depth = rng.uniform(0.2, 1.0, cuts) * (np.abs(normals) @ half)
    return np.vstack([A, normals]), np.concatenate([b, normals @ middle + depth])


def all_vertices(A, b):
    """Every point where d constraints are equalities and none is violated."""
    found = []
    for chosen in itertools.combinations(range(len(A)), A.shape[1]):
        rows = A[list(chosen)]
        if np.linalg.cond(rows) < 1e12:
            point = np.linalg.solve(rows, b[list(chosen)])
            if np.all(A @ point <= b + 1e-9):
                found.append(point)
    return np.array(found)


ARM_SETS = {
    "ball": arm_sets.ball(CENTER, 0.7),
    "ellipsoid": arm_sets.ellipsoid(CENTER, SHAPE),
    "box": arm_sets.box(LOW, HIGH),
    "polytope": arm_sets.polytope(*cut_box(np.random.default_rng(5), 3, 6)),
    "pyramid": arm_sets.polytope(*PYRAMID),  # four constraints meet in its tip
    "simplex": arm_sets.polytope(*simplex(3)),
}
every_set = pytest.mark.parametrize("arms", ARM_SETS.values(), ids=ARM_SETS)
DIRECTIONS = np.random.default_rng(1).normal(size=(200, 3))


def sample(arms, rng, count):
    """Points that fill the set, drawn without its maximizer: uniform in a ball or box, mixtures of vertices."""
    if arms.kind in ("ball", "ellipsoid"):
        points = rng.normal(size=(count, 3))
        points *= rng.random((count, 1)) ** (1 / 3) / np.linalg.norm(points, axis=1, keepdims=True)
        parameters = arms.parameters
        root = parameters["radius"] * np.eye(3) if arms.kind == "ball" else np.linalg.cholesky(parameters["shape"])
        return parameters["center"] + points @ root.T
    if arms.kind == "box":
        return rng.uniform(arms.parameters["low"], arms.parameters["high"], (count, 3))
    vertices = all_vertices(arms.parameters["A"], arms.parameters["b"])
    return rng.dirichlet(np.full(len(vertices), 0.3), count) @ vertices


@every_set
def test_maximizers_are_in_the_set_and_no_other_point_is_better(arms):
    best = arms.maximize(DIRECTIONS)
    assert best.shape == DIRECTIONS.shape
    assert all(arms.contains(x) for x in best)
    points = sample(arms, np.random.default_rng(0), 2000)
    assert all(arms.contains(x) for x in points)
    values = np.sum(best * DIRECTIONS, axis=1)
    assert np.all(points @ DIRECTIONS.T <= values + 1e-12 * np.abs(values).max())


@every_set
def test_a_step_beyond_the_maximizer_leaves_the_set(arms):
    best = arms.maximize(DIRECTIONS)
    beyond = best + 1e-6 * DIRECTIONS / np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)
    assert not any(arms.contains(x) for x in beyond)


@every_set
def test_only_the_direction_matters(arms):
    best = arms.maximize(DIRECTIONS)
    for length in (2.0**-1000, 0.5, 2.0**1000):
        assert_array_equal(arms.maximize(length * DIRECTIONS), best)
    for length in (1e-300, 1e-7, 3.0, 1e300):
        assert_allclose(arms.maximize(length * DIRECTIONS), best, rtol=1e-14, atol=1e-14)
    extreme = np.array([[1e308, -1e308, 1e308], [5e-324, -5e-324, 5e-324]])
    assert_array_equal(*arms.maximize(extreme))


@every_set
def test_rows_are_answered_one_by_one_and_again_the_same(arms):
    best = arms.maximize(DIRECTIONS)
    assert_array_equal(arms.maximize(DIRECTIONS), best)
    assert_array_equal(arms.maximize(DIRECTIONS[::-1])[::-1], best)
    alone = np.concatenate([arms.maximize(direction[None]) for direction in DIRECTIONS[:40]])
    assert_allclose(alone, best[:40], rtol=1e-15, atol=0 if arms.countable else 1e-15)
    if arms.countable:
        assert_array_equal(alone, best[:40])


@every_set
def test_no_direction_gives_a_point_of_the_set(arms):
    (point,) = arms.maximize(np.zeros((1, 3)))
    assert arms.contains(point)
    center = {"ball": CENTER, "ellipsoid": CENTER, "box": (LOW + HIGH) / 2}
    if arms.kind in center:
        assert_array_equal(point, center[arms.kind])


@every_set
def test_a_set_made_again_gives_the_same_bits(arms):
    assert all(value.dtype == np.float64 for value in arms.parameters.values())
    again = arm_sets.make(arms.kind, {name: value.copy() for name, value in arms.parameters.items()})
    assert (again.kind, again.n_features, again.countable) == (arms.kind, 3, arms.kind in ("box", "polytope"))
    for name, value in arms.parameters.items():
        assert_array_equal(again.parameters[name], value)
    assert_array_equal(again.maximize(DIRECTIONS), arms.maximize(DIRECTIONS))


def test_parameters_are_copies_that_cannot_change():
    low = LOW.copy()
    arms = arm_sets.box(low, HIGH)
    low[0] = -100.0
    assert_array_equal(arms.parameters["low"], LOW)
    for kept in ARM_SETS.values():
        assert not any(value.flags.writeable for value in kept.parameters.values())


def test_ball_in_closed_form():
    norms = np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)
    assert_allclose(ARM_SETS["ball"].maximize(DIRECTIONS), CENTER + 0.7 * DIRECTIONS / norms, rtol=1e-14)


def test_ellipsoid_in_closed_form():
    lengths = np.sqrt(np.sum(DIRECTIONS @ SHAPE * DIRECTIONS, axis=1, keepdims=True))
    best = CENTER + DIRECTIONS @ SHAPE / lengths
    assert_allclose(ARM_SETS["ellipsoid"].maximize(DIRECTIONS), best, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("direction", DIRECTIONS[:3])
def test_ellipsoid_against_a_general_optimizer(direction):
    inverse = np.linalg.inv(SHAPE)
    inside = {"type": "ineq", "fun": lambda x: 1 - (x - CENTER) @ inverse @ (x - CENTER)}
    found = scipy.optimize.minimize(
        lambda x: -x @ direction, CENTER, method="SLSQP", constraints=[inside], options={"ftol": 1e-14}
    )
    assert_allclose(ARM_SETS["ellipsoid"].maximize(direction[None])[0], found.x, rtol=1e-5, atol=1e-5)


@MODEST
@given(seed=SEEDS, features=st.integers(1, 6), exponent=st.integers(-100, 100))
def test_a_ball_is_an_ellipsoid_with_equal_axes(seed, features, exponent):
    rng = np.random.default_rng(seed)
    center, radius, directions = rng.normal(size=features), 10.0**exponent, rng.normal(size=(10, features))
    center *= radius
    first, second = arm_sets.ball(center, radius), arm_sets.ellipsoid(center, radius**2 * np.eye(features))
    assert_allclose(first.maximize(directions), second.maximize(directions), rtol=1e-13, atol=1e-13 * radius)


@MODEST
@given(seed=SEEDS, features=st.integers(1, 6), spread=st.floats(0, 60))
def test_ellipsoids_whose_features_have_different_units(seed, features, spread):
    """With x = Dz the ellipsoid is D times that of z, and its maximizer for θ is D times the one of z for Dθ."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(features, features)) + 2 * np.eye(features)
    units = 10.0 ** rng.uniform(-spread, spread, features)
    center, directions = rng.normal(size=features), rng.normal(size=(10, features))
    plain = arm_sets.ellipsoid(center, root @ root.T)
    other = arm_sets.ellipsoid(units * center, (root @ root.T) * np.outer(units, units))
    best = plain.maximize(directions)
    assert_allclose(other.maximize(directions / units) / units, best, rtol=1e-8, atol=1e-8)
    assert all(other.contains(units * x) for x in best)
    assert not any(other.contains(units * (center + 1.001 * (x - center))) for x in best)


@MODEST
@given(seed=SEEDS, features=st.integers(1, 5))
def test_a_box_is_a_polytope(seed, features):
    rng = np.random.default_rng(seed)
    low = rng.normal(size=features) * 10.0 ** rng.uniform(-3, 3, features)
    high = low + rng.exponential(size=features)
    first, second = arm_sets.box(low, high), arm_sets.polytope(*as_halfspaces(low, high))
    directions = rng.choice([-1.0, 1.0], (20, features)) * rng.uniform(0.1, 1.0, (20, features))
    corners = first.maximize(directions)
    assert np.all((corners == low) | (corners == high))
    assert_allclose(second.maximize(directions), corners, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("direction", "best"), [([0.0, 1.0, -1.0], [-0.25, 0.3, 2.0]), ([-1.0, -0.0, 0.0], [-1, 0.2, 2])]
)
def test_a_box_where_a_coordinate_does_not_matter_gives_its_middle(direction, best):
    assert_allclose(ARM_SETS["box"].maximize([direction])[0], best, rtol=1e-15)


def test_a_box_looks_at_the_sign_of_very_different_numbers():
    assert_array_equal(arm_sets.box([-1.0, -1.0], [1.0, 1.0]).maximize([[1e300, -1e-300]]), [[1.0, -1.0]])


@MODEST
@given(seed=SEEDS, features=st.integers(1, 3), cuts=st.integers(0, 6))
def test_polytopes_against_all_their_vertices(seed, features, cuts):
    rng = np.random.default_rng(seed)
    A, b = cut_box(rng, features, cuts)
    vertices, directions = all_vertices(A, b), rng.normal(size=(20, features))
    best = arm_sets.polytope(A, b).maximize(directions)
    assert_allclose(np.sum(best * directions, axis=1), np.max(directions @ vertices.T, axis=1), rtol=1e-9, atol=1e-9)
    distances = np.linalg.norm(best[:, None] - vertices, axis=2)
    assert np.max(np.min(distances, axis=1)) < 1e-9


@MODEST
@given(seed=SEEDS, size=st.integers(-250, 250), far=st.integers(0, 12), spread=st.floats(0, 3))
def test_polytopes_of_any_size_and_units(seed, size, far, spread):
    """Other units, other scales of the constraints, and constraints that are far away change nothing."""
    rng = np.random.default_rng(seed)
    A, b = cut_box(rng, 3, 4)
    directions = rng.normal(size=(10, 3))
    units, lengths = 10.0 ** (size + rng.uniform(-spread, spread, 3)), 10.0 ** rng.uniform(-40, 40, len(A) + 1)
    A_far, b_far = np.vstack([A, rng.normal(size=3)]), np.append(b, 10.0 ** (far + 2))
    other = arm_sets.polytope(A_far / units * lengths[:, None], b_far * lengths)
    assert_allclose(
        other.maximize(directions / units) / units, arm_sets.polytope(A, b).maximize(directions), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(
    ("halfspaces", "vertices"),
    [
        (simplex(4), np.eye(4)),
        (PYRAMID, [[-1, -1, 0], [-1, 1, 0], [0, 0, 1], [1, -1, 0], [1, 1, 0]]),
        (as_halfspaces([0.0, 1.0, -1.0], [0.0, 1.0, 1.0]), [[0, 1, -1], [0, 1, 1]]),  # an edge: two features constant
        (as_halfspaces([2.0, 3.0], [2.0, 3.0]), [[2, 3]]),
        (
            (
                np.kron([[1, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]], [[1], [-1]]),
                [0.3, -0.3, 0.1, -0.1, 0.2, -0.2, 1, 0],
            ),
            [[0.2, 0.1, 0.0], [0.2, 0.1, 1.0]],  # in float64 the three equalities contradict each other
        ),
        ((np.vstack([np.eye(2), -np.eye(2), np.zeros((1, 2))]), [1, 1, 0, 0, 0]), [[0, 0], [0, 1], [1, 0], [1, 1]]),
        ((np.array(list(itertools.product([-1, 1], repeat=3))), np.ones(8)), np.vstack([np.eye(3), -np.eye(3)])),
    ],
    ids=["simplex", "pyramid", "edge", "point", "equalities", "empty row", "octahedron"],
)
def test_equal_vertices_have_equal_bits(halfspaces, vertices):
    arms = arm_sets.polytope(*halfspaces)
    directions = np.random.default_rng(2).normal(size=(300, arms.n_features))
    best = arms.maximize(directions)
    assert len(np.unique(best, axis=0)) == len(vertices)
    nearest = np.argmax(directions @ np.transpose(vertices), axis=1)
    assert_allclose(best, np.asarray(vertices, float)[nearest], atol=1e-15)
    assert all(arms.contains(vertex) for vertex in vertices)


def test_features_of_different_units_around_large_numbers():
    units, offset = np.array([1e-2, 1.0, 1e3]), np.array([10.0, 1e5, -1e4])
    A, b = cut_box(np.random.default_rng(3), 3, 8)
    best = arm_sets.polytope(A, b).maximize(DIRECTIONS)
    other = arm_sets.polytope(A / units, b + A / units @ offset)
    assert_allclose((other.maximize(DIRECTIONS / units) - offset) / units, best, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("size", [1e-150, 1e150])
@pytest.mark.parametrize("length", [1e-300, 1e300])
def test_sets_and_directions_may_both_be_huge_or_tiny(size, length):
    directions = length * DIRECTIONS[:20]
    for small, large in (
        (arm_sets.ball(CENTER, 0.7), arm_sets.ball(size * CENTER, size * 0.7)),
        (arm_sets.ellipsoid(CENTER, SHAPE), arm_sets.ellipsoid(size * CENTER, size**2 * SHAPE)),
        (arm_sets.box(LOW, HIGH), arm_sets.box(size * LOW, size * HIGH)),
        (arm_sets.polytope(*PYRAMID), arm_sets.polytope(PYRAMID[0], size * PYRAMID[1])),
        (arm_sets.polytope(*PYRAMID), arm_sets.polytope(PYRAMID[0] / size, PYRAMID[1])),
    ):
        best = large.maximize(directions)
        assert_allclose(best / size, small.maximize(directions), rtol=1e-12, atol=1e-12)
        assert all(large.contains(x) for x in best)
        assert not large.contains(2 * best[0] - large.maximize(-directions[:1])[0])


def test_only_a_polytope_needs_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert arm_sets.make("box", {"low": LOW, "high": HIGH}).contains(LOW)
    with pytest.raises(ImportError, match=r"^A polytope of arms needs scipy\.optimize\. .* 'explorax\[agent\]'\."):
        arm_sets.polytope(*PYRAMID)


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e7])
def test_sets_far_from_the_origin_contain_their_maximizers(offset):
    A, b = as_halfspaces(LOW, HIGH)
    for arms in (
        arm_sets.ball(offset + CENTER, 0.7),
        arm_sets.ellipsoid(offset + CENTER, SHAPE),
        arm_sets.box(offset + LOW, offset + HIGH),
        arm_sets.polytope(A, b + A @ np.full(3, offset)),
    ):
        assert all(arms.contains(x) for x in arms.maximize(DIRECTIONS))
        assert not arms.contains(np.full(3, 1.001 * offset + 10))


def test_points_so_far_away_that_differences_overflow_are_outside():
    for arms in ARM_SETS.values():
        assert arms.contains(np.full(3, -1.7e308)) is False
    assert not arm_sets.ball([8e307], 1.0).contains([-1.7e308])


@pytest.mark.parametrize(
    ("maker", "arguments", "error", "words"),
    [
        (arm_sets.ball, (1.0, 1.0), errors.InvalidShape, r"center must have shape \(at least 1,\), got \(\)\. Give"),
        (arm_sets.ball, ([], 1.0), errors.InvalidShape, r"center must have shape \(at least 1,\), got \(0,\)"),
        (arm_sets.ball, ([0.0, np.nan], 1.0), errors.InvalidFeatures, "center must be finite, got NaN or infinity"),
        (arm_sets.ball, ("here", 1.0), errors.InvalidFeatures, "center must be an array of numbers, got 'here'"),
        (arm_sets.ball, ([1.0, [2.0]], 1.0), errors.InvalidFeatures, "center must be an array of numbers, got"),
        (arm_sets.ball, ([1.0 + 2.0j], 1.0), errors.InvalidFeatures, "center must be an array of numbers, got"),
        (arm_sets.ball, ([10**400], 1.0), errors.InvalidFeatures, "center must be an array of numbers, got"),
        (arm_sets.ball, ([0.0], 0.0), errors.InvalidArgument, "radius must be a finite number above 0, got 0.0"),
        (arm_sets.ball, ([0.0], -1), errors.InvalidArgument, "radius must be a finite number above 0, got -1"),
        (arm_sets.ball, ([0.0], np.inf), errors.InvalidArgument, "radius must be a finite number above 0, got inf"),
        (arm_sets.ball, ([0.0], "wide"), errors.InvalidArgument, "radius must be a finite number above 0, got 'wide'"),
        (
            arm_sets.ball,
            ([0.0], np.ones(2)),
            errors.InvalidArgument,
            "radius must be a finite number above 0, got an array of shape",
        ),
        (
            arm_sets.ball,
            ([1e308], 1e308),
            errors.InvalidArgument,
            "The ball reaches too far for float64. Scale it",
        ),
        (
            arm_sets.ellipsoid,
            ([0.0, 0.0], np.eye(3)),
            errors.InvalidShape,
            r"shape must have shape \(2, 2\), got \(3, 3\)",
        ),
        (arm_sets.ellipsoid, ([0.0], [[np.inf]]), errors.InvalidFeatures, "shape must be finite, got NaN or infinity"),
        (
            arm_sets.ellipsoid,
            ([0, 0], [[1, 0.5], [0, 1]]),
            errors.InvalidArgument,
            r"shape must be symmetric, got shape\[0, 1\] = 0.5 and",
        ),
        (
            arm_sets.ellipsoid,
            ([0, 0], [[1, 0], [0, -2]]),
            errors.InvalidArgument,
            r"definite, got shape\[1, 1\] = -2.0",
        ),
        (arm_sets.ellipsoid, ([0, 0], [[1, 2], [2, 1]]), errors.InvalidArgument, "smallest eigenvalue of -1 .* flat"),
        (
            arm_sets.ellipsoid,
            ([0, 0], [[1, 1], [1, 1]]),
            errors.InvalidArgument,
            "shape must be positive definite, got",
        ),
        (
            arm_sets.ellipsoid,
            ([0, 0], [[1e-300, 1e300], [1e300, 1e-300]]),
            errors.InvalidArgument,
            "shape must be positive definite, got",
        ),
        (arm_sets.box, ([0.0, 2.0], [1.0, 1.0]), errors.InvalidArgument, r"got low\[1\] = 2.0 and high\[1\] = 1.0"),
        (arm_sets.box, ([0.0, 2.0], [1.0]), errors.InvalidShape, r"high must have shape \(2,\), got \(1,\)"),
        (
            arm_sets.box,
            ([0.0], [np.inf]),
            errors.InvalidFeatures,
            "high must be finite, got NaN or infinity. Give finite",
        ),
        (arm_sets.box, ([[0.0]], [[1.0]]), errors.InvalidShape, r"low must have shape \(at least 1,\), got \(1, 1\)"),
        (
            arm_sets.polytope,
            ([1.0], [1.0]),
            errors.InvalidShape,
            r"A must have shape \(at least 1, at least 1\), got \(1,\)",
        ),
        (arm_sets.polytope, (np.zeros((0, 2)), []), errors.InvalidShape, r"A must have shape .*, got \(0, 2\)"),
        (arm_sets.polytope, (np.eye(2), [1.0]), errors.InvalidShape, r"b must have shape \(2,\), got \(1,\)"),
        (
            arm_sets.polytope,
            (np.eye(2), [1.0, np.inf]),
            errors.InvalidFeatures,
            "b must be finite, got NaN or infinity",
        ),
        (
            arm_sets.polytope,
            (np.full((2, 2), np.nan), [1, 1]),
            errors.InvalidFeatures,
            "A must be finite, got NaN or infinity",
        ),
        (
            arm_sets.polytope,
            (np.eye(2), [1.0, 1.0]),
            errors.InvalidArgument,
            r"let x\[0\] be arbitrarily small\. Add bounds",
        ),
        (
            arm_sets.polytope,
            ([[-1, 0], [0, 1], [0, -1]], [0, 1, 1]),
            errors.InvalidArgument,
            r"x\[0\] be arbitrarily large",
        ),
        (arm_sets.polytope, ([[1, -1], [-1, 1]], [0, 0]), errors.InvalidArgument, r"x\[0\] be arbitrarily small"),
        (arm_sets.polytope, ([[0.0, 0.0]], [1.0]), errors.InvalidArgument, r"x\[0\] be arbitrarily small"),
        (arm_sets.polytope, ([[1.0], [-1.0]], [1.0, -2.0]), errors.InvalidArgument, "No x satisfies Ax ≤ b: .* empty"),
        (
            arm_sets.polytope,
            ([[1, 0], [-1, 0]], [1.0, -2.0]),
            errors.InvalidArgument,
            "No x satisfies Ax ≤ b: .* empty",
        ),
        (
            arm_sets.polytope,
            ([[1.0], [-1.0], [0.0]], [1, 1, -1]),
            errors.InvalidArgument,
            "No x satisfies Ax ≤ b: .* empty",
        ),
        (
            arm_sets.polytope,
            ([[1.0], [-1.0]], [1e308, 1e308]),
            errors.InvalidArgument,
            "Ax ≤ b reaches too far for float64. Scale b",
        ),
        (
            arm_sets.polytope,
            ([[1.0], [-1.0]], [0.0, 0.0]),
            errors.InvalidArgument,
            "too small compared with b, or is x = 0 alone",
        ),
        (
            arm_sets.polytope,
            as_halfspaces([0.0, 0.0], [1e10, 1.0]),
            errors.InvalidArgument,
            r"x\[1\] vary by 0.5 only, in a polytope that reaches to 1e\+10\. Measure features in",
        ),
        (
            arm_sets.make,
            ("bal", {}),
            errors.UnknownName,
            "kind of arm set must be one of .*, got 'bal'. Did you mean 'ball'",
        ),
        (arm_sets.make, (3, {}), errors.UnknownName, "kind of arm set must be one of .*, got 3"),
        (arm_sets.make, ("ball", {"centre": [0.0]}), errors.UnknownName, "got 'centre'. Did you mean 'center'"),
        (
            arm_sets.make,
            ("ball", {"center": [0.0]}),
            errors.InvalidArgument,
            "must have center, radius for a set of kind 'ball', got center. Add radius",
        ),
    ],
)
def test_nonsense_is_refused(maker, arguments, error, words):
    with pytest.raises(error, match=words):
        maker(*arguments)


@every_set
@pytest.mark.parametrize(
    ("directions", "error", "words"),
    [
        (np.zeros(3), errors.InvalidShape, r"directions must have shape \(at least 1, 3\), got \(3,\)"),
        (np.zeros((2, 4)), errors.InvalidShape, r"directions must have shape \(at least 1, 3\), got \(2, 4\)"),
        (np.full((2, 3), np.nan), errors.InvalidFeatures, "directions must be finite, got NaN or infinity"),
        (np.full((2, 3), np.inf), errors.InvalidFeatures, "directions must be finite, got NaN or infinity"),
        ("up", errors.InvalidFeatures, "directions must be an array of numbers, got 'up'"),
    ],
)
def test_nonsense_directions_are_refused(arms, directions, error, words):
    with pytest.raises(error, match=words):
        arms.maximize(directions)


@every_set
@pytest.mark.parametrize(
    ("x", "error"),
    [(np.zeros(2), errors.InvalidShape), ([0, 0, np.nan], errors.InvalidFeatures), (None, errors.InvalidShape)],
)
def test_nonsense_points_are_refused(arms, x, error):
    with pytest.raises(error, match=r"^x "):
        arms.contains(x)
