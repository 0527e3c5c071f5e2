"""The constants of Theorems 1 and 2, and the exploration scales and confidence widths that follow from them.

    d features, K arms, n rounds            σ noise_std: rewards are σ²-sub-Gaussian around their means
    μ̇min min_slope, μ̇max max_slope          Δmax max_gap: largest gap between two arms' mean rewards

    c1 = (σ / μ̇min) √(d log(n/d) + 2 log n)                                     how far θ̄ is from θ*

    GLM-TSL (Theorem 1)   a = c1 √μ̇max      c2 = c1 √(2 (μ̇max / μ̇min) log(Kn))
    GLM-FPL (Theorem 2)   a = c1 μ̇max       c2 = c1 (μ̇max / μ̇min) √(2 log(Kn))

Both theorems assume ‖x‖ ≤ 1; Theorem 2 also assumes at most one non-zero feature per arm.

The widths of the two UCB baselines, with δ = 1/n by default:

    UCB-GLM   α = (σ / μ̇min) √((d/2) log(1 + 2n/d) + log(1/δ))                          on the score xᵀθ
    GLM-UCB   ρ = (2 μ̇max κ R_max / μ̇min) √(2 d log n · log(2dn/δ)),  κ = √(3 + 2 log(1 + 2L²/λ0))    on the mean

References: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020 (Theorems 1 and 2);
Li, Lu & Zhou, Provably Optimal Algorithms for Generalized Linear Contextual Bandits, ICML 2017;
Filippi, Cappé, Garivier & Szepesvári, Parametric Bandits: The Generalized Linear Case, NeurIPS 2010.
"""

import math
import reprlib
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from explorax.checks import check_whole, is_number
from explorax.errors import InvalidShape, TheoryNotApplicable, UnknownName
from explorax.glm import families
from explorax.glm.families import Family

