"""The line search against SciPy; the step and the loop by their rules, and with each curvature against SciPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from explorax.glm import families, kernel, newton, warm
from explorax.glm.ball import LEAST_RIDGE, fit_on_ball
from explorax.glm.fit import default_tolerance, fit
from explorax.glm.linalg import factorize
from explorax.glm.newton import FULL_STEP, Aim, Line, Method, begin, descend, line, newton_length, patiently, search
from explorax.glm.problem import ByRow, Problem, gradient, hessian, loss, posed
from tests.problems import FAMILIES, random_history, scipys

RIDGE, FEATURES = 0.5, 4
CURVED = tuple(family for family in FAMILIES if families.get(family).self_concordance > 0)
MEANS = {"bernoulli": lambda score: 1 / (1 + np.exp(-score)), "poisson": np.exp}
BRACKET = {"float64": 1e-9, "float32": 1e-3}  # what rounding of the derivative does to the place of its root
BOTH = pytest.mark.parametrize("closely", [True, False])
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])


@pytest.fixture(scope="module")
def some_lines():
    """Newton directions from places near and far: in every family with their lines and the root of the derivative."""
    return {(family, dtype): list(lines(family, dtype)) for family in CURVED for dtype in ("float64", "float32")}


def lines(family, dtype):
    rng, glm = np.random.default_rng(0), families.get(family)
    for distance in (0.5, 2.0, 6.0):
        for pulls in (1, 50):
            history = random_history(rng, family, pulls=pulls)
            problem = posed(history, ridge=RIDGE, tilt=jnp.asarray(rng.normal(size=FEATURES)))
            theta = jnp.asarray(distance * rng.normal(size=FEATURES))
            direction = -jnp.linalg.solve(hessian(glm, problem, theta), gradient(glm, problem, theta))
            moves = problem.rows.scores(direction)
            along = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), line(problem, begin(theta), direction, moves))
            reach = jnp.asarray(problem.largest(moves), dtype)

            def derivative(length, problem=problem, theta=theta, direction=direction):
                return float(gradient(glm, problem, theta + length * direction) @ direction)

            high = 1.0
            while derivative(high) < 0:
                high *= 2
            yield along, reach, optimize.brentq(derivative, 0, high, xtol=1e-14)


@BOTH
@DTYPES
@pytest.mark.parametrize("family", CURVED)
def test_the_search_ends_before_the_minimum_and_near_it(family, dtype, closely, some_lines):
    find = jax.jit(partial(search, families.get(family), closely=closely))
    lengths = []
    for along, reach, best in some_lines[family, dtype]:
        length, safe = float(find(along, reach)), np.log1p(float(reach)) / float(reach)
        assert safe * (1 - 1e-6) <= length <= best * (1 + BRACKET[dtype])
        # Few trials halve what is between the safe step and 1, or four and 64 of them, to within a factor of 1.5.
        assert length >= best / (1.01 if closely else 1.5) * (1 - BRACKET[dtype])
        lengths.append(best)
    assert min(lengths) < 0.9  # both sides of a full step occur
    assert max(lengths) > 1.1


@BOTH
@DTYPES
@pytest.mark.parametrize("best", [0.05, 0.5, 3.0, 50.0, 1e4, 1e12])
def test_the_search_finds_minima_however_far(best, dtype, closely):
    # One Poisson row, whose score falls by 5 up to the minimum: there e^{−5} m is the slope of all the rest.
    move = -5 / best
    one = Line(*(jnp.asarray(value, dtype) for value in ([1.0], [0.0], [move], -move * np.exp(-5), 0.0)))
    found = float(search(families.poisson, one, jnp.asarray(-move, dtype), closely=closely))
    assert found <= best * (1 + BRACKET[dtype])
    if closely:
        assert found >= best / 1.01 * (1 - BRACKET[dtype])
    elif best < 64:
        assert found >= best / 1.5
    else:
        assert found >= 64  # the next step goes on from there


@BOTH
@DTYPES
@pytest.mark.parametrize("family", FAMILIES)
def test_short_steps_are_taken_in_full(family, dtype, closely, some_lines):
    along, _, _ = some_lines["bernoulli", dtype][0]
    find = jax.jit(partial(newton_length, families.get(family), closely=closely))
    for reach in (0.0, 1e-30, FULL_STEP):
        assert find(along, jnp.asarray(reach, dtype)) == 1
    if family == "gaussian":  # whose steps are exact, however long
        assert find(along, jnp.asarray(1e6, dtype)) == 1


@pytest.mark.parametrize("size", [3, 20])
def test_in_a_batch_the_search_is_that_of_each_alone(size, some_lines):
    # Some of a batch need none, and one of them has a reach of zero; small batches do the same for all.
    pairs = [(along, reach) for along, reach, _ in some_lines["bernoulli", "float64"]] * 4
    pairs = [(along, reach * (i % 3) / 2) for i, (along, reach) in enumerate(pairs[:size])]
    find = partial(newton_length, families.bernoulli, closely=True)
    together = jax.jit(jax.vmap(find))(*jax.tree.map(lambda *parts: jnp.stack(parts), *pairs))
    np.testing.assert_allclose(together, [find(*pair) for pair in pairs], rtol=1e-12)
    assert 0 < np.sum(together == 1) < size


def with_factor(glm, problem, closely=True, tolerance=1e-8, **changes):
    """Newton's method with a factor of the curvature at every place."""

    def aim(now):
        direction = -factorize(hessian(glm, problem, now.theta)).solve(gradient(glm, problem, now.theta))
        return Aim(direction, jnp.isfinite(jnp.sum(direction)))

    method = Method(aim, partial(newton_length, glm, closely=closely), newton.whole, tolerance)
    return jax.jit(partial(newton.step, problem, method._replace(**changes)))


