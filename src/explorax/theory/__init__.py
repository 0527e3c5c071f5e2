"""The paper's theory as code: exploration scales, exploration lengths and regret bounds for a problem of your own.

    constants       the constants of Theorems 1 and 2, exploration scales, and widths of the UCB baselines
    regret          the exploration that the theorems ask for, and the regret bounds that they prove
    description     all of it for one problem, as a table

`theory.problem(...)` checks the constants of a problem; all other functions take what it returns.
`print(theory.describe(arms, rounds=50_000))` shows everything at once.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020 (Theorems 1 and 2).
"""

from explorax.theory.constants import (
    THEOREMS,
    WIDTHS,
    Problem,
    confidence,
    max_slope_near,
    min_slope_near,
    problem,
    required_eigenvalue,
    scale,
    spread,
    width,
)
from explorax.theory.description import Description, describe
from explorax.theory.regret import (
    OPTIMISM,
    Schedule,
    regret_bound,
    regret_bounds,
    regret_bounds_of_run,
    schedule,
)

__all__ = [
    "OPTIMISM",
    "THEOREMS",
    "WIDTHS",
    "Description",
    "Problem",
    "Schedule",
    "confidence",
    "describe",
    "max_slope_near",
    "min_slope_near",
    "problem",
    "regret_bound",
    "regret_bounds",
    "regret_bounds_of_run",
    "required_eigenvalue",
    "scale",
    "schedule",
    "spread",
    "width",
]
