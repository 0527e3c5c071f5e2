"""Ensemble sampling: M models, each fitted to rewards with frozen noise of its own; a random one decides.

In each round one of the models is drawn, and its best arm is pulled:

    θ_m = estimate on rewards Y_l + Z_{m,l} with the prior's mean at P_m,    m uniform in every round,
    pull argmax_i x_iᵀθ_m

    Z_{m,l} ~ N(0, a²)          drawn once, when reward l comes
    P_m ~ N(0, (a/a₀)² I/λ)     drawn once, at the start

    a   `scale`     default: as in GLM-FPL, the standard deviation of a reward, 0.5 for rewards in [0, 1]
    M   `members`   default: 30

GLM-FPL draws its noise anew in every round.  Here the noise of a reward stays the same, so that each member is a model
that learns: at first it is wrong in its own way, and the M members together represent a posterior.

**A frozen tilt.**  As in GLM-FPL, the loss on perturbed rewards is the loss on the real rewards minus a linear
function,

    L(Y + Z_m; θ) + ½ λ ‖θ − P_m‖² = L(Y; θ) + ½ λ ‖θ‖² − S_mᵀθ + const,    S_m = Σ_l Z_{m,l} X_l + λ P_m,

so that a member is the vector S_m, to which each reward adds one term.  θ_m is a function of S_m and of the past, which
all members share.  It is fitted when the member decides, to the tolerance, at the cost of a decision of GLM-FPL for any
M.

**The posterior.**  In the Gaussian family with a = σ, for given pulls and rewards, the θ_m are independent draws from
the exact posterior N(θ̂, σ² (G + λI)⁻¹).  In other families Cov θ_m ≈ H⁻¹ (a² G + (a/a₀)² λI) H⁻¹ with
H = Σ μ̇ X_l X_lᵀ + λI, which is nearly H⁻¹ for a = a₀ if slopes are near their largest value.  a₀ = √μ̇max makes the
noise in rewards and in the prior agree: 0.5 in the Bernoulli family, and 1 in the Gaussian family and in the Poisson
family, which has no largest slope.

**The number of members** is our choice.  The theory of linear bandits asks for a multiple of d log n, and with fewer
members it happens more often that none of them prefers the best arm.  A decision costs the same for any M; a reward
costs M normal draws.

The probability of an arm has a formula, the share of the members whose best arm it is, at the cost of M fits.

With a discount (`glm.history`) a reward of weight w has the noise of w rewards, as in GLM-FPL: its term is √w Z X.  The
term of the prior stays.  A reward that is forgotten takes its own noise along: Z_{m,l} is a function of l and of the
key that `init` was given, and is drawn again to be removed.  With memory="constant" θ_m is known to first order.

References: Lu & Van Roy, Ensemble Sampling, NeurIPS 2017; Janz, Litvak & Szepesvári, Ensemble Sampling for Linear
Bandits: Small Ensembles Suffice, NeurIPS 2024 (M of the order of d log n).
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.checks import check_positive, check_whole, is_known
from explorax.errors import InvalidArgument
from explorax.glm import families
from explorax.glm.memory.base import Estimator, Memory
from explorax.policies import exploration, glm_state
from explorax.policies.base import Action, ExtendFn, Policy
from explorax.policies.checked import Expected, Program, checked_init, compiled
from explorax.policies.exploration import best
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState, expected_arrays
from explorax.policies.settings import GLMSettings, RewardNoise


class Numbers(NamedTuple):
    """The numbers of ensemble sampling.

    Attributes:
        scale: The standard deviation a of the noise in a reward.
    """

    scale: float | Array


class EnsembleState(NamedTuple):
    """The past that all members share, and what each member adds to it.

    Attributes:
        glm: The state of the estimate without noise.
        prior: The (M, d) terms λ P_m of the prior.
        noise: The (M, d) sums Σ √w Z_m X over the rewards that are kept.
        key: The (2,) key data from which the noise of rewards is drawn.
        seen: The number of rewards so far, of shape ().
    """

    glm: GLMState[Memory, Numbers]
    prior: Array
    noise: Array
    key: Array
    seen: Array

    @property
    def theta_hat(self) -> Array:
        """The (d,) estimate without noise."""
        return self.glm.theta_hat


def glm_ensemble(
    *,
    members: Annotated[int, "The number M of models, at least 1."] = 30,
    scale: RewardNoise = None,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build ensemble sampling, in which a random one of M models with frozen noise decides."""
    model = GLMModel(**settings)
    check_whole("members", members, 1)
    if scale is not None:
        check_positive("scale", scale, "Use 'greedy' for a policy that does not explore.")
    numbers = Numbers(model.informal if scale is None else float(scale))
    slope = model.glm.max_slope
    relative = numbers.scale / (slope**0.5 if slope < jnp.inf else 1.0)  # a/a₀
    estimator = Estimator(model.glm, model.given["tolerance"], root_error=0.3)

    def init(arms: Array | int, key: Array) -> EnsembleState:
        glm = model.init(arms, numbers)
        first, later = jax.random.split(key)
        shape = members, glm.theta_hat.shape[0]
        prior = relative * jnp.sqrt(glm.ridge) * jax.random.normal(first, shape, glm.ridge.dtype)
        return EnsembleState(glm, prior, jnp.zeros_like(prior), jax.random.key_data(later), jnp.zeros((), int))

    def adopt(state: EnsembleState, fresh: EnsembleState) -> EnsembleState:
        settings = [[each.glm.ridge, each.glm.numbers.scale, np.shape(each.prior)] for each in (state, fresh)]
        if not all(np.array_equal(*pair) for pair in zip(*settings, strict=True)):
            raise InvalidArgument(
                "ridge, scale and members must stay the same, since the noise of past rewards was drawn with them. "
                "Change only the memory and its capacity."
            )
        return state._replace(glm=glm_state.adopt(estimator, state.glm, fresh.glm))

    parts = program(estimator)
    law, extend = probabilities(estimator), extension(estimator)
    return Policy(
        checked_init(init),
        *parts,
        probabilities=law,
        extend=extend,
        unrewarded=lambda state: glm_state.unrewarded(state.glm),
        adopt=adopt,
    )


