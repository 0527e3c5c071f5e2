"""The best arm, next to NumPy's `argmax`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.policies.exploration import (
    Exploration,
    Over,
    after_forced_rounds,
    best,
    choose,
    first_equal,
    forced_rounds,
)

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("scores", "mask", "arm"),
    [
        ([1, 3, 3, 2], None, 1),
        ([-INF, -INF], None, 0),
        ([1, INF, INF], None, 1),
        ([1, NAN, 5, NAN], None, 1),
        ([9, 3, 3, 2], [False, True, True, True], 1),
        ([9, 1, -INF, -INF], [False, False, True, True], 2),
        ([9, 1, -1e300, -1e300], [False, False, True, True], 2),
        ([NAN, 1, 2], [False, True, True], 2),
        ([NAN, 1, NAN], [False, True, True], 2),
    ],
)
def test_the_first_of_the_largest_scores_on_offer(scores, mask, arm):
    scores, mask = jnp.asarray(scores, float), None if mask is None else jnp.asarray(mask)
    assert int(best(scores, mask)) == arm
    assert int(jax.jit(lambda doubled: best(doubled / 2, mask))(2 * scores)) == arm
    batch = jax.vmap(best, (0, None))(jnp.stack([scores, -scores]), mask)
    assert int(batch[0]) == arm


@pytest.mark.parametrize("count", [1, 5, 40])
def test_a_batch_of_scores_with_ties(count):
    """Batches go other ways than single scores: eight at a time, or all at once if they are few."""
    rng = np.random.default_rng(count)
    scores = rng.integers(0, 4, (count, 7)).astype(float)
    mask = rng.random((count, 7)) < 0.5
    mask[:, 3] = True
    np.testing.assert_array_equal(jax.vmap(best)(jnp.asarray(scores)), np.argmax(scores, 1))
    on_offer = np.where(mask, scores, -1)
    np.testing.assert_array_equal(jax.vmap(best)(jnp.asarray(scores), jnp.asarray(mask)), np.argmax(on_offer, 1))


@pytest.mark.parametrize("count", [1, 5, 40])
def test_a_largest_score_that_was_rounded_otherwise_costs_no_arm(count):
    """A program may compute scores twice; if the last bits differ, none of them equals the largest."""
    scores = np.random.default_rng(count).normal(size=(count, 6)).astype(np.float32)
    largest, everything = scores.max(1), jnp.ones(6, bool)
    largest[::2] = np.nextafter(largest[::2], np.float32(np.inf))
    np.testing.assert_array_equal(
        jax.vmap(first_equal, (0, 0, None))(jnp.asarray(scores), jnp.asarray(largest), everything), np.argmax(scores, 1)
    )
    assert int(first_equal(jnp.asarray(scores[0]), jnp.asarray(largest[0]), everything)) == np.argmax(scores[0])


def test_a_largest_score_that_was_rounded_otherwise_gives_no_arm_that_is_not_on_offer():
    scores, mask = jnp.array([3.0, -jnp.inf, 1.0, 2.0]), jnp.array([False, True, True, False])
    assert int(first_equal(scores, jnp.nextafter(scores[2], jnp.inf), mask)) == 2
    assert int(first_equal(scores, scores[0], mask & (scores == -jnp.inf))) == 1


def test_a_plan_whose_rounds_are_over_forces_no_arm():
    plan = Exploration(jnp.array([2, 0]), jnp.asarray(2), jnp.asarray(4))
    state = {"plan": plan, "another": plan._replace(rounds=jnp.asarray(7)), "scores": jnp.array([1.0, 3.0, 2.0])}
    assert forced_rounds(state) == 7
    assert forced_rounds(state["scores"]) == 0
    over = after_forced_rounds(state)
    assert over["plan"] == over["another"] == Over()
    np.testing.assert_array_equal(over["scores"], state["scores"])
    arms = jnp.zeros((3, 2))
    assert [int(choose(each, state["scores"], arms, 1)[0]) for each in (plan, over["plan"])] == [0, 1]
    mask = jnp.array([True, False, True])
    arm, forced = choose(over["plan"], state["scores"], arms, 1, mask)
    assert (int(arm), bool(forced)) == (2, False)
