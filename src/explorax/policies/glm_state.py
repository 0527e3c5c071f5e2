"""The state of a GLM policy: the past with its estimate, and the settings that are numbers.

**Numbers are part of the state.**  The ridge and the numbers of a rule are arrays in the state, so that compiled code
depends on the algorithm, the family and the tolerance only (`Estimator`).  All designs of a policy share one program,
and one batch can mix them.
"""

from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.glm.memory.base import Estimator, Memory, same_numbers
from explorax.glm.prior import rewards_of_prior
from explorax.glm.weighted import Weighted
from explorax.policies.base import ExtendFn
from explorax.policies.checked import Expected
from explorax.policies.exploration import Exploration

M_co = TypeVar("M_co", bound=Memory, covariant=True)
N_co = TypeVar("N_co", covariant=True)


class GLMState(NamedTuple, Generic[M_co, N_co]):
    """The past with its estimate, and the settings that are numbers.

    Attributes:
        memory: What is kept of the past, with the estimate θ̂.
        exploration: The plan of the forced exploration.
        ridge: The ridge λ, of shape ().
        numbers: The numbers of the rule, which say how much it explores.
    """

    memory: M_co
    exploration: Exploration
    ridge: Array
    numbers: N_co

    @property
    def theta_hat(self) -> Array:
        """The (d,) penalized estimate θ̂."""
        return self.memory.theta_hat

    @property
    def converged(self) -> Array:
        """Whether the fit of θ̂ converged, of shape ()."""
        return self.memory.converged


AnyState = GLMState[Any, Any]


def learn(estimator: Estimator, state: AnyState, arm: Array, x: Array, reward: Array) -> AnyState:
    """Record a reward and refit θ̂."""
    return state._replace(memory=state.memory.learn(estimator, state.ridge, arm, x, reward))


def extend(estimator: Estimator, state: AnyState, arms: Array) -> AnyState:
    """Return the state with the same past and additional fixed arms, which are the rows after the old ones."""
    return state._replace(memory=state.memory.extended(estimator, state.ridge, arms))


@cache
def extension(estimator: Estimator) -> ExtendFn:
    """Return `extend` for an estimator, the same function for equal ones, so that agents share its programs."""
    return partial(extend, estimator)


def adopt(estimator: Estimator, state: AnyState, fresh: AnyState) -> AnyState:
    """Return a fresh state with the past that another state has learned with other settings (`adoption`)."""
    if made_alike(state, fresh):
        return state
    memory = fresh.memory.adopting(estimator, fresh.ridge, state.memory, state.ridge)
    # The forced arms are chosen when a policy starts; arms may have been added since.
    begun = np.array_equal(state.exploration.rounds, fresh.exploration.rounds)
    return fresh._replace(memory=memory, exploration=state.exploration if begun else fresh.exploration)


def complete(estimator: Estimator, state: AnyState) -> AnyState:
    """Return the state with the arrays that follow from others, which the snapshot of a former format may lack."""
    return state._replace(memory=state.memory.completed(estimator, state.ridge))


def absorb(estimator: Estimator, state: AnyState, rewards: Weighted) -> AnyState:
    """Return the state after rewards that have weights, learned all at once."""
    return state._replace(memory=state.memory.absorbed(estimator, state.ridge, rewards))


def prior(estimator: Estimator, state: AnyState, mean: ArrayLike, precision: ArrayLike) -> Weighted:
    """Return the rewards that stand for a prior of the parameters."""
    return rewards_of_prior(estimator.family, float(state.ridge), mean, precision)


def unrewarded(state: AnyState) -> Array | None:
    """Return a vector (K,) that is true for the fixed arms without rewards; None if nothing is kept by arm."""
    without: Array | None = state.memory.unrewarded()
    return without


def made_alike(state: AnyState, fresh: AnyState) -> bool:
    """Return whether two states have the same shapes and settings, and differ in what was learned only."""
    shapes = [jax.tree.map(lambda leaf: (np.shape(leaf), str(leaf.dtype)), each) for each in (state, fresh)]
    if shapes[0] != shapes[1]:
        return False
    settings = zip(*(jax.tree.leaves(settings_of(each)) for each in (state, fresh)), strict=True)
    return all(same_numbers(*pair) for pair in settings)


def settings_of(state: AnyState) -> list[Any]:
    """Return the settings in a state that are numbers."""
    forgetting, rows = state.memory.forgetting, state.memory.known_rewards()
    return [state.ridge, state.numbers, forgetting.discount, forgetting.floor, getattr(rows, "forgets", None)]


def expected_arrays(state: AnyState) -> Expected:
    """Return the numbers of arms and features and the dtype that go with a state."""
    return Expected(state.memory.n_arms, state.theta_hat.shape[-1], state.theta_hat.dtype)
