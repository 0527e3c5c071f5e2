"""The state of a GLM policy, and how it learns: what the compiled program of every GLM policy is made of.

The estimate is refitted in `update`, the only function that may write, from the last one.  A decision then starts from
θ̄ and only adds its own exploration.  With fixed arms the curvature is kept from round to round (`glm.warm`).

**Numbers live in the state.**  Ridge, scale and width are arrays there, so what gets compiled depends on the algorithm,
the family and the tolerance only (`Learner`): all designs of a policy share one program, and one batch can mix them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.batching import where_needed
from explorax.checks import can_be_squared, is_known
from explorax.errors import InvalidArgument
from explorax.glm import families, online, warm
from explorax.glm.families import Family
from explorax.glm.fit import MAX_STEPS, allowed_error, default_tolerance, hessian, newton, posed
from explorax.glm.history import Grouped, Recent, Rows, check_room
from explorax.glm.linalg import factorize, shrinkage
from explorax.glm.online import GRAM_RIDGE, Online
from explorax.glm.steps import largest
from explorax.glm.warm import Warm
from explorax.policies import exploration
from explorax.policies.base import Expected


class GLMState(NamedTuple):
    """The past, the estimate it gives, and the settings that are numbers."""

    history: Grouped | Rows | Online
    theta_hat: Array  # (d,) θ̄
    converged: Array  # () bool: whether the fit of θ̄ did
    exploration: exploration.Exploration
    ridge: Array  # () λ
    strength: Array  # how much the policy explores: its scale a, or what makes the width of its bonus
    warm: Warm | None  # fixed arms: what makes the next fit cheap
    whitened: Array | None  # fixed arms, optimistic policies that forget nothing: (d, K) columns G^−½ x
    discount: Array | None = None  # () γ; None where the past is not discounted
    recent: Recent | None = None  # fixed arms, with a window: what is in it
    floor: Array | None = None  # () optimistic policies that forget: what is added to G in place of GRAM_RIDGE


@dataclass(frozen=True)
class Learner:
    """What the compiled program of a policy depends on, apart from its rule."""

    family: Family
    tolerance: float | None
    root_error: float | None  # how far the kept curvature may be off, as e^±; None: as far as the tolerance asks for

    def update(self, state: GLMState, arm: Array, x: Array, reward: Array) -> GLMState:
        """Record the reward and refit θ̄."""
        if not isinstance(state.history, Grouped):
            return self.update_if(jnp.asarray(True), state, x, reward)
        history, recent = state.history, state.recent
        if recent is not None:
            history = recent.forget(history)
            state = state._replace(recent=recent.record(arm, reward))
        history = history.record(arm, x, reward, state.discount)
        if state.warm is None:
            last_step = self.last_step(x.dtype)
            estimate = newton(self.family, history, state.ridge, None, state.theta_hat, last_step, MAX_STEPS)
            return state._replace(history=history, theta_hat=estimate.theta, converged=estimate.converged)
        tolerance = self.score_error(x.dtype)
        root_error = min(0.1, 100 * tolerance) if self.root_error is None else self.root_error
        left = warm.forget(self.family, state.warm, recent, state.discount)
        grown = warm.record(self.family, left, history, arm, x)
        before = state.theta_hat, state.converged, state.ridge
        fitted, grown = warm.refit(self.family, grown, history, *before, tolerance, root_error)
        state = state._replace(history=history, theta_hat=fitted.theta, converged=fitted.converged, warm=grown)
        return state if state.whitened is None else state._replace(whitened=whiten_more(state.whitened, arm))

    def update_if(self, really: Array, state: GLMState, x: Array, reward: Array) -> GLMState:
        """That, or nothing at all; rows kept are not copied either way.  Not for fixed arms.

        A compiled loop cannot raise: what cannot be squared and summed leaves the state as it was.
        """
        history, theta, last_step = state.history, state.theta_hat, self.last_step(x.dtype)
        really = really & can_be_squared(x, reward)
        assert not isinstance(history, Grouped)
        if isinstance(history, Online):
            before = history, theta, state.converged
            forgetting = state.discount, state.floor
            kept = online.record(self.family, *before, x, reward, state.ridge, last_step, really, *forgetting)
            return state._replace(history=kept.online, theta_hat=kept.theta, converged=kept.converged)
        history = history.record(0, x, reward, really, state.discount)
        found = newton(self.family, history, state.ridge, None, theta, last_step, MAX_STEPS)
        converged = jnp.where(really, found.converged, state.converged)
        return state._replace(history=history, theta_hat=jnp.where(really, found.theta, theta), converged=converged)

    def learn_rows(self, state: GLMState, rows: Rows) -> GLMState:
        """The state that has seen these rows and nothing else; not for fixed arms, nor with a discount."""
        history, last_step = state.history, self.last_step(state.theta_hat.dtype)
        assert not isinstance(history, Grouped)
        assert state.discount is None
        room = history.rows if isinstance(history, Online) else history
        rows = rows if room is None else room.holding(rows)
        kept = online.refit(self.family, rows, state.theta_hat, state.ridge, last_step)
        memory: Rows | Online = rows
        if isinstance(history, Online):
            memory = kept.online if room is not None else kept.online._replace(rows=None)
        return state._replace(history=memory, theta_hat=kept.theta, converged=kept.converged)

    def score_error(self, dtype: jnp.dtype) -> float:
        """The tolerance, or what the dtype can do."""
        return float(jnp.finfo(dtype).eps) ** (2 / 3) if self.tolerance is None else self.tolerance

    def last_step(self, dtype: jnp.dtype) -> float:
        """The size of a fit's last step, in scores."""
        return default_tolerance(dtype) if self.tolerance is None else self.tolerance

    def scores(self, state: GLMState, arms: Array) -> Array:
        """x_iᵀθ̄ of each arm."""
        return arms @ state.theta_hat if state.warm is None else state.warm.scores

    def tilted(self, state: GLMState, arms: Array, tilt: Array) -> tuple[Array, Array]:
        """x_iᵀθ of each arm for the estimate on tilted rewards, and whether its fit converged."""
        if isinstance(state.history, Online):  # to first order, which is all that a summary can tell
            root = state.history.root
            return arms @ (state.theta_hat + root @ (tilt @ root)), state.converged
        if state.warm is None or isinstance(state.history, Rows):
            history, last_step = state.history, self.last_step(tilt.dtype)
            found = newton(self.family, history, state.ridge, tilt, state.theta_hat, last_step, MAX_STEPS)

            def is_right(history: Grouped | Rows, move: Array, score_error: Array) -> Array:
                moved = largest(history.counts > 0, history.features @ move)
                return score_error <= allowed_error(self.family, history, last_step, moved)

            # A draw around an estimate that is right itself may err by a share of its noise.
            looked_at = history, found.theta - state.theta_hat, found.score_error
            converged = where_needed(~found.converged & state.converged, is_right, looked_at, found.converged)
            return arms @ found.theta, converged
        tolerance = self.score_error(tilt.dtype)
        given = state.theta_hat, tilt, state.ridge, tolerance, state.converged
        fitted = warm.descend(self.family, state.warm, state.history, *given)
        return fitted.scores, fitted.converged

    def inverse_root(self, state: GLMState) -> Array:
        """W with W Wᵀ = H(θ̄)⁻¹,  H(θ̄) = Σ μ̇(xᵀθ̄) x xᵀ + λI."""
        if isinstance(state.history, Online):
            return state.history.root
        if state.warm is not None:
            return state.warm.root
        problem = posed(state.history, ridge=state.ridge)
        return factorize(hessian(self.family, problem, state.theta_hat)).inverse_root()

    def extend(self, state: GLMState, arms: Array) -> GLMState:
        """The same past with further arms, which are rows after the old ones; nothing seen of them yet."""
        if not isinstance(state.history, Grouped):
            return state
        nothing = jnp.zeros(len(arms) - len(state.history.counts), arms.dtype)
        counts, sums = (jnp.concatenate([old, nothing]) for old in (state.history.counts, state.history.sums))
        history = Grouped(arms, counts, sums)
        state = state._replace(history=history)
        if state.warm is None:
            return state
        afresh = warm.afresh(self.family, arms, counts, state.theta_hat, state.ridge)
        afresh = afresh._replace(faded=jax.tree.map(jnp.zeros_like, state.warm.faded))
        whitened = None
        if state.whitened is not None:
            ridge = GRAM_RIDGE * jnp.eye(arms.shape[1], dtype=arms.dtype)
            whitened = factorize(history.gram() + ridge).whiten(arms).T
        return state._replace(warm=afresh, whitened=whitened)

    def estimate(self, state: GLMState) -> GLMState:
        """The state with θ̄ fitted anew to its history; not for a summary."""
        assert not isinstance(state.history, Online)
        last_step = self.last_step(state.theta_hat.dtype)
        found = newton(self.family, state.history, state.ridge, None, state.theta_hat, last_step, MAX_STEPS)
        return state._replace(theta_hat=found.theta, converged=found.converged)

    def adopt(self, state: GLMState, fresh: GLMState) -> GLMState:
        """The past of a state that other settings have made, in a state `fresh` of this policy; see `adoption`."""
        if made_alike(state, fresh):
            return state
        check_adoptable(state, fresh)
        old, new = state.history, fresh.history
        # Which arms are forced is decided when a policy starts; more arms may have come since.
        begun = bool(np.array_equal(state.exploration.rounds, fresh.exploration.rounds))
        adopted = fresh._replace(
            theta_hat=state.theta_hat, exploration=state.exploration if begun else fresh.exploration
        )
        if isinstance(new, Grouped):
            return self.extend(self.estimate(adopted._replace(history=old, recent=state.recent)), new.features)
        rows = rows_of(old)
        if isinstance(new, Rows):
            assert isinstance(rows, Rows)
            return self.estimate(adopted._replace(history=new.adopting(rows)))
        if rows is None:  # a summary stays one
            assert isinstance(old, Online)
            return adopted._replace(history=with_buffer(old, new, state.theta_hat), converged=state.converged)
        if isinstance(rows, Grouped):
            rows = Rows(*rows, jnp.sum(rows.counts).astype(int), jnp.asarray(True))
        rows = rows if new.rows is None else new.rows.adopting(rows)
        last_step = self.last_step(state.theta_hat.dtype)
        kept = online.refit(self.family, rows, state.theta_hat, fresh.ridge, last_step, fresh.floor)
        summary = kept.online._replace(rows=None if new.rows is None else rows, turn=new.turn)
        summary = with_buffer(summary, new, kept.theta)
        return adopted._replace(history=summary, theta_hat=kept.theta, converged=kept.converged)

    def check(self, rewards: ArrayLike) -> None:
        """Raise if a reward is impossible."""
        if is_known(rewards):
            families.check_rewards(self.family, rewards)

    def check_pulled(self, state: GLMState, arm: ArrayLike, x: ArrayLike) -> None:
        """Raise if there is no room for a reward, or the features are not those of the arm that the state knows."""
        rows = state.history.rows if isinstance(state.history, Online) else state.history
        if isinstance(rows, Rows):
            check_room(rows)
        elif (
            isinstance(state.history, Grouped)
            and is_known(state.history.features, arm, x)
            and not np.array_equal(state.history.features[arm], x)
        ):
            raise InvalidArgument(
                f"x is not the row of arm {arm} that the state was made with: arms that change need "
                f"init({np.shape(x)[0]}), the number of features, in place of init(arms)"
            )


