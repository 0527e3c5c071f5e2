"""What an agent knows before its first decision: the prior of an earlier model, and rewards that have weights."""

import io
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from explorax.agent.compiled import check_finite
from explorax.agent.decider import Decider, Now
from explorax.agent.packing import Packed
from explorax.agent.pulled import Pulled
from explorax.checks import check_magnitude
from explorax.errors import InvalidArgument, InvalidShape
from explorax.glm.weighted import Weighted


class Prior(NamedTuple):
    """What an earlier model knew of the parameters of a GLM or linear policy.

    The policy starts with the estimate `mean` and with `precision` as the curvature there, as if it had learned
    rewards that say so.  Its ridge is part of the precision.  For least squares this is the Gaussian prior with this
    mean and the covariance σ²·precision⁻¹, where σ² is the variance of a reward.

    Attributes:
        mean: The mean of the parameters, of shape (d,).
        precision: The precision of the parameters, of shape (d, d): the inverse covariance of an estimate, times the
            variance of a reward if rewards are Gaussian.  It must be larger than ridge · I.

    Example:
        >>> import explorax
        >>> prior = explorax.Prior([0.5, -1.0], [[9.0, 0.0], [0.0, 4.0]])
        >>> agent = explorax.Agent(explorax.glm_tsl(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]}, prior=prior)
        >>> agent.state.theta_hat.round(6).tolist()
        [0.5, -1.0]
    """

    mean: ArrayLike
    precision: ArrayLike

    @classmethod
    def from_covariance(cls, mean: ArrayLike, covariance: ArrayLike) -> "Prior":
        """Return the prior of an estimate with a covariance.

        Args:
            mean: The mean of the parameters, of shape (d,).
            covariance: The covariance of the parameters, of shape (d, d).

        Returns:
            The prior.

        Raises:
            InvalidArgument: If the covariance has no inverse.
        """
        try:
            return cls(mean, np.linalg.inv(np.asarray(covariance, float)))
        except (np.linalg.LinAlgError, TypeError, ValueError) as error:
            raise InvalidArgument(
                f"covariance must be a matrix that has an inverse, got {covariance!r}: {error}. Give one row and one "
                "column for each number of mean."
            ) from error


def with_prior(decider: Decider, now: Now, prior: Prior) -> Now:
    """Return what an agent knows that starts with a prior, given what it knows without."""
    policy, size = decider.policy, decider.source.n_features
    if policy.prior is None:
        raise InvalidArgument(
            "prior must be None for a policy that takes none, got a Prior. GLM policies and linear policies take one."
        )
    if not isinstance(prior, Prior) or np.shape(prior.mean) != (size,):
        raise InvalidShape(
            f"prior must be a Prior with a mean of {size} numbers, one for each feature, got {prior!r}. Build one with "
            "explorax.Prior(mean, precision)."
        )
    with decider.precision():
        rewards = policy.prior(now.packed.state(), prior.mean, prior.precision)
        _, *floats = (np.asarray(each) for each in rewards)
    return absorbed(decider, now, np.zeros(size, np.int64), *floats)


def absorbed(
    decider: Decider, now: Now, rows: np.ndarray, features: np.ndarray, weights: np.ndarray, rewards: np.ndarray
) -> Now:
    """Return what an agent knows after rewards that have weights.

    Args:
        decider: The decider of the agent.
        now: What it knows before.
        rows: (n,) The rows of the arms; one that does not have these features gets a row of its own.
        features: (n, d) The features of the arms.
        weights: (n,) How much each reward counts.
        rewards: (n,) The rewards.

    Returns:
        What it knows then.

    Raises:
        InvalidArgument: If the policy cannot learn rewards with weights.
        NotFinite: If the state would have NaN or infinity in it.
    """
    policy, source = decider.policy, decider.source
    if policy.absorb is None:
        raise InvalidArgument(
            "weights must be None for a policy that learns rewards one by one, got weights. GLM policies and linear "
            "policies take them."
        )
    features = features.astype(source.dtype)
    check_magnitude("features", features)
    with decider.precision():
        arms, rows = source.with_rows(policy, now.packed, now.arms, rows, features)
        packed = now.packed if arms is now.arms else source.extend(policy, now.packed, arms)
        floats = (jnp.asarray(each, source.dtype) for each in (features, weights, rewards))
        learned = Packed.of(policy.absorb(packed.state(), Weighted(jnp.asarray(rows), *floats)))
    check_finite(learned.is_finite(), packed, Pulled.of(rows, features).paid(rewards))
    return now._replace(packed=learned, arms=arms)


def earlier_bytes(*arrays: np.ndarray | None) -> bytes:
    """Return what others pulled, up to four arrays, as an archive of NumPy."""
    file = io.BytesIO()
    np.savez(file, *(each for each in arrays if each is not None))
    return file.getvalue()


def earlier_of(content: bytes) -> list[np.ndarray]:
    """Return the arrays that `earlier_bytes` was given, but for those that are None."""
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        return [found[name] for name in found.files]