THEOREMS = {"glm_tsl": 1, "glm_fpl": 2}  # policy -> p, the multiple of 1/n its events may fail with
WIDTHS = ("ucb_glm", "glm_ucb")
MOST = 10**18  # rounds, arms or features
POSITIVE = {  # argument -> remedy
    "noise_std": "Give the sub-Gaussian constant of the rewards, which is 0.5 for rewards in [0, 1].",
    "min_slope": "Give the smallest slope of the mean, for example theory.min_slope_near(family, theta).",
    "max_slope": "Give the largest slope of the mean, for example theory.max_slope_near(family, theta).",
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The constants of a bandit problem that the theorems depend on, checked when the record is made.

    `theory.problem` makes one with the constants of a reward family as defaults.

    Attributes:
        n_features: The number of features d.
        rounds: The horizon n, which must be larger than d.
        noise_std: The sub-Gaussian constant σ of the rewards around their means.
        min_slope: The smallest slope μ̇min of the mean at scores that matter, above 0.
        max_slope: The largest slope μ̇max of the mean.
        n_arms: The number of arms K.  Default: 1.
        max_gap: The largest gap Δmax between the mean rewards of two arms.  Default: 1.

    Raises:
        InvalidArgument: If `n_features`, `rounds` or `n_arms` is not a whole number of at least 1.
        TheoryNotApplicable: If another constant is out of its range, if there are not more rounds than features, or if
            the theorems' constants would not be finite.
    """

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
        for name, remedy in POSITIVE.items():
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise TheoryNotApplicable(f"{name} must be a finite number above 0, got {value!r}. {remedy}")
        if not (is_number(self.max_gap) and self.max_gap >= 0):
            raise TheoryNotApplicable(
                f"max_gap must be a finite number of at least 0, got {self.max_gap!r}. Give the largest difference "
                "between two mean rewards."
            )
        if self.min_slope > self.max_slope:
            raise TheoryNotApplicable(
                f"min_slope must be at most max_slope={self.max_slope}, got {self.min_slope}. Exchange the two."
            )
        if self.rounds <= self.n_features:
            raise TheoryNotApplicable(
                f"rounds must be more than n_features={self.n_features}, because of log(n/d), got {self.rounds}. "
                "Plan for more rounds than features."
            )
        if not _finite(self):
            raise TheoryNotApplicable(
                f"min_slope must be large enough for the theorems' constants to be finite, got {self.min_slope} "
                f"with max_slope={self.max_slope} and noise_std={self.noise_std}. Give numbers of a usual size."
            )


def _finite(at: Problem) -> bool:
    """Return whether all constants of a problem are finite, of which those of GLM-FPL are the largest."""
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
    """Build a `Problem`, taking the constants that are left out from a reward family.

    Args:
        n_features: The number of features d.
        rounds: The horizon n, which must be larger than d.
        family: The reward family: "bernoulli", "gaussian", "poisson", or a `Family`.  Default: "bernoulli".
        n_arms: The number of arms K.  Default: 1.
        noise_std: The sub-Gaussian constant σ of the rewards.  Default: that of the family, which Poisson rewards do
            not have.
        min_slope: The smallest slope μ̇min of the mean at scores that matter.  Default: `max_slope`, the most optimistic
            value, which the paper's experiments use; `min_slope_near` computes the value that the theorems ask for.
        max_slope: The largest slope μ̇max of the mean.  Default: that of the family, which the Poisson family does not
            have; `max_slope_near` computes one for estimates near a parameter.
        max_gap: The largest gap Δmax between the mean rewards of two arms.  Default: 1.

    Returns:
        The constants of the problem.

    Raises:
        InvalidArgument: If `n_features`, `rounds` or `n_arms` is not a whole number of at least 1.
        UnknownName: If there is no reward family of that name.
        TheoryNotApplicable: If the family has no default for a constant that is left out, or if the theorems do not
            cover the problem.

    Example:
        >>> from explorax import theory
        >>> at = theory.problem(n_features=5, n_arms=100, rounds=50_000)
        >>> at.noise_std, at.min_slope, at.max_slope
        (0.5, 0.25, 0.25)
    """
    family = families.get(family)
    if noise_std is None:
        noise_std = family.noise_std
        if noise_std is None:
            raise TheoryNotApplicable(
                f"noise_std must be given for {family.name} rewards, which are not sub-Gaussian, got None. "
                "If your rewards are bounded by B, give noise_std=B/2."
            )
    if max_slope is None:
        max_slope = family.max_slope
        if not math.isfinite(max_slope):
            raise TheoryNotApplicable(
                f"max_slope must be given for the {family.name} mean, whose slope is unbounded, got None. "
                f"Give, for example, theory.max_slope_near({family.name!r}, theta)."
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
    """Return μ̇min, the smallest slope μ̇(xᵀθ') over all ‖x‖ ≤ 1 and all θ' within a radius of θ.

    The scores xᵀθ' fill the interval [−s, s] with s = ‖θ‖ + radius, and the slope of each family is smallest at one of
    its ends.

    Args:
        family: The reward family, by name or as a `Family`.
        theta: The parameter θ, a (d,) vector.
        radius: The largest distance ‖θ' − θ‖.  Default: 1, as in the theorems.

    Returns:
        The smallest slope, for the argument `min_slope` of `theory.problem`.

    Raises:
        UnknownName: If there is no reward family of that name.
        InvalidShape: If `theta` is not a finite vector.

    Example:
        >>> from explorax import theory
        >>> round(theory.min_slope_near("bernoulli", [0.6, -0.8]), 4)
        0.105
    """
    family, score = families.get(family), _largest_score(theta, radius)
    return min(float(family.slope(jnp.asarray(end))) for end in (-score, score))


def max_slope_near(family: str | Family, theta: ArrayLike, radius: float = 1.0) -> float:
    """Return the largest slope μ̇(xᵀθ') over all ‖x‖ ≤ 1 and all θ' within a radius of θ.

    The theorems take the largest slope over all θ'.  Where that is infinite, as in the Poisson family, this is the
    value for estimates that stay near θ.

    Args:
        family: The reward family, by name or as a `Family`.
        theta: The parameter θ, a (d,) vector.
        radius: The largest distance ‖θ' − θ‖.  Default: 1.

    Returns:
        The largest slope, for the argument `max_slope` of `theory.problem`.

    Raises:
        UnknownName: If there is no reward family of that name.
        InvalidShape: If `theta` is not a finite vector.

    Example:
        >>> from explorax import theory
        >>> round(theory.max_slope_near("poisson", [0.6, -0.8]), 2)
        7.39
    """
    family, score = families.get(family), _largest_score(theta, radius)
    return max(float(family.slope(jnp.asarray(point))) for point in (-score, 0.0, score))


def _largest_score(theta: ArrayLike, radius: float) -> float:
    vector = np.atleast_1d(np.asarray(theta, float))
    if vector.ndim != 1 or not np.all(np.isfinite(vector)):
        raise InvalidShape(
            f"theta must be a finite vector, got {reprlib.repr(theta)}. Give one finite number for each feature."
        )
    return float(np.linalg.norm(vector)) + radius


def confidence(at: Problem) -> float:
    """Return c1, the radius of the confidence set around the maximum-likelihood estimate in the norm of G.

    Args:
        at: The constants of the problem.

    Returns:
        c1 = (σ / μ̇min) √(d log(n/d) + 2 log n).

    Example:
        >>> from explorax import theory
        >>> round(theory.confidence(theory.problem(n_features=5, rounds=50_000)), 2)
        16.45
    """
    d, n = at.n_features, at.rounds
    return at.noise_std / at.min_slope * math.sqrt(d * math.log(n / d) + 2 * math.log(n))


def scale(policy: str, at: Problem) -> float:
    """Return a, the exploration scale that the theorem of a policy asks for.

    Args:
        policy: "glm_tsl" (Theorem 1) or "glm_fpl" (Theorem 2).
        at: The constants of the problem.

    Returns:
        a = c1 √μ̇max for GLM-TSL, c1 μ̇max for GLM-FPL.

    Raises:
        UnknownName: If the policy has no theorem.

    Example:
        >>> from explorax import theory
        >>> at = theory.problem(n_features=5, rounds=50_000)
        >>> round(theory.scale("glm_tsl", at), 2), round(theory.scale("glm_fpl", at), 2)
        (8.23, 4.11)
    """
    failures(policy)
    return confidence(at) * (math.sqrt(at.max_slope) if policy == "glm_tsl" else at.max_slope)


def spread(policy: str, at: Problem) -> float:
    """Return c2, a bound on the distance between perturbed and plain estimate in the norm of G, for all arms at once.

    Args:
        policy: "glm_tsl" (Theorem 1) or "glm_fpl" (Theorem 2).
        at: The constants of the problem.

    Returns:
        c2 = c1 √(2 (μ̇max / μ̇min) log(Kn)) for GLM-TSL, c1 (μ̇max / μ̇min) √(2 log(Kn)) for GLM-FPL.

    Raises:
        UnknownName: If the policy has no theorem.

    Example:
        >>> from explorax import theory
        >>> round(theory.spread("glm_tsl", theory.problem(n_features=5, n_arms=100, rounds=50_000)), 1)
        91.4
    """
    failures(policy)
    ratio = at.max_slope / at.min_slope
    ratio = math.sqrt(ratio) if policy == "glm_tsl" else ratio
    return confidence(at) * ratio * math.sqrt(2 * math.log(at.n_arms * at.rounds))


def width(
    policy: str, at: Problem, *, delta: float | None = None, max_norm: float = 1.0, max_reward: float = 1.0
) -> float:
    """Return the theory's confidence width of UCB-GLM (α, on scores) or GLM-UCB (ρ, on means).

    Args:
        policy: "ucb_glm" or "glm_ucb".
        at: The constants of the problem.
        delta: The probability δ with which the confidence set may fail, between 0 and 1.  Default: 1/n.
        max_norm: The largest norm L of an arm, which only GLM-UCB uses.  Default: 1.
        max_reward: The largest reward R_max, which only GLM-UCB uses.  Default: 1.

    Returns:
        α or ρ, by the formulas at the head of this module with λ0 = 1.

    Raises:
        UnknownName: If the policy has no width.
        TheoryNotApplicable: If `delta` is not between 0 and 1.

    Example:
        >>> from explorax import theory
        >>> round(theory.width("ucb_glm", theory.problem(n_features=5, rounds=50_000)), 2)
        11.93
    """
    if policy not in WIDTHS:
        raise UnknownName("policy with a theory width", policy, WIDTHS)
    d, n = at.n_features, at.rounds
    delta = 1 / n if delta is None else delta
    if not (is_number(delta) and 0 < delta < 1):
        raise TheoryNotApplicable(
            f"delta must be a number between 0 and 1, got {delta!r}. Give the probability with which the confidence "
            "set may fail, for example 0.05."
        )
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
    """Return the smallest eigenvalue of G = Σ x xᵀ that the initial exploration of a policy must reach.

    It is max{c1², 1} for GLM-TSL and UCB-GLM, λ0 = 1 for GLM-UCB, and max{4 c1², (2a/μ̇min)² r², 1} for GLM-FPL, where r
    bounds the norm of a standard normal vector with probability 1 − 1/n.  The paper prints r = √(2 log n), which is too
    small for d > 2; r = √d + √(2 log n) is right.

    Args:
        policy: "glm_tsl", "glm_fpl", "ucb_glm" or "glm_ucb".
        at: The constants of the problem.
        printed: Whether to use the r that the paper prints for GLM-FPL.  Default: False.

    Returns:
        The eigenvalue C for `theory.schedule`.

    Raises:
        UnknownName: If the policy has no theory.

    Example:
        >>> from explorax import theory
        >>> round(theory.required_eigenvalue("glm_tsl", theory.problem(n_features=5, rounds=50_000)))
        271
    """
    c1 = confidence(at)
    if policy == "glm_ucb":
        return 1.0
    if policy in ("glm_tsl", "ucb_glm"):
        return max(c1**2, 1.0)
    failures(policy)
    radius = math.sqrt(2 * math.log(at.rounds)) + (0.0 if printed else math.sqrt(at.n_features))
    return max(4 * c1**2, (2 * scale(policy, at) / at.min_slope * radius) ** 2, 1.0)


def failures(policy: str) -> int:
    """Return p, where p/n is the probability with which the good events of a policy's theorem may fail in a round."""
    if policy not in THEOREMS:
        raise UnknownName("policy with a theorem", policy, THEOREMS)
    return THEOREMS[policy]
