"""ECOLog-TS: Thompson sampling around an implicit online estimate, at a cost that never grows.

    θ_{t+1} = argmin_{θ ∈ Θ} ½ ‖θ − θ_t‖²_{W_t} + b(xᵀθ) − y xᵀθ,    W_{t+1} = W_t + μ̇(xᵀθ_{t+1}) x xᵀ,    W_0 = λI
    θ̃ ~ N(θ_t, a² W_t⁻¹),    pull argmax_i x_iᵀθ̃

    a   `scale`    1 unless given; for Gaussian rewards with noise σ, σ is the posterior's
    Θ   `radius`   the ball ‖θ‖ ≤ S if a radius S is given, else all of R^d

Each reward costs O(d²) (`glm.online` has the step), and O(d³) where the ball matters; no reward is kept.  With
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
from typing import Unpack

import jax.numpy as jnp
from jax import Array

from explorax.batching import where_needed
from explorax.checks import check_positive
from explorax.glm import online
from explorax.glm.ball import bring_inside, of_root
from explorax.glm.families import Family
from explorax.glm.online import GRAM_RIDGE, Online, residual_after
from explorax.policies.base import Policy, checked_init
from explorax.policies.glm_learner import GLMState, Learner
from explorax.policies.glm_model import GLMModel, Rule, program
from explorax.policies.glm_tsl import sample
from explorax.policies.linear_model import LinearModel
from explorax.policies.settings import OnlineSettings


def ecolog_ts(*, scale: float = 1.0, radius: float | None = None, **settings: Unpack[OnlineSettings]) -> Policy:
    """Build ECOLog-TS."""
    check_positive("scale", scale, "; a policy that does not explore is 'greedy'")
    return implicit("ecolog_ts", sampled_scores, scale, radius, settings)


def sampled_scores(learner: Learner, key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
    """x_iᵀθ̃."""
    return arms @ sample(key, state.theta_hat, learner.inverse_root(state), strength(state)), state.converged


def implicit(name: str, rule: Rule, amount: float, radius: float | None, settings: OnlineSettings) -> Policy:
    """The policy of a rule on top of the implicit estimate, in a ball if a radius is given."""
    LinearModel(warmup=settings.get("warmup", "basis"))  # which checks that it is not the theory's
    model = GLMModel(name=name, memory="constant", **settings)
    if radius is None:
        return model.policy(rule, lambda arms: amount)
    check_positive("radius", radius)

    def init(arms: Array | int, key: Array) -> GLMState:
        return model.init(arms, jnp.asarray([amount, radius], float), whitens=False)

    learner = LearnerInBall(model.glm, None, None)
    return Policy(checked_init(init), *program(rule, learner), adopt=learner.adopt)


def strength(state: GLMState) -> Array:
    """How much the policy explores; in a ball, the radius comes after it."""
    return state.strength.reshape(-1)[0]


class LearnerInBall(Learner):
    """The implicit estimate among all ‖θ‖ ≤ S."""

    def update(self, state: GLMState, arm: Array, x: Array, reward: Array) -> GLMState:
        """The step of `glm.online`; where that ends outside, the one that minimizes the same function in the ball."""
        free, radius = super().update(state, arm, x, reward), state.strength[1]
        before, after = state.history, free.history
        assert isinstance(before, Online)
        assert isinstance(after, Online)
        outside = jnp.linalg.norm(free.theta_hat) > radius
        given = before, state.theta_hat, x, reward, radius, state.ridge, state.discount
        theta, root = where_needed(outside, partial(step_in_ball, self.family), given, (free.theta_hat, after.root))
        return free._replace(theta_hat=theta, history=after._replace(root=root))


def step_in_ball(
    family: Family,
    before: Online,
    theta: Array,
    x: Array,
    reward: Array,
    radius: Array,
    ridge: Array,
    discount: Array | None,
) -> tuple[Array, Array]:
    """θ_{t+1}, and the root of W_{t+1}⁻¹.

    A multiplier ν of the ball's constraint takes W to W + νI and θ_t to (W + νI)⁻¹Wθ_t, after which the minimum lies
    on a line as it does without the constraint.
    """
    if discount is not None:
        theta, before = online.fade(theta, before, ridge, GRAM_RIDGE, discount)
    root = before.root

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
    return found, online.grown(before, pushed, x).root