@BOTH
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_goes_down_from_any_start(family, closely):
    rng, glm = np.random.default_rng(1), families.get(family)
    problem = posed(random_history(rng, family), ridge=RIDGE, tilt=jnp.asarray(30 * rng.normal(size=FEATURES)))
    step = with_factor(glm, problem, closely)
    damped = 0
    for start in 8 * rng.normal(size=(4, FEATURES)):
        now = begin(jnp.asarray(start))
        for _ in range(100):
            after = step(now)
            before, then = (float(loss(glm, problem, place.theta)) for place in (now, after))
            assert then <= before + 1e-12 * abs(before)
            rounding = 4 * np.finfo(float).eps * np.abs(now.theta).max()  # where the step nearly cancels θ
            np.testing.assert_allclose(after.theta, now.theta + after.step, rtol=1e-14, atol=rounding)
            damped += after.length != 1
            now = after
            if now.converged:
                break
        assert now.converged
        assert now.length == 1
        np.testing.assert_allclose(gradient(glm, problem, now.theta), 0, atol=1e-6)
    assert (damped > 0) == (family != "gaussian")


def test_scores_may_be_carried_along():
    rng, glm = np.random.default_rng(2), families.bernoulli
    problem = posed(random_history(rng, "bernoulli"), ridge=RIDGE)
    step, theta = with_factor(glm, problem), jnp.asarray(3 * rng.normal(size=FEATURES))
    anew, carried = begin(theta), begin(theta, problem.rows.scores(theta))
    for _ in range(4):
        anew, carried = step(anew), step(carried)
        assert anew.scores is None
        np.testing.assert_allclose(carried.theta, anew.theta, rtol=1e-12)
        np.testing.assert_allclose(carried.scores, anew.scores_of(problem), rtol=1e-12)


def toy(direction, **changes):
    """A step along the same direction again and again, on a Gaussian problem with two rows."""
    problem = Problem(ByRow(jnp.eye(2)), jnp.ones(2), jnp.zeros(2), jnp.zeros(2), RIDGE)
    aim = Aim(jnp.asarray(direction), jnp.all(jnp.isfinite(jnp.asarray(direction))), note=jnp.asarray(7.0))
    method = Method(lambda now: aim, lambda line, reach: jnp.ones_like(reach), newton.whole, 1e-3)
    return partial(newton.step, problem, method._replace(**changes))


def start():
    return begin(jnp.asarray([1.0, 2.0]), jnp.asarray([1.0, 2.0]), note=jnp.asarray(0.0))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_step_that_is_not_finite_is_not_taken_and_ends_the_descent(value):
    end = descend(toy([value, 1e-9]), start(), 100)
    assert end.lost
    assert not end.converged
    assert (end.steps, end.length) == (1, 0)
    np.testing.assert_array_equal(end.theta, [1, 2])
    np.testing.assert_array_equal(end.scores, [1, 2])
    np.testing.assert_array_equal(end.step, 0)
    again = patiently(toy([value, 1e-9]), start(), 100, 5, lambda now: jnp.asarray(False))
    assert (again.steps, bool(again.converged)) == (1, False)


def test_what_rests_stays():
    end = descend(toy([0.5, 0.5], rests=lambda now: now.steps >= 3), start(), 100)
    assert end.converged
    assert not end.lost
    assert (end.steps, end.length, end.reach, end.note) == (4, 0, 0.5, 7)
    np.testing.assert_allclose(end.theta, [2.5, 3.5])  # three steps, and none in the fourth
    # A step that is not finite does not matter there.
    assert descend(toy([np.nan, 0.5], rests=lambda now: now.steps >= 0), start(), 100).converged


