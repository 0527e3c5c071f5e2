"""The state of a GLM policy, and what a reward, further arms or other settings make of it.

**Numbers live in the state.**  The ridge and what a rule explores by are arrays there, so what gets compiled depends on
the algorithm, the family and the tolerance only (`Estimator`): all designs of a policy share one program, and one batch
can mix them.
"""

from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np
from jax import Array

from explorax.glm.memory.base import Estimator, Memory, same_numbers
from explorax.policies.base import Expected
from explorax.policies.exploration import Exploration

M_co = TypeVar("M_co", bound=Memory, covariant=True)
N_co = TypeVar("N_co", covariant=True)


class GLMState(NamedTuple, Generic[M_co, N_co]):
    """The past with the estimate it gives, and the settings that are numbers."""

    memory: M_co
    exploration: Exploration
    ridge: Array  # () λ
    numbers: N_co  # of the rule: how much it explores

    @property
    def theta_hat(self) -> Array:
        """Return θ̂, the penalized estimate."""
        return self.memory.theta_hat

    @property
    def converged(self) -> Array:
        """Return whether the fit of θ̂ converged."""
        return self.memory.converged


AnyState = GLMState[Any, Any]


def learn(estimator: Estimator, state: AnyState, arm: Array, x: Array, reward: Array) -> AnyState:
    """Record the reward and refit θ̂."""
    return state._replace(memory=state.memory.learn(estimator, state.ridge, arm, x, reward))


def extend(estimator: Estimator, state: AnyState, arms: Array) -> AnyState:
    """Return the same past with further fixed arms, which are rows after the old ones."""
    return state._replace(memory=state.memory.extended(estimator, state.ridge, arms))


def adopt(estimator: Estimator, state: AnyState, fresh: AnyState) -> AnyState:
    """Return the past of a state that other settings have made, in a fresh state of this policy (`adoption`)."""
    if made_alike(state, fresh):
        return state
    memory = fresh.memory.adopting(estimator, fresh.ridge, state.memory, state.ridge)
    # Which arms are forced is decided when a policy starts; more arms may have come since.
    begun = np.array_equal(state.exploration.rounds, fresh.exploration.rounds)
    return fresh._replace(memory=memory, exploration=state.exploration if begun else fresh.exploration)


def made_alike(state: AnyState, fresh: AnyState) -> bool:
    """Return whether two states differ in what was learned only: all shapes and settings are the same."""
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
    """Return the shapes and the dtype that go with a state."""
    return Expected(state.memory.n_arms, state.theta_hat.shape[-1], state.theta_hat.dtype)
