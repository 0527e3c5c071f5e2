"""The initial exploration that Theorems 1 and 2 ask for, and the regret bounds that they prove.

    R(n) ≤ μ̇max (c1 + c2) (1 + 2 / (0.15 − p/n)) √(2dn log(2n/d)) + (τ + p + 2) Δmax,    p = 1 for TSL, 2 for FPL

after τ rounds of exploration that make the smallest eigenvalue of G = Σ x xᵀ large enough
(`constants.required_eigenvalue`).  The other symbols are those of `constants`.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020.
"""

import math
import reprlib
from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, TheoryNotApplicable
from explorax.glm.basis import check_spanning, spanning_arms
from explorax.theory.constants import Problem, confidence, failures, spread

OPTIMISM = 0.15  # P(N(0, 1) > 1) is at least this


class Schedule(NamedTuple):
    """A plan of initial exploration that makes λ_min(G) as large as wanted.

    Attributes:
        basis: The indices of d arms that span the feature space, a (d,) array.
        eigenvalue: λ_min(M) of M = Σ v vᵀ, the sum over the arms v of the basis.
        pulls: How often each arm of the basis has to be pulled.
        rounds: The length of the exploration, τ = d · pulls.
    """

    basis: np.ndarray
    eigenvalue: float
    pulls: int
    rounds: int


def schedule(arms: ArrayLike, eigenvalue: float) -> Schedule:
    """Plan an initial exploration: pull each arm of a basis ⌈C / λ_min(M)⌉ times, so that λ_min(G) ≥ C.

    Args:
        arms: The features of the arms, a (K, d) matrix that spans the feature space.
        eigenvalue: The wanted C, for example from `theory.required_eigenvalue`.

    Returns:
        Which arms to pull, how often, and the number of rounds τ that this takes.

    Raises:
        InvalidShape: If `arms` is not a matrix, or has fewer rows than columns.
        InvalidFeatures: If `arms` has NaN or infinity in it, or does not span the feature space.

    Example:
        >>> import numpy as np
        >>> from explorax import theory
        >>> plan = theory.schedule(np.diag([1.0, 0.5]), 30.0)
        >>> plan.eigenvalue, plan.pulls, plan.rounds
        (0.25, 120, 240)
    """
    matrix = np.asarray(arms)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidShape(
            f"arms must be a matrix with one row of features for each arm, got shape {matrix.shape}. "
            "Stack the feature vectors of the arms."
        )
    if not np.all(np.isfinite(matrix)):
        raise InvalidFeatures("arms must be finite, got NaN or infinity. Clean the features first.")
    basis = spanning_arms(jnp.asarray(matrix, float))
    check_spanning(matrix.shape, basis, "Add arms in the missing directions")
    chosen = np.asarray(basis.arms)
    smallest = float(np.linalg.eigvalsh(matrix[chosen].T @ matrix[chosen])[0])
    pulls = math.ceil(eigenvalue / smallest)
    return Schedule(chosen, smallest, pulls, matrix.shape[1] * pulls)


def regret_bound(policy: str, at: Problem, *, exploration_rounds: int = 0) -> float:
    """Return the theorem's bound on the expected regret of a policy after all n rounds.

    Args:
        policy: "glm_tsl" (Theorem 1) or "glm_fpl" (Theorem 2).
        at: The constants of the problem, with n as `rounds`.
        exploration_rounds: The length τ of the initial exploration.  Default: 0.

    Returns:
        The bound.

    Raises:
        UnknownName: If the policy has no theorem.
        TheoryNotApplicable: If n is too small for the theorem.

    Example:
        >>> from explorax import theory
        >>> at = theory.problem(n_features=2, n_arms=10, rounds=10_000, family="gaussian", noise_std=0.01)
        >>> round(theory.regret_bound("glm_tsl", at, exploration_rounds=4))
        3013
    """
    return float(regret_bounds_of_run(policy, at, at.rounds, exploration_rounds=exploration_rounds)[0])


def regret_bounds_of_run(policy: str, at: Problem, rounds: ArrayLike, *, exploration_rounds: int = 0) -> np.ndarray:
    """Return bounds on the expected regret after t ≤ n rounds of one run that is designed for n rounds.

    A theorem speaks of t = n.  Its proof, stopped after t rounds, keeps the constants of n: an event that fails with
    probability 1/n in a round fails at most once in t ≤ n rounds on average, and the widths ‖x‖_{G⁻¹} of the arms
    pulled after exploration add up to at most √(2dt log(2t/d)).  At t ≤ τ the bound is true, and useless.

    Args:
        policy: "glm_tsl" (Theorem 1) or "glm_fpl" (Theorem 2).
        at: The constants of the problem, with n as `rounds`.
        rounds: The numbers of rounds t, each from 1 to n.
        exploration_rounds: The length τ of the initial exploration.  Default: 0.

    Returns:
        A vector with one bound for each t.

    Raises:
        UnknownName: If the policy has no theorem.
        TheoryNotApplicable: If n is too small for the theorem.
        InvalidArgument: If a t is not between 1 and n.

    Example:
        >>> from explorax import theory
        >>> at = theory.problem(n_features=2, n_arms=10, rounds=10_000, family="gaussian", noise_std=0.01)
        >>> theory.regret_bounds_of_run("glm_tsl", at, [100, 1000, 10_000]).round().tolist()
        [216.0, 826.0, 3009.0]
    """
    p = failures(policy)
    d, n = at.n_features, at.rounds
    chance = OPTIMISM - p / n
    if chance <= 0:
        raise TheoryNotApplicable(
            f"rounds must be more than {math.floor(p / OPTIMISM)} for the bound of {policy}, got {n}. "
            "Plan for more rounds."
        )
    times = np.ravel(rounds).astype(float)
    if not np.all((times >= 1) & (times <= n)):
        raise InvalidArgument(
            f"rounds must lie between 1 and the {n} rounds of the problem, got {reprlib.repr(rounds)}. "
            "Leave out the others, or plan for more rounds."
        )
    per_round = at.max_slope * (confidence(at) + spread(policy, at)) * (1 + 2 / chance)
    widths = np.sqrt(2 * d * times * np.log(np.maximum(2 * times / d, 1)))
    return per_round * widths + (exploration_rounds + p + 2) * at.max_gap


def regret_bounds(policy: str, at: Problem, rounds: ArrayLike, *, exploration_rounds: int = 0) -> np.ndarray:
    """Return the theorem's bounds for several horizons, each for runs that are designed for that horizon.

    Args:
        policy: "glm_tsl" (Theorem 1) or "glm_fpl" (Theorem 2).
        at: The constants of the problem; its own `rounds` are not used.
        rounds: The horizons n.
        exploration_rounds: The length τ of the initial exploration.  Default: 0.

    Returns:
        A vector with one bound for each horizon, to draw over a regret curve.

    Raises:
        UnknownName: If the policy has no theorem.
        TheoryNotApplicable: If a horizon is too small for the theorem.

    Example:
        >>> from explorax import theory
        >>> at = theory.problem(n_features=2, n_arms=10, rounds=10_000, family="gaussian", noise_std=0.01)
        >>> theory.regret_bounds("glm_tsl", at, [100, 1000, 10_000]).round().tolist()
        [131.0, 653.0, 3009.0]
    """
    horizons = [replace(at, rounds=int(n)) for n in np.ravel(rounds)]
    return np.array([regret_bound(policy, one, exploration_rounds=exploration_rounds) for one in horizons])
