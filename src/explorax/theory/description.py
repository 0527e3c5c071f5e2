"""The theory of one problem as a table: scales, widths, exploration lengths and regret bounds of all policies."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from explorax.errors import InvalidArgument, InvalidShape
from explorax.glm.families import Family
from explorax.text import table
from explorax.theory.constants import (
    THEOREMS,
    WIDTHS,
    Problem,
    confidence,
    problem,
    required_eigenvalue,
    scale,
    spread,
    width,
)
from explorax.theory.regret import regret_bound, schedule

COLUMNS = ("policy", "scale or width", "c2", "required eigenvalue", "exploration rounds", "regret bound")


@dataclass(frozen=True)
class Description:
    """What the theory says about one problem; `print` shows it as a table.

    Attributes:
        problem: The constants of the problem.
        rows: One dictionary for each policy, with the keys "policy", "scale or width", "c2", "required eigenvalue",
            "exploration rounds" and "regret bound"; a value is None if the theory has no such number.
    """

    problem: Problem
    rows: list[dict[str, float | str | None]]

    @property
    def largest_regret(self) -> float:
        """The most regret that any policy can have, n Δmax."""
        return self.problem.rounds * self.problem.max_gap

    @property
    def empty_bounds(self) -> list[str]:
        """The names of the policies whose regret bound says nothing, because it is above n Δmax."""
        bounds = {str(row["policy"]): row["regret bound"] for row in self.rows}
        return [name for name, bound in bounds.items() if isinstance(bound, float) and bound > self.largest_regret]

    def __str__(self) -> str:
        at = self.problem
        head = (
            f"d = {at.n_features}, K = {at.n_arms}, n = {at.rounds}, sigma = {at.noise_std:g}, "
            f"slopes {at.min_slope:.4g} to {at.max_slope:.4g}, largest gap {at.max_gap:g}, c1 = {confidence(at):.4g}"
        )
        rows = [COLUMNS, *(tuple(_cell(row[column]) for column in COLUMNS) for row in self.rows)]
        lines = [head, table(rows, left=0)]
        if self.empty_bounds:
            lines.append(
                f"Regret bounds that are true but empty: {', '.join(self.empty_bounds)}. No policy can have more "
                f"regret than n times the largest gap, {_cell(self.largest_regret)}."
            )
        return "\n".join(lines)


def _cell(value: float | str | None) -> str:
    match value:
        case None:
            return "-"
        case str():
            return value
        case _ if abs(value) >= 1e15:
            return f"{value:.3g}"
        case _:
            return f"{value:.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.2f}"


def describe(
    arms: ArrayLike,
    *,
    rounds: int,
    n_features: int | None = None,
    family: str | Family = "bernoulli",
    noise_std: float | None = None,
    min_slope: float | None = None,
    max_slope: float | None = None,
    max_gap: float = 1.0,
    printed: bool = False,
) -> Description:
    """Describe what the theory says about one problem, as a table that can be printed.

    Args:
        arms: The features of the arms, a (K, d) matrix, or the number of arms K together with `n_features`.  The length
            of the exploration is known only for a matrix; without it, the regret bounds leave its cost out.
        rounds: The horizon n, which must be larger than d.
        n_features: The number of features d, needed only if `arms` is a number.
        family: The reward family: "bernoulli", "gaussian", "poisson", or a `Family`.  Default: "bernoulli".
        noise_std: The sub-Gaussian constant σ of the rewards.  Default: that of the family.
        min_slope: The smallest slope μ̇min of the mean.  Default: `max_slope`, the most optimistic value.
        max_slope: The largest slope μ̇max of the mean.  Default: that of the family.
        max_gap: The largest gap Δmax between the mean rewards of two arms.  Default: 1.
        printed: Whether GLM-FPL's required eigenvalue is the one that the paper prints.  Default: False.

    Returns:
        The table, with one row for each policy that has a theorem or a width.

    Raises:
        InvalidArgument: If `arms` is a number and `n_features` is missing, or a count is not a whole number of at
            least 1.
        InvalidShape: If `arms` is not a matrix with `n_features` columns, or has fewer rows than columns.
        InvalidFeatures: If `arms` has NaN or infinity in it, or does not span the feature space.
        UnknownName: If there is no reward family of that name.
        TheoryNotApplicable: If the theorems do not cover the problem.

    Example:
        >>> from explorax import theory
        >>> description = theory.describe(100, n_features=2, rounds=1_000_000, family="gaussian", noise_std=0.01)
        >>> [row["policy"] for row in description.rows]
        ['glm_tsl', 'glm_fpl', 'ucb_glm', 'glm_ucb']
        >>> description.largest_regret, description.empty_bounds
        (1000000.0, [])
    """
    matrix, count, size = _sizes(arms, n_features)
    at = problem(
        n_features=size,
        rounds=rounds,
        family=family,
        n_arms=count,
        noise_std=noise_std,
        min_slope=min_slope,
        max_slope=max_slope,
        max_gap=max_gap,
    )
    max_norm = 1.0 if matrix is None else float(np.max(np.linalg.norm(matrix, axis=1)))
    rows: list[dict[str, float | str | None]] = []
    for policy in (*THEOREMS, *WIDTHS):
        wanted = required_eigenvalue(policy, at, printed=printed)
        tau = None if matrix is None else schedule(matrix, wanted).rounds
        theorem = policy in THEOREMS
        rows.append(
            {
                "policy": policy,
                "scale or width": scale(policy, at) if theorem else width(policy, at, max_norm=max_norm),
                "c2": spread(policy, at) if theorem else None,
                "required eigenvalue": wanted,
                "exploration rounds": tau,
                "regret bound": regret_bound(policy, at, exploration_rounds=tau or 0) if theorem else None,
            }
        )
    return Description(at, rows)


def _sizes(arms: ArrayLike, n_features: int | None) -> tuple[np.ndarray | None, int, int]:
    if isinstance(arms, int | np.integer):
        if n_features is None:
            raise InvalidArgument(
                f"n_features must be given with arms={arms!r}, which is a number, got None. "
                "Give n_features too, or the matrix of arms."
            )
        return None, int(arms), n_features
    matrix = np.asarray(arms, float)
    if matrix.ndim != 2 or n_features not in (None, matrix.shape[1]):
        columns = "one column for each feature" if n_features is None else f"n_features={n_features} columns"
        raise InvalidShape(
            f"arms must be a matrix with one row for each arm and {columns}, got shape {matrix.shape}. "
            "Stack the feature vectors of the arms."
        )
    return matrix, *matrix.shape
