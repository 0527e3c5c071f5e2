"""The paper's theory as code: exploration scales, exploration lengths and regret bounds for a problem of one's own.

    d features, K arms, n rounds            σ noise_std: rewards are σ²-sub-Gaussian around their means
    μ̇min min_slope, μ̇max max_slope          Δmax max_gap: largest gap between two arms' mean rewards

    c1 = (σ / μ̇min) √(d log(n/d) + 2 log n)                                     how far θ̄ is from θ*

    GLM-TSL (Theorem 1)   a = c1 √μ̇max      c2 = c1 √(2 (μ̇max / μ̇min) log(Kn))
    GLM-FPL (Theorem 2)   a = c1 μ̇max       c2 = c1 (μ̇max / μ̇min) √(2 log(Kn))

    R(n) ≤ μ̇max (c1 + c2) (1 + 2 / (0.15 − p/n)) √(2dn log(2n/d)) + (τ + p + 2) Δmax,    p = 1 for TSL, 2 for FPL

after τ rounds of exploration that make the smallest eigenvalue of G = Σ x xᵀ large enough (`required_eigenvalue`).
Both theorems assume ‖x‖ ≤ 1; Theorem 2 also assumes at most one non-zero feature per arm.

Widths of the two UCB baselines, with δ = 1/n unless given:

    UCB-GLM   α = (σ / μ̇min) √((d/2) log(1 + 2n/d) + log(1/δ))                          on the score xᵀθ
    GLM-UCB   ρ = (2 μ̇max κ R_max / μ̇min) √(2 d log n · log(2dn/δ)),  κ = √(3 + 2 log(1 + 2L²/λ0))    on the mean

`describe(...)` prints all of it for one problem.

References: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020 (Theorems 1 and 2);
Li, Lu & Zhou, Provably Optimal Algorithms for Generalized Linear Contextual Bandits, ICML 2017;
Filippi, Cappé, Garivier & Szepesvári, Parametric Bandits: The Generalized Linear Case, NeurIPS 2010.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from explorax.checks import check_whole, is_number
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, TheoryNotApplicable, UnknownName
from explorax.glm import families
from explorax.glm.basis import check_spanning, spanning_arms
from explorax.glm.families import Family

OPTIMISM = 0.15  # P(N(0, 1) > 1) is at least this
THEOREMS = {"glm_tsl": 1, "glm_fpl": 2}  # policy -> p, the multiple of 1/n its events may fail with
WIDTHS = ("ucb_glm", "glm_ucb")
MOST = 10**18  # rounds, arms or features


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The constants that the theorems speak of; checked when made."""

    n_features: int
    rounds: int
    noise_std: float
    min_slope: float
    max_slope: float
    n_arms: int = 1
    max_gap: float = 1.0

    def __post_init__(self) -> None:
        for name in ("n_features", "rounds", "n_arms"):
            check_whole(name, getattr(self, name), 1, MOST)
        for name in ("noise_std", "min_slope", "max_slope"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise TheoryNotApplicable(f"{name}={value!r}: the theorems need a finite number above 0")
        if not (is_number(self.max_gap) and self.max_gap >= 0):
            raise TheoryNotApplicable(f"max_gap={self.max_gap!r} must be a finite number of at least 0")
        if self.min_slope > self.max_slope:
            raise TheoryNotApplicable(f"min_slope={self.min_slope} exceeds max_slope={self.max_slope}: exchange them")
        if self.rounds <= self.n_features:
            raise TheoryNotApplicable(
                f"rounds={self.rounds} with n_features={self.n_features}: log(n/d) needs more rounds than features"
            )
        if not _finite(self):
            raise TheoryNotApplicable(
                f"min_slope must be large enough for the theorems' constants to be finite, got {self.min_slope} "
                f"with max_slope={self.max_slope} and noise_std={self.noise_std}. Give numbers of a usual size."
            )


def _finite(at: Problem) -> bool:
    """Whether all that is computed from a problem is finite: GLM-FPL's constants are the largest."""
    try:
        largest = spread("glm_fpl", at) * at.max_slope * at.rounds**2, required_eigenvalue("glm_fpl", at)
    except OverflowError:
        return False
    return all(map(math.isfinite, largest))


def problem(
    *,
    n_features: int,
    rounds: int,
    family: str | Family = "bernoulli",
    n_arms: int = 1,
    noise_std: float | None = None,
    min_slope: float | None = None,
    max_slope: float | None = None,
    max_gap: float = 1.0,
) -> Problem:
    """A problem with what is not given taken from the family, as in the paper's experiments.

    `min_slope` defaults to the family's *largest* slope, the most optimistic value, which is what the paper's
    experiments use ("paper mode").  `min_slope_near(family, theta)` is the value that the theorems ask for.
    """
    family = families.get(family)
    if noise_std is None:
        noise_std = family.noise_std
        if noise_std is None:
            raise TheoryNotApplicable(
                f"{family.name} rewards are not sub-Gaussian, so the theorems do not cover them as they are: "
                "if yours are bounded by B, give noise_std=B/2"
            )
    if max_slope is None:
        max_slope = family.max_slope
        if not math.isfinite(max_slope):
            raise TheoryNotApplicable(
                f"the {family.name} mean has no largest slope: give max_slope, for example "
                f"theory.max_slope_near({family.name!r}, theta)"
            )
    if min_slope is None:
        min_slope = max_slope
    return Problem(
        n_features=n_features,
        rounds=rounds,
        n_arms=n_arms,
        noise_std=noise_std,
        min_slope=min_slope,
        max_slope=max_slope,
        max_gap=max_gap,
    )


def min_slope_near(family: str | Family, theta: ArrayLike, radius: float = 1.0) -> float:
    """μ̇min: the smallest slope μ̇(xᵀθ') over ‖x‖ ≤ 1 and ‖θ' − θ‖ ≤ radius.

    Scores then fill [−s, s] with s = ‖θ‖ + radius, and each family's slope is smallest at an end of it.
    """
    family, score = families.get(family), _largest_score(theta, radius)
    return min(float(family.slope(jnp.asarray(end))) for end in (-score, score))


def max_slope_near(family: str | Family, theta: ArrayLike, radius: float = 1.0) -> float:
    """The largest slope μ̇(xᵀθ') over ‖x‖ ≤ 1 and ‖θ' − θ‖ ≤ radius.

    The theorems take it over all θ'; where that is infinite (Poisson) this is the value for estimates that stay near θ.
    """
    family, score = families.get(family), _largest_score(theta, radius)
    return max(float(family.slope(jnp.asarray(point))) for point in (-score, 0.0, score))


def _largest_score(theta: ArrayLike, radius: float) -> float:
    vector = np.atleast_1d(np.asarray(theta, float))
    if vector.ndim != 1 or not np.all(np.isfinite(vector)):
        raise InvalidShape(f"theta must be a finite vector, got {theta!r}")
    return float(np.linalg.norm(vector)) + radius


def confidence(at: Problem) -> float:
    """c1, the width of the confidence set around θ̄ in the norm of G."""
    d, n = at.n_features, at.rounds
    return at.noise_std / at.min_slope * math.sqrt(d * math.log(n / d) + 2 * math.log(n))


def scale(policy: str, at: Problem) -> float:
    """a, the exploration scale that a theorem asks for."""
    _theorem(policy)
    return confidence(at) * (math.sqrt(at.max_slope) if policy == "glm_tsl" else at.max_slope)


def spread(policy: str, at: Problem) -> float:
    """c2, how far θ̃ is from θ̄ in the norm of G, for all arms at once."""
    _theorem(policy)
    ratio = at.max_slope / at.min_slope
    ratio = math.sqrt(ratio) if policy == "glm_tsl" else ratio
    return confidence(at) * ratio * math.sqrt(2 * math.log(at.n_arms * at.rounds))


def width(
    policy: str, at: Problem, *, delta: float | None = None, max_norm: float = 1.0, max_reward: float = 1.0
) -> float:
    """α of UCB-GLM or ρ of GLM-UCB (which alone reads `max_norm` L and `max_reward` R_max; λ0 is 1)."""
    if policy not in WIDTHS:
        raise UnknownName("policy with a theory width", policy, WIDTHS)
    d, n = at.n_features, at.rounds
    delta = 1 / n if delta is None else delta
    if not (is_number(delta) and 0 < delta < 1):
        raise TheoryNotApplicable(f"delta={delta!r} must lie between 0 and 1")
    if policy == "ucb_glm":
        return at.noise_std / at.min_slope * math.sqrt(d / 2 * math.log(1 + 2 * n / d) + math.log(1 / delta))
    kappa = math.sqrt(3 + 2 * math.log(1 + 2 * max_norm**2))
    return (
        2
        * at.max_slope
        * kappa
        * max_reward
        / at.min_slope
        * math.sqrt(2 * d * math.log(n) * math.log(2 * d * n / delta))
    )


def required_eigenvalue(policy: str, at: Problem, *, printed: bool = False) -> float:
    """λ_min(G_τ) that the initial exploration must reach.

    GLM-TSL and UCB-GLM: max{c1², 1}.  GLM-UCB: λ0 = 1.  GLM-FPL: max{4 c1², (2a/μ̇min)² r², 1}, where r bounds the
    norm of a standard normal vector with probability 1 − 1/n.  The paper prints r = √(2 log n), which is too small
    for d > 2 (`printed=True`); r = √d + √(2 log n) is right and the default.
    """
    c1 = confidence(at)
    if policy == "glm_ucb":
        return 1.0
    if policy in ("glm_tsl", "ucb_glm"):
        return max(c1**2, 1.0)
    _theorem(policy)
    radius = math.sqrt(2 * math.log(at.rounds)) + (0.0 if printed else math.sqrt(at.n_features))
    return max(4 * c1**2, (2 * scale(policy, at) / at.min_slope * radius) ** 2, 1.0)


class Schedule(NamedTuple):
    """Initial exploration that reaches a wanted λ_min(G)."""

    basis: np.ndarray  # d arms that span the space
    eigenvalue: float  # λ_min(M), M = Σ v vᵀ over the basis
    pulls: int  # of each arm of the basis
    rounds: int  # τ = d · pulls


def schedule(arms: ArrayLike, eigenvalue: float) -> Schedule:
    """Pull each arm of a basis ⌈C / λ_min(M)⌉ times, so that λ_min(G) ≥ C = `eigenvalue`."""
    matrix = np.asarray(arms)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidShape(f"arms have shape {matrix.shape}: give a matrix with one row of features for each arm")
    if not np.all(np.isfinite(matrix)):
        raise InvalidFeatures("arms contain NaN or infinity: clean the features first")
    basis = spanning_arms(jnp.asarray(matrix, float))
    check_spanning(matrix.shape, basis, "the theory's exploration needs a basis")
    chosen = np.asarray(basis.arms)
    smallest = float(np.linalg.eigvalsh(matrix[chosen].T @ matrix[chosen])[0])
    pulls = math.ceil(eigenvalue / smallest)
    return Schedule(chosen, smallest, pulls, matrix.shape[1] * pulls)


def regret_bound(policy: str, at: Problem, *, exploration_rounds: int = 0) -> float:
    """The theorem's bound on the n-round regret after τ = `exploration_rounds` rounds of exploration."""
    return float(regret_bounds_of_run(policy, at, at.rounds, exploration_rounds=exploration_rounds)[0])


def regret_bounds_of_run(policy: str, at: Problem, rounds: ArrayLike, *, exploration_rounds: int = 0) -> np.ndarray:
    """The bound on the regret of the first t rounds of a run designed for n, for each t ≤ n in `rounds`.

    A theorem speaks of t = n.  Its proof, stopped after t rounds, keeps the constants of n: an event that fails with
    probability 1/n in a round fails at most once in t ≤ n rounds on average, and the widths ‖x‖_{G⁻¹} of the arms
    pulled after exploration add up to at most √(2dt log(2t/d)).  At t ≤ τ the bound is true, and useless.
    """
    failures = _theorem(policy)
    d, n = at.n_features, at.rounds
    chance = OPTIMISM - failures / n
    if chance <= 0:
        raise TheoryNotApplicable(
            f"rounds={n}: the bound of {policy} needs more than {math.floor(failures / OPTIMISM)} rounds"
        )
    times = np.ravel(rounds).astype(float)
    if not np.all((times >= 1) & (times <= n)):
        raise InvalidArgument(f"rounds={rounds!r} must lie between 1 and the {n} rounds of the problem")
    per_round = at.max_slope * (confidence(at) + spread(policy, at)) * (1 + 2 / chance)
    widths = np.sqrt(2 * d * times * np.log(np.maximum(2 * times / d, 1)))
    return per_round * widths + (exploration_rounds + failures + 2) * at.max_gap


def regret_bounds(policy: str, at: Problem, rounds: ArrayLike, *, exploration_rounds: int = 0) -> np.ndarray:
    """The bound for each horizon in `rounds`, of runs designed for it each, to lay over a regret curve."""
    horizons = [replace(at, rounds=int(n)) for n in np.ravel(rounds)]
    return np.array([regret_bound(policy, one, exploration_rounds=exploration_rounds) for one in horizons])


def _theorem(policy: str) -> int:
    if policy not in THEOREMS:
        raise UnknownName("policy with a theorem", policy, THEOREMS)
    return THEOREMS[policy]


COLUMNS = ("policy", "scale or width", "c2", "required eigenvalue", "exploration rounds", "regret bound")


@dataclass(frozen=True)
class Description:
    """What the theory says about one problem; prints as a table."""

    problem: Problem
    rows: list[dict[str, float | str | None]]

    @property
    def largest_regret(self) -> float:
        """n Δmax, the most regret that any policy can have."""
        return self.problem.rounds * self.problem.max_gap

    @property
    def empty_bounds(self) -> list[str]:
        """The policies whose bound says nothing, because it is above n Δmax."""
        bounds = {str(row["policy"]): row["regret bound"] for row in self.rows}
        return [name for name, bound in bounds.items() if isinstance(bound, float) and bound > self.largest_regret]

    def __str__(self) -> str:
        at = self.problem
        head = (
            f"d = {at.n_features}, K = {at.n_arms}, n = {at.rounds}, sigma = {at.noise_std:g}, "
            f"slopes {at.min_slope:.4g} to {at.max_slope:.4g}, largest gap {at.max_gap:g}, c1 = {confidence(at):.4g}"
        )
        table = [COLUMNS, *(tuple(_cell(row[column]) for column in COLUMNS) for row in self.rows)]
        widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
        lines = [head, *("  ".join(map(str.rjust, line, widths)) for line in table)]
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
    """The theory of one problem as a table: `print(theory.describe(arms, rounds=50_000))`.

    `arms` is the matrix of features, or the number of arms together with `n_features`; exploration rounds are known
    only for a matrix, and without them the regret bound leaves their cost out.
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
            raise InvalidArgument(f"arms={arms!r} is a number: give n_features too, or the matrix of arms")
        return None, int(arms), n_features
    matrix = np.asarray(arms, float)
    if matrix.ndim != 2 or n_features not in (None, matrix.shape[1]):
        raise InvalidShape(f"arms have shape {matrix.shape}: give a matrix with one row of features for each arm")
    return matrix, *matrix.shape