def test_only_a_full_step_is_the_last():
    half = toy([1e-4, 0.0], length=lambda line, reach: jnp.full_like(reach, 0.5))
    end = descend(half, start(), 10)
    assert not (end.converged | end.lost)
    assert end.steps == 10
    assert descend(toy([1e-4, 0.0]), start(), 10).steps == 1
    assert not descend(toy([2e-3, 0.0]), start(), 10).converged


def test_a_curvature_that_is_off_leaves_more():
    reach = jnp.asarray(0.1)
    left = [newton.left_over(families.bernoulli, Aim(None, None, off), reach) for off in (0.0, 0.2, 9.0)]
    np.testing.assert_allclose(left, [0.01, 0.03, 0.1], rtol=1e-12)
    assert newton.left_over(families.gaussian, Aim(None, None), reach) == 0
    assert newton.kept_length(families.poisson, None, jnp.asarray(8.0)) == 0.5
    assert newton.kept_length(families.poisson, None, jnp.asarray(4.0)) == 1


def test_patience_asks_once_in_a_while():
    end = patiently(toy([1.0, 0.0]), start(), 100, 5, lambda now: now.steps >= 8)
    assert end.converged
    assert end.steps == 10
    assert np.all(np.isinf(end.step))  # steps did not get small
    end = patiently(toy([1.0, 0.0]), start(), 12, 5, lambda now: jnp.asarray(False))
    assert not end.converged
    assert end.steps >= 12
    end = patiently(toy([1e-4, 0.0]), start(), 100, 5, lambda now: jnp.asarray(False))
    assert (bool(end.converged), int(end.steps)) == (True, 1)
    np.testing.assert_allclose(end.step, [1e-4, 0])


def with_a_factor_at_every_place(family, history, tilt, start, tolerance):
    return fit(family, history, ridge=RIDGE, tilt=tilt, start=start)


def with_a_kept_root(family, history, tilt, start, tolerance):
    kept = warm.afresh(families.get(family), history, start, jnp.asarray(RIDGE, start.dtype))
    problem = kept.posed(history, ridge=jnp.asarray(RIDGE, start.dtype), tilt=tilt)
    return warm.descend(families.get(family), kept, problem, start, tolerance)


def with_a_root_at_every_place(family, history, tilt, start, tolerance):
    kept = warm.start(history.features, jnp.asarray(RIDGE, start.dtype))
    problem, nothing = kept.posed(history, ridge=jnp.asarray(RIDGE, start.dtype), tilt=tilt), jnp.zeros((), int)
    near = kernel.Descent(start, start @ kept.columns, nothing, jnp.asarray(False), start)
    return warm.newton_steps(families.get(family), tolerance, False, problem, near)


def with_elimination(family, history, tilt, start, tolerance):
    kept = warm.afresh(families.get(family), history, start, jnp.asarray(RIDGE, start.dtype))
    problem = kept.posed(history, ridge=jnp.asarray(RIDGE, start.dtype), tilt=tilt)
    place = kernel.Start(start, kept.scores, kept.root, jnp.zeros((), start.dtype))
    return kernel.descend(families.get(family), problem, place, tolerance, interpret=True)


def on_a_ball(family, history, tilt, start, tolerance):
    radius = jnp.asarray(100.0, start.dtype)
    return fit_on_ball(families.get(family), history, radius, start, default_tolerance(start.dtype))


CURVATURES = (with_a_factor_at_every_place, with_a_kept_root, with_a_root_at_every_place, with_elimination, on_a_ball)


@DTYPES
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("curvature", CURVATURES)
def test_each_curvature_leads_to_the_minimum(curvature, family, dtype):
    rng, problems = np.random.default_rng(3), []
    ball = curvature is on_a_ball  # which has neither a tilt nor a ridge to speak of
    for pulls, far in ((2, 1.0), (20, 2.0), (300, 2.0)):
        history = random_history(rng, family, pulls=20 if ball else pulls)
        tilt = jnp.asarray((0 if ball else pulls**0.5) * rng.normal(size=FEATURES))
        problems.append((history, tilt, jnp.asarray(far * rng.normal(size=FEATURES))))
    batch = jax.tree.map(lambda *parts: jnp.stack(parts).astype(dtype), *problems)
    solve = partial(curvature, family, tolerance=float(jnp.finfo(dtype).eps) ** (2 / 3))
    found = jax.jit(jax.vmap(solve))(*batch)
    assert found.theta.dtype == dtype
    assert np.all(found.converged)
    for i, (history, tilt, _) in enumerate(problems):
        wanted = scipys(family, posed(history, ridge=LEAST_RIDGE if ball else RIDGE, tilt=tilt), FEATURES)
        slack = {"float64": 1e-8, "float32": 2e-4}[dtype] * (1 + np.max(np.abs(wanted)))
        np.testing.assert_allclose(found.theta[i], wanted, rtol=0, atol=slack)