@cache
def extension(estimator: Estimator) -> ExtendFn:
    """Return the function that adds fixed arms to a state, the same for equal estimators."""

    def extend(state: EnsembleState, arms: Array) -> EnsembleState:
        return state._replace(glm=glm_state.extend(estimator, state.glm, arms))

    return extend


@cache
def program(estimator: Estimator) -> Program:
    """Return the compiled `act` and `update`, which all policies share that differ in numbers only."""

    def act(key: Array, state: EnsembleState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        member = jax.random.randint(key, (), 0, len(state.noise))
        tilt = state.prior[member] + state.noise[member]
        scores, converged = state.glm.memory.tilted(estimator, state.glm.ridge, arms, tilt)
        arm, forced = exploration.choose(state.glm.exploration, scores, arms, t, mask)
        return Action(arm, scores, forced, converged)

    def update(state: EnsembleState, arm: Array, x: Array, reward: Array) -> EnsembleState:
        noise = perturb(state, x)
        glm = glm_state.learn(estimator, state.glm, arm, x, reward)
        return state._replace(glm=glm, noise=noise, seen=state.seen + 1)

    def expected(state: EnsembleState) -> Expected:
        return expected_arrays(state.glm)

    def check_pulled(state: EnsembleState, arm: ArrayLike, x: ArrayLike) -> None:
        state.glm.memory.check_pulled(arm, x)

    def check(rewards: ArrayLike) -> None:
        if is_known(rewards):
            families.check_rewards(estimator.family, rewards)

    return compiled(
        act=act,
        update=update,
        expected=expected,
        check=check,
        families=(estimator.family.name,),
        check_pulled=check_pulled,
    )


@cache
def probabilities(estimator: Estimator) -> Callable[[EnsembleState, Array, Array, Array | None], Array]:
    """Return the function that computes the probability of each arm.

    The probability is 1 for a forced arm, and after the forced rounds the share of the members that would pull the arm.

    Args:
        estimator: The estimator of the members.

    Returns:
        The function, with the arguments of `ProbabilitiesFn`.
    """

    @jax.jit
    @jax.default_matmul_precision("highest")
    def of_arms(state: EnsembleState, arms: Array, t: Array, mask: Array | None = None) -> Array:
        forced_arm, forced = exploration.choose(state.glm.exploration, jnp.zeros_like(arms[:, 0]), arms, t, mask)
        certain = jnp.arange(arms.shape[0]) == forced_arm
        return jnp.where(forced, certain, shares(member_scores(estimator, state, arms), mask))

    return of_arms


def member_scores(estimator: Estimator, state: EnsembleState, arms: Array) -> Array:
    """Return the (M, K) scores x_iᵀθ_m of each member and arm."""
    memory, ridge = state.glm.memory, state.glm.ridge
    return jax.vmap(lambda tilt: memory.tilted(estimator, ridge, arms, tilt)[0])(state.prior + state.noise)


def shares(scores: Array, mask: Array | None) -> Array:
    """Return for each arm the share of the M rows of (M, K) scores that are largest at this arm."""
    favorites = jax.vmap(lambda row: best(row, mask))(scores)
    return jnp.mean(favorites[:, None] == jnp.arange(scores.shape[1]), axis=0, dtype=scores.dtype)


def perturb(state: EnsembleState, x: Array) -> Array:
    """Return the (M, d) noise of all members after one more reward of an arm x."""
    glm, key = state.glm, jax.random.wrap_key_data(state.key)

    def drawn(number: Array, weight: Array | float) -> Array:
        """Draw the (M,) noise √w Z of a reward, by its number."""
        unit = jax.random.normal(jax.random.fold_in(key, number), state.noise.shape[:1], x.dtype)
        return jnp.sqrt(weight) * glm.numbers.scale * unit

    noise = state.noise
    change, discount = glm.memory.leaving(), glm.memory.forgetting.discount
    if change is not None:
        # Differences of sums lose little: rounding adds up to a share of √(rewards) times the precision.
        noise = noise - drawn(state.seen - change.ago, change.leaves)[:, None] * change.x
    if discount is not None:
        noise = noise * jnp.sqrt(discount)
    return noise + drawn(state.seen, 1.0 if change is None else change.comes)[:, None] * x
