"""What a policy plays against: an environment is three pure functions.

    draw(key, number)            -> instance    one random problem, a pytree of arrays; `number` is its index in the run
    offer(key, instance, t)      -> Offer       the arms on offer in round t, the same in every round if they are fixed
    reward(key, offer, arm)      -> ()          one reward of the arm that was pulled

Randomness is an argument, so a key always gives the same instance, alone or in a batch of any size.  All three
functions can be used inside `jit`, `vmap` over instances and `lax.scan` over rounds.  Arms that change depend on the
key *and* on t: one key is enough for all rounds of an instance.  Arrays that all instances share, such as a large data
set, are part of each instance and yet exist only once: `axes` tells `vmap` which arrays are shared.

docs/adding-an-environment.md writes an environment step by step.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

Instance = Any  # a pytree of arrays; each environment has its own


class Offer(NamedTuple):
    """The arms that an environment offers in one round, with the laws of their rewards.

    Attributes:
        arms: The (K, d) features of the arms, which are all that a policy sees.
        means: The (K,) expected rewards of the arms, from which regret is computed.
        scores: The (K,) natural parameters of the laws of the rewards, for example log-odds if rewards are 0 or 1.

    Example:
        >>> import explorax, jax
        >>> environment = explorax.environments.logistic(theta=[2.0, 0.0], fixed_arms=[[1.0, 0.0], [0.0, 1.0]])
        >>> offer = environment.offer(jax.random.key(0), environment.draw(jax.random.key(1)), 0)
        >>> [f"{mean:.2f}" for mean in offer.means]
        ['0.88', '0.50']
    """

    arms: Array
    means: Array
    scores: Array


class Environment(NamedTuple):
    """A family of random bandit problems, as three pure functions and what is known about them.

    Attributes:
        name: The name of the environment, as records and figures show it.
        n_features: d, the number of features of an arm.
        arms_change: Whether the arms on offer differ from round to round.
        draw: `draw(key, number) -> instance` draws one random problem, a pytree of arrays.  `number`, 0 by default, is
            the index of the instance in the run.
        offer: `offer(key, instance, t) -> Offer` returns the arms of round `t`, counted from 0.  Fixed arms depend on
            the instance alone, arms that change also on the key and on `t`.
        reward: `reward(key, offer, arm) -> ()` draws one reward of the arm with that index.
        axes: The axes of an instance for `jax.vmap`: None for arrays that all instances share.  Default: 0, for
            environments whose instances share nothing.
        family: The name of the family of the rewards, which a policy must model to be played.  Default: None, which
            lets any policy play.

    Example:
        >>> import explorax, jax
        >>> environment = explorax.environments.logistic(n_features=3, n_arms=4)
        >>> environment.name, environment.n_features, environment.arms_change, environment.family
        ('logistic', 3, False, 'bernoulli')
        >>> instance = environment.draw(jax.random.key(0))
        >>> offer = environment.offer(jax.random.key(1), instance, 0)
        >>> offer.arms.shape, offer.means.shape
        ((4, 3), (4,))
        >>> float(environment.reward(jax.random.key(2), offer, 0)) in (0.0, 1.0)
        True
    """

    name: str
    n_features: int
    arms_change: bool
    draw: Callable[..., Instance]
    offer: Callable[..., Offer]
    reward: Callable[..., Array]
    axes: Any = 0
    family: str | None = None
