"""ECOLog-TS: Thompson sampling around an online estimate, at a cost that does not grow with time.

Each reward moves the estimate by one implicit (proximal) step, and decisions are made with a draw around the estimate:

    θ_{t+1} = argmin_{θ ∈ Θ} ½ ‖θ − θ_t‖²_{W_t} + b(xᵀθ) − y xᵀθ,    W_{t+1} = W_t + μ̇(xᵀθ_{t+1}) x xᵀ,    W_0 = λI
    θ̃ ~ N(θ_t, a² W_t⁻¹),    pull argmax_i x_iᵀθ̃

    a   `scale`    default: 1; for Gaussian rewards with noise σ, a = σ is the posterior's scale
    Θ   `radius`   the ball ‖θ‖ ≤ S if a radius S is given, otherwise all of R^d

A reward costs O(d²) (`glm.memory.summary` has the step), or O(d³) if the step ends outside the ball.  No reward is
kept.  With Θ = R^d the policy is GLM-TSL with memory="constant".

**Differences from the paper.**  The paper's step has ‖θ − θ_t‖²_W / (2 + D) in place of ½ ‖θ − θ_t‖²_W, where D is the
diameter of Θ in scores, max_x max_{θ, θ' ∈ Θ} |xᵀ(θ − θ')|.  The ½ is the limit for a small Θ, and what the authors'
code minimizes.  (We inferred the 2 + D from the size of that code's gradient steps, and have not seen it in print.)
The paper makes Θ small, by a warm-up or from the data; here Θ is a ball that stays the same.  The step is solved to
rounding error, whereas their code stops at an error of 1/t.  The paper is about logistic rewards; the step is the same
in every family.  The confidence widths of the paper are left out, since they belong to its Θ and its step.

Reference: Faury, Abeille, Jun & Calauzènes, Jointly Efficient and Optimal Algorithms for Logistic Bandits,
AISTATS 2022.
"""

from functools import partial
from typing import Annotated, NamedTuple, Unpack

import jax.numpy as jnp
from jax import Array

from explorax.batching import where_needed
from explorax.builders import Setting
from explorax.checks import check_positive
from explorax.glm.ball import bring_inside, of_root
from explorax.glm.families import Family
from explorax.glm.memory.base import Estimator
from explorax.glm.memory.summary import Summary
from explorax.glm.proximal import residual_after
from explorax.policies import exploration, glm_state
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel, Rule
from explorax.policies.glm_state import GLMState
from explorax.policies.glm_tsl import sample
from explorax.policies.settings import OnlineSettings


class Numbers(NamedTuple):
    """The numbers of ECOLog-TS and ECOLog-OFU.

    Attributes:
        amount: The scale a of ECOLog-TS, or the width β of ECOLog-OFU.
        radius: The radius of the ball that holds θ; None if θ is not constrained.
    """

    amount: float | Array
    radius: float | Array | None


State = GLMState[Summary, Numbers]
Radius = Annotated[
    float | None,
    Setting(None, "The radius S of the ball ‖θ‖ ≤ S to which the estimate is constrained.", "None, no constraint"),
]


def ecolog_ts(
    *,
    scale: Annotated[float, "How much to explore: the scale a of the draws, above 0."] = 1.0,
    radius: Radius = None,
    **settings: Unpack[OnlineSettings],
) -> Policy:
    """Build ECOLog-TS, Thompson sampling around an online estimate at a cost that does not grow with time."""
    check_positive("scale", scale, "Use 'greedy' for a policy that does not explore.")
    return implicit(sampled_scores, scale, radius, settings)


def sampled_scores(estimator: Estimator, key: Array, state: State, arms: Array) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̃ for a draw θ̃ ~ N(θ, a² W⁻¹), and whether the fit converged."""
    return arms @ sample(key, state.theta_hat, state.memory.root, state.numbers.amount), state.converged


def implicit(rule: Rule, amount: float, radius: float | None, settings: OnlineSettings) -> Policy:
    """Return the policy that plays a rule with the online estimate, in a ball if a radius is given."""
    exploration.check_kind(settings.get("warmup", "basis"), has_theory=False)
    model = GLMModel(memory="constant", **settings)
    if radius is not None:
        check_positive("radius", radius)
    return model.policy(rule, lambda arms: Numbers(amount, radius), learn=learn)


def learn(estimator: Estimator, state: State, arm: Array, x: Array, reward: Array) -> State:
    """Make the proximal step of a reward; if it ends outside the ball, minimize the same function inside the ball."""
    free: State = glm_state.learn(estimator, state, arm, x, reward)
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
    """Return the estimate θ_{t+1} in the ball, and the root of W_{t+1}⁻¹.

    A multiplier ν of the ball's constraint takes W to W + νI and θ_t to (W + νI)⁻¹Wθ_t.  After that the minimum lies on
    a line, as it does without the constraint.

    Args:
        family: The reward family.
        before: The memory before the reward.
        x: The (d,) features of the arm that was pulled.
        reward: The reward.
        radius: The radius of the ball.
        ridge: The ridge λ.

    Returns:
        The (d,) estimate, and the (d, d) root.
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