def made_alike(state: GLMState, fresh: GLMState) -> bool:
    """Whether two states differ in what was learned only: shapes, and the settings that are numbers, are the same."""
    shapes = [jax.tree.map(lambda leaf: (np.shape(leaf), str(leaf.dtype)), each) for each in (state, fresh)]
    limits = [rows.forgets if isinstance(rows := rows_of(each.history), Rows) else None for each in (state, fresh)]
    settings = zip(*((each.ridge, each.strength, each.discount, each.floor) for each in (state, fresh)), strict=True)
    return shapes[0] == shapes[1] and same_numbers(*limits) and all(same_numbers(*pair) for pair in settings)


def check_adoptable(state: GLMState, fresh: GLMState) -> None:
    """Raise unless the past that `fresh` wants to remember is in `state`."""

    def refuse(what: str, given: object, remedy: str) -> None:
        raise InvalidArgument(f"{what}, got {given}. {remedy}.")

    old, new = state.history, fresh.history
    rows = rows_of(old)
    if (state.theta_hat.shape, state.theta_hat.dtype) != (fresh.theta_hat.shape, fresh.theta_hat.dtype):
        shape, dtype = fresh.theta_hat.shape, fresh.theta_hat.dtype
        given = f"{state.theta_hat.shape} in {state.theta_hat.dtype}"
        refuse(f"theta_hat must have the shape {shape} in {dtype}", given, "Keep the number of features and the dtype")
    if isinstance(old, Grouped) != isinstance(new, Grouped) and not (isinstance(old, Grouped) and rows_of(new) is None):
        refuse("memory must keep what the state knows", "fixed arms on one side", "Keep the memory, or give 'constant'")
    if isinstance(old, Grouped) and isinstance(new, Grouped) and not np.array_equal(old.features, new.features):
        refuse("arms must be those of the state", "others", "Keep the arms and their features")
    if rows is None and rows_of(new) is not None:
        refuse("memory must be 'constant'", "one that keeps rows", "A summary does not know its rewards any more")
    if rows is None and not np.array_equal(state.ridge, fresh.ridge):
        refuse(
            f"ridge must stay {float(state.ridge):g}", float(fresh.ridge), "A summary cannot take its ridge out again"
        )
    if not same_numbers(state.discount, fresh.discount):
        refuse("discount must stay as it was", fresh.discount, "Rewards are weighed when they come")
    if (state.recent is None) != (fresh.recent is None) or (
        state.recent is not None and fresh.recent is not None and state.recent.arms.shape != fresh.recent.arms.shape
    ):
        refuse("window of fixed arms must stay as it was", "another one", "Only what is in it is known")


