"""ECOLog-TS: Thompson sampling around an implicit online estimate, at a cost that never grows.

    θ_{t+1} = argmin_{θ ∈ Θ} ½ ‖θ − θ_t‖²_{W_t} + b(xᵀθ) − y xᵀθ,    W_{t+1} = W_t + μ̇(xᵀθ_{t+1}) x xᵀ,    W_0 = λI
    θ̃ ~ N(θ_t, a² W_t⁻¹),    pull argmax_i x_iᵀθ̃

    a   `scale`    1 unless given; for Gaussian rewards with noise σ, σ is the posterior's
    Θ   `radius`   the ball ‖θ‖ ≤ S if a radius S is given, else all of R^d

Each reward costs O(d²) (`glm.memory.summary` has the step), and O(d³) where the ball matters; no reward is kept.  With
Θ = R^d this is GLM-TSL with memory="constant".

What is ours: the paper's step has ‖θ − θ_t‖²_W / (2 + D) in place of ½ ‖θ − θ_t‖²_W, with D the diameter of Θ in
scores, max_x max_{θ, θ' ∈ Θ} |xᵀ(θ − θ')|.  The ½ is its limit for a small Θ, and what the authors' code minimizes.
(We know the 2 + D from the size of that code's gradient steps, and have not seen it in print.)  The paper makes Θ
small, by a warm-up or from data as they come; here Θ is a ball that stays.  The step is solved to rounding, where their
code stops at an error of 1/t.  The paper is about logistic rewards; the step is the same in every family.  Its
confidence widths are left out, since they belong to its Θ and its step.

Reference: Faury, Abeille, Jun & Calauzènes, Jointly Efficient and Optimal Algorithms for Logistic Bandits,
AISTATS 2022.
"""

from functools import partial
from typing import NamedTuple, Unpack

import jax.numpy as jnp
from jax import Array

from explorax.batching import where_needed
from explorax.checks import check_positive
from explorax.glm.ball import bring_inside, of_root
from explorax.glm.families import Family
from explorax.glm.memory.base import Estimator
from explorax.glm.memory.summary import Summary
from explorax.glm.proximal import residual_after
from explorax.policies import exploration, glm_model
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel, GLMState, Rule
from explorax.policies.glm_tsl import sample
from explorax.policies.settings import OnlineSettings


class Numbers(NamedTuple):
    """How much ECOLog-TS and ECOLog-OFU explore, and where their estimate may lie."""

    amount: float | Array  # a of ECOLog-TS, β of ECOLog-OFU
    radius: float | Array | None  # of the ball that θ stays in; None where there is none


State = GLMState[Summary, Numbers]


def ecolog_ts(*, scale: float = 1.0, radius: float | None = None, **settings: Unpack[OnlineSettings]) -> Policy:
    """Build ECOLog-TS."""
    check_positive("scale", scale, "Use 'greedy' for a policy that does not explore.")
    return implicit(sampled_scores, scale, radius, settings)


def sampled_scores(estimator: Estimator, key: Array, state: State, arms: Array) -> tuple[Array, Array]:
    """Return x_iᵀθ̃ for a draw θ̃ ~ N(θ, a² W⁻¹)."""
    return arms @ sample(key, state.theta_hat, state.memory.root, state.numbers.amount), state.converged


def implicit(rule: Rule, amount: float, radius: float | None, settings: OnlineSettings) -> Policy:
    """Return the policy of a rule on top of the implicit estimate, in a ball if a radius is given."""
    exploration.check_kind(settings.get("warmup", "basis"), has_theory=False)
    model = GLMModel(memory="constant", **settings)
    if radius is not None:
        check_positive("radius", radius)
    return model.policy(rule, lambda arms: Numbers(amount, radius), learn=learn)


def learn(estimator: Estimator, state: State, arm: Array, x: Array, reward: Array) -> State:
    """Make the proximal step; where it ends outside the ball, the one that minimizes the same function inside."""
    free: State = glm_model.learn(estimator, state, arm, x, reward)
    radius = state.numbers.radius
    if radius is None:
        return free
    outside = jnp.linalg.norm(free.theta_hat) > radius
    given = state.memory, x, reward, radius, state.ridge
    step = partial(step_in_ball, estimator.family)
    theta, root = where_needed(outside, step, given, (free.theta_hat, free.memory.root))
    return free._replace(memory=free.memory._replace(theta_hat=theta, root=root))


def step_in_ball(
    family: Family, before: Summary, x: Array, reward: Array, radius: Array, ridge: Array
) -> tuple[Array, Array]:
    """Return θ_{t+1}, and the root of W_{t+1}⁻¹.

    A multiplier ν of the ball's constraint takes W to W + νI and θ_t to (W + νI)⁻¹Wθ_t, after which the minimum lies
    on a line as it does without the constraint.
    """
    before = before.faded(ridge)
    theta, root = before.theta_hat, before.root

    def path(multiplier: Array) -> tuple[Array, Array]:
        inverse = of_root(root, multiplier)
        center, line = theta - multiplier * inverse.solve(theta), inverse.solve(x)
        score, q = x @ center, x @ line
        pull = residual_after(family, score, q, reward)
        moved = center + pull * line
        weight = family.slope(score + pull * q)
        energy = jnp.sum(inverse.whiten(moved) ** 2)
        return moved, energy - weight * (line @ moved) ** 2 / (1 + weight * q)

    found = bring_inside(path, radius, jnp.zeros_like(theta[0])).theta
    pushed = jnp.sqrt(family.slope(x @ found)) * (x @ root)
    return found, before.grown(pushed, x).root
