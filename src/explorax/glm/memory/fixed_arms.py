"""A memory of fixed arms: a count and a reward sum for each.  It is exact, and a round costs the same at any time.

The curvature is kept from round to round (`glm.warm`), and so are the columns G^−½ x_i of all arms for optimistic
policies that do not forget.  Without a ridge the first curvatures are singular, so that no curvature is kept.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.batching import only_where
from explorax.checks import is_known
from explorax.errors import InvalidArgument
from explorax.glm import warm
from explorax.glm.certificate import tolerated
from explorax.glm.history import Grouped, Recent
from explorax.glm.linalg import draw_tilt, factorize, shrinkage
from explorax.glm.memory.base import (
    GRAM_RIDGE,
    Change,
    Estimator,
    Forgetting,
    Memory,
    Wanted,
    check_adoptable,
)
from explorax.glm.memory.fits import exact_root, exact_widths, tilted_fit
from explorax.glm.warm import Warm
from explorax.glm.weighted import Weighted


class FixedArms(NamedTuple):
    """A memory of fixed arms, with the exact estimate and what makes the next one cheap.

    Attributes:
        past: The number of pulls and the sum of rewards of each arm.
        theta_hat: The penalized estimate θ̂, of shape (d,).
        converged: Whether the fit of θ̂ converged, a scalar.
        warm: Scores and curvature at θ̂; None if no curvature is kept.
        whitened: The columns G^−½ x_i, of shape (d, K); None if they are not kept.
        forgetting: How the memory forgets.
    """

    past: Grouped
    theta_hat: Array
    converged: Array
    warm: Warm | None
    whitened: Array | None
    forgetting: Forgetting

    @classmethod
    def of(cls, wanted: Wanted) -> "FixedArms":
        """Build a memory of fixed arms without rewards."""
        assert not isinstance(wanted.arms, int)
        kept, whitened = None, None
        if wanted.ridge > 0 and wanted.keeps_curvature:
            kept = warm.start(wanted.arms, jnp.asarray(wanted.ridge, wanted.dtype), wanted.forgets)
            whitened = kept.columns / GRAM_RIDGE**0.5 if wanted.widths and not wanted.forgets else None
        recent = None if wanted.window is None else Recent.of(wanted.window, wanted.dtype)
        zeros = jnp.zeros(wanted.size, wanted.dtype)
        return cls(Grouped.of(wanted.arms), zeros, jnp.asarray(True), kept, whitened, wanted.forgetting(recent))

    @property
    def n_arms(self) -> int:
        """The number of fixed arms."""
        return self.past.features.shape[-2]

    def learn(
        self, estimator: Estimator, ridge: Array, arm: Array, x: Array, reward: Array, really: ArrayLike = True
    ) -> "FixedArms":
        """Learn from one more reward of an arm, if `really` is true."""
        learned = self.recorded(arm, x, reward).refitted(estimator, ridge, self, arm, x)
        return learned if really is True else jax.tree.map(lambda new, old: jnp.where(really, new, old), learned, self)

    def recorded(self, arm: Array, x: Array, reward: Array) -> "FixedArms":
        """Count one more reward, and forget the one that it drives out of the window; the estimate stays."""
        past, recent = self.past, self.forgetting.recent
        if recent is not None:
            past, recent = recent.forget(past), recent.record(arm, reward)
        past = past.record(arm, x, reward, self.forgetting.discount)
        return self._replace(past=past, forgetting=self.forgetting._replace(recent=recent))

    def refitted(self, estimator: Estimator, ridge: Array, before: "FixedArms", arm: Array, x: Array) -> "FixedArms":
        """Fit θ̂ to a past that has one more reward of an arm than the past of the memory `before`."""
        if self.warm is None:
            found = estimator.fit(self.past, ridge, self.theta_hat)
            return self._replace(theta_hat=found.theta, converged=found.converged)
        tolerance = tolerated(estimator.tolerance, x.dtype)
        left = warm.forget(estimator.family, self.warm, before.forgetting.recent, self.forgetting.discount)
        grown = warm.record(estimator.family, left, self.past, arm, x)
        root_error = warm.kept_error(estimator.root_error, tolerance)
        given = grown.posed(self.past, ridge=ridge), self.theta_hat, self.converged, tolerance, root_error
        fitted, grown = warm.refit(estimator.family, grown, *given)
        whitened = None if self.whitened is None else only_where(estimator.widths, whiten_more, self.whitened, (arm,))
        return self._replace(theta_hat=fitted.theta, converged=fitted.converged, warm=grown, whitened=whitened)

    def scores(self, arms: Array) -> Array:
        """Return the score x_iᵀθ̂ of each arm."""
        return arms @ self.theta_hat if self.warm is None else self.warm.scores

    def scores_at(self, arms: Array, theta: Array) -> Array:
        """Return the score x_iᵀθ of each arm, for any θ."""
        return arms @ theta if self.warm is None else theta @ self.warm.columns

    def tilted(self, estimator: Estimator, ridge: Array, arms: Array, tilt: Array) -> tuple[Array, Array]:
        """Return the score of each arm for the estimate with a tilt, and whether its fit converged."""
        if self.warm is None:
            found = tilted_fit(estimator, self.past, ridge, self.theta_hat, self.converged, tilt)
            return arms @ found.theta, found.converged
        problem = self.warm.posed(self.past, ridge=ridge, tilt=tilt)
        given = problem, self.theta_hat, tolerated(estimator.tolerance, tilt.dtype), self.converged
        fitted = warm.descend(estimator.family, self.warm, *given)
        return fitted.scores, fitted.converged

    def scores_on(
        self, estimator: Estimator, ridge: Array, arms: Array, past: Grouped, start: Array
    ) -> tuple[Array, Array]:
        """Return the score of each arm for the estimate on another past of the arms, and whether its fit converged."""
        if self.warm is None:
            found = estimator.fit(past, ridge, start)
            return arms @ found.theta, found.converged
        near = warm.afresh(estimator.family, past, start, ridge)
        problem = near.posed(past, ridge=ridge)
        fitted = warm.descend(estimator.family, near, problem, start, tolerated(estimator.tolerance, start.dtype))
        return fitted.scores, fitted.converged

    def inverse_root(self, estimator: Estimator, ridge: Array) -> Array:
        """Return a root W of the inverse curvature, W Wᵀ = H(θ̂)⁻¹: the kept one, if there is one."""
        if self.warm is not None:
            return self.warm.root
        return exact_root(estimator, self.past, ridge, self.theta_hat)

    def columns(self) -> Array:
        """Return the arms as the columns of a matrix, of shape (d, K)."""
        return self.past.features.T if self.warm is None else self.warm.columns

    def weighted_sum(self, weights: Array) -> Array:
        """Return the weighted sum Σ w_i x_i of the arms."""
        return weights @ self.past.features if self.warm is None else self.warm.columns @ weights

    def gram(self) -> Array:
        """Return the Gram matrix G = Σ N_x x xᵀ."""
        if self.warm is None:
            return self.past.gram()
        return jnp.einsum("ik,jk->ij", self.warm.columns * self.past.counts, self.warm.columns)

    def tilt_noise(self, key: Array, prior: float | Array) -> Array:
        """Draw a tilt S ~ N(0, G + prior I)."""
        return draw_tilt(key, self.gram(), prior)

    def widths(self, arms: Array) -> Array:
        """Return ‖x_i‖ of each arm in the norm of G⁻¹, or of (G + λI)⁻¹ if the memory forgets."""
        if self.whitened is not None:
            return jnp.sqrt(jnp.sum(self.whitened**2, axis=0))
        return exact_widths(arms, self.gram(), self.forgetting.gram_ridge)

    def leaving(self) -> Change | None:
        """Return what the next reward drives out of the window; None if there is no window."""
        recent = self.forgetting.recent
        if recent is None:
            return None
        arm, leaves = recent.oldest()
        return Change(1.0, leaves.astype(self.past.counts.dtype), self.past.features[arm], recent.arms.shape[0])

    def extended(self, estimator: Estimator, ridge: Array, arms: Array) -> "FixedArms":
        """Return a memory of all `arms`, which are the old ones and then new ones without rewards."""
        nothing = jnp.zeros(len(arms) - len(self.past.counts), arms.dtype)
        counts, sums = (jnp.concatenate([old, nothing]) for old in (self.past.counts, self.past.sums))
        past = Grouped(arms, counts, sums)
        if self.warm is None:
            return self._replace(past=past)
        afresh = warm.afresh(estimator.family, past, self.theta_hat, ridge)
        afresh = afresh._replace(faded=jax.tree.map(jnp.zeros_like, self.warm.faded))
        whitened = None
        if self.whitened is not None:
            identity = GRAM_RIDGE * jnp.eye(arms.shape[1], dtype=arms.dtype)
            whitened = factorize(past.gram() + identity).whiten(arms).T
        return self._replace(past=past, warm=afresh, whitened=whitened)

    def adopting(self, estimator: Estimator, ridge: Array, old: Memory, old_ridge: Array) -> "FixedArms":
        """Return this empty memory with the past of another memory of the same arms."""
        if not isinstance(old, FixedArms):
            raise InvalidArgument(
                "memory must be of the same kind as before, got fixed arms on one side only. Keep the memory, or give "
                "memory='constant'."
            )
        if not np.array_equal(old.past.features, self.past.features):
            raise InvalidArgument("arms must be those of the state, got other ones. Keep the arms and their features.")
        check_adoptable(old, self)
        found = estimator.fit(old.past, ridge, old.theta_hat)
        forgetting = self.forgetting._replace(recent=old.forgetting.recent)
        adopted = self._replace(past=old.past, theta_hat=found.theta, converged=found.converged, forgetting=forgetting)
        return adopted.extended(estimator, ridge, self.past.features)

    def absorbed(self, estimator: Estimator, ridge: Array, rewards: Weighted) -> "FixedArms":
        """Return the memory with rewards that have weights; raise if it has a window."""
        if self.forgetting.recent is not None:
            raise InvalidArgument(
                "window must be None to learn rewards with weights, because they cannot be taken out again, got a "
                "window. Give a discount in place of the window."
            )
        counts = self.past.counts.at[rewards.arms].add(rewards.weights)
        sums = self.past.sums.at[rewards.arms].add(rewards.weights * rewards.rewards)
        past = self.past._replace(counts=counts, sums=sums)
        found = estimator.fit(past, ridge, self.theta_hat)
        absorbed = self._replace(past=past, theta_hat=found.theta, converged=found.converged)
        return absorbed.extended(estimator, ridge, past.features)

    def unrewarded(self) -> Array:
        """Return a vector (K,) that is true for the arms without rewards."""
        return self.past.counts == 0

    def completed(self, estimator: Estimator, ridge: Array) -> "FixedArms":
        """Return the memory as it is, because snapshots of all formats have all of it."""
        return self

    def known_rewards(self) -> Grouped:
        """Return the counts and sums of rewards of all arms."""
        return self.past

    def check_pulled(self, arm: ArrayLike, x: ArrayLike) -> None:
        """Raise `InvalidArgument` if the features are not those of the arm when the memory was made."""
        if is_known(self.past.features, arm, x) and not np.array_equal(self.past.features[arm], x):
            raise InvalidArgument(
                f"x must be the row of arm {arm} that the state was made with, got other features. If arms change, use "
                f"init({np.shape(x)[0]}), with the number of features, in place of init(arms)."
            )


def whiten_more(whitened: Array, arm: Array) -> Array:
    """Update the columns G^−½ x_i of all arms after one more pull of an arm, by Potter's update."""
    pulled = whitened[:, arm]
    return whitened - pulled[:, None] * (shrinkage(pulled) * (pulled @ whitened))