def with_buffer(summary: Online, like: Online, theta: Array) -> Online:
    """The summary with an empty buffer, if the other one has a buffer."""
    return summary._replace(buffer=like.buffer and like.buffer.after(summary.root, theta))


def rows_of(history: Grouped | Rows | Online) -> Grouped | Rows | None:
    """The rewards that a memory keeps, one by one or by arm; None for a summary without any."""
    return history.rows if isinstance(history, Online) else history


def same_numbers(first: Array | None, second: Array | None) -> bool:
    """Whether two settings are equal, or both missing."""
    return first is second or (first is not None and second is not None and np.array_equal(first, second))


def score(state: GLMState, arms: Array, theta: Array) -> Array:
    """x_iᵀθ of each arm."""
    return arms @ theta if state.warm is None else theta @ state.warm.columns


def gram(state: GLMState) -> Array:
    """G = Σ X_l X_lᵀ, where not a root of it is kept."""
    assert not isinstance(state.history, Online)
    if state.warm is None:
        return state.history.gram()
    return jnp.einsum("ik,jk->ij", state.warm.columns * state.history.counts, state.warm.columns)


def uncertainty(state: GLMState, arms: Array) -> Array:
    """‖x_i‖_{G⁻¹} of each arm; where the past is forgotten, ‖x_i‖ in the norm of (G + λI)⁻¹."""
    if state.whitened is not None:
        return jnp.sqrt(jnp.sum(state.whitened**2, axis=0))
    if isinstance(state.history, Online):
        return jnp.sqrt(jnp.sum((arms @ state.history.gram_inverse.T) ** 2, axis=1))
    ridge = (GRAM_RIDGE if state.floor is None else state.floor) * jnp.eye(arms.shape[1], dtype=arms.dtype)
    return factorize(gram(state) + ridge).inverse_norms(arms)


def whiten_more(whitened: Array, arm: Array) -> Array:
    """The columns G^−½ x_i once x of this arm has been added to G: Potter's update, applied to the arms themselves."""
    pulled = whitened[:, arm]
    return whitened - pulled[:, None] * (shrinkage(pulled) * (pulled @ whitened))


def expected_arrays(state: GLMState) -> Expected:
    """Shapes and dtype that go with a state."""
    arms = state.history.features.shape[-2] if isinstance(state.history, Grouped) else None
    return Expected(arms, state.theta_hat.shape[-1], state.theta_hat.dtype)
