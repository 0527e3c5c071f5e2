"""The logistic bandit of the paper's Figure 1: settings as data, claims as functions of the results.

K = 100 arms drawn uniformly from [−1, 1]^d and fixed, θ* ~ N(0, (3/d) I), rewards Ber(μ(xᵀθ*)) with μ the logistic
function; d ∈ {5, 10, 20}, n = 50 000 rounds, 100 instances, the same for every curve; the first d pulls are d linearly
independent arms.  GLM-UCB, UCB-GLM, GLM-TSL and GLM-FPL, each as analyzed (theory) and as people run it (informal).

`Figure1.claims` checks what the paper says about the figure, with "beats", "linear" and "sublinear" as
`explorax.summarize` defines them.  The paper does not define "low"; here, a policy has low regret if it beats the
theory designs of GLM-TSL, GLM-FPL and GLM-UCB.  The theory design of UCB-GLM, the best of the four, is left out: the
paper does not claim that the informal designs beat it, and in trials informal GLM-FPL had more regret at d = 5.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.1.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from explorax.claims import Claim, Evidence, Finding, Question, beat, evaluate
from explorax.experiments.study import Curve, Study, curve, each_policy_once, for_features, taken
from explorax.record import Result
from explorax.registry import entry_of
from explorax.summarize import growth
from explorax.text import with_error

POLICIES = ("glm_ucb", "ucb_glm", "glm_tsl", "glm_fpl")
DIMS = (5, 10, 20)


class Figure1(Study):
    """The study of the paper's Figure 1, or a variation on it, judged by the paper's four claims."""

    title = "Regret in logistic bandits (Figure 1)"
    paper_rounds = 50_000
    purpose = (
        "A reproduction of Figure 1 of Kveton et al., Randomized Exploration in Generalized Linear Bandits (AISTATS "
        "2020): policies that explore as their analysis asks (theory) and as is usual in practice (informal)."
    )

    @classmethod
    def covers(cls, name: str, environment: str, measure: str) -> bool:
        """Return whether a study with this name, environment and measure is this experiment."""
        return (name, environment, measure) == ("logistic", "logistic", "regret")

    def claims(self, results: Sequence[Result]) -> list[Claim]:
        """Judge the paper's four claims: each one for all dimensions together, then for each dimension."""
        return evaluate(QUESTIONS, results)


def study(
    *,
    dims: Sequence[int] = DIMS,
    rounds: int = Figure1.paper_rounds,
    instances: int = 100,
    policies: Iterable[str] | None = None,
    ridge: float = 1.0,
    seed: int = 0,
    tolerance: float | None = 1e-3,
    n_arms: int = 100,
    parameter_variance: float | Literal["printed"] | None = None,
    checkpoints: int | None = None,
    spacing: str = "even",
) -> Figure1:
    """Return the study of Figure 1, or a variation on it.

    Args:
        dims: Numbers of features d. The figure has one panel for each. Default: 5, 10 and 20.
        rounds: Length n of a run. Default: 50 000.
        instances: Number of random problems that every curve plays. Default: 100.
        policies: Names of policies in the registry. Default: GLM-UCB, UCB-GLM, GLM-TSL and GLM-FPL, as in the paper.
        ridge: Regularization of the fits, for the policies that take it. Default: 1.
        seed: Seed of the random problems and of the policies. Default: 0.
        tolerance: Largest error of a score that a fit may leave, or None for the policies' own. Default: 0.001.
        n_arms: Number of arms K. Default: 100.
        parameter_variance: Variance v of θ* ~ N(0, vI), "printed" for the 3/d² in the paper's text, or None for 3/d.
        checkpoints: How many times regret is recorded in a run. Default: 100, or every round of a shorter run.
        spacing: "even" or "log", the spacing of the checkpoints. Default: "even".

    Returns:
        A study to pass to `explorax.runner.run`.

    Example:
        >>> from explorax.experiments import logistic
        >>> brief = logistic.study(dims=[5], rounds=1_000, policies=["glm_tsl"])
        >>> [one.label for one in brief.curves]
        ['GLM-TSL (theory)', 'GLM-TSL (informal)']
    """
    variance = {} if parameter_variance is None else {"parameter_variance": parameter_variance}
    return Figure1(
        name="logistic",
        environment="logistic",
        environment_settings={"n_arms": n_arms} | variance,
        panels=for_features(dims),
        rounds=rounds,
        instances=instances,
        seed=seed,
        checkpoints=checkpoints,
        spacing=spacing,
        curves=tuple(
            one
            for policy in (POLICIES if policies is None else each_policy_once(policies))
            for one in _curves(policy, ridge, tolerance)
        ),
    )


def quick(*, dims: Sequence[int] = DIMS, rounds: int = 2_000, instances: int = 50, **others: Any) -> Figure1:
    """Return a small version of Figure 1, which runs in a few minutes on a laptop.

    Informal GLM-UCB does not have linear regret so early: few instances are stuck, and they have not paid much yet.

    Args:
        dims: Numbers of features d. Default: 5, 10 and 20.
        rounds: Length n of a run. Default: 2 000.
        instances: Number of random problems that every curve plays. Default: 50.
        **others: Further arguments of `study`.

    Returns:
        A study to pass to `explorax.runner.run`.
    """
    return study(dims=dims, rounds=rounds, instances=instances, **others)


def _curves(policy: str, ridge: float, tolerance: float | None) -> list[Curve]:
    """Return one curve for each design of a policy, the theory design first."""
    settings = taken(policy, {"ridge": ridge} | ({} if tolerance is None else {"tolerance": tolerance}))
    designs = sorted(entry_of(policy).designs, reverse=True)
    return [curve(policy, design, settings=settings) for design in designs or [""]]


def _grow(curves: Sequence[str], linear: bool, found: Mapping[str, Result]) -> Finding:
    """Judge whether the regret of each curve grows linearly, or sublinearly if `linear` is false."""
    grown = {label: growth(found[label].records) for label in curves}
    evidence = []
    for label, one in grown.items():
        count = len(found[label].records.instances)
        stuck = f"{one.stuck} of {count} instances {'is' if one.stuck == 1 else 'are'} stuck"
        how = f"growth exponent {with_error(one.exponent, one.stderr, 2)}, {stuck}"
        sentence = f"The regret of {label} grows {'linearly' if one.linear else 'sublinearly'}: {how}."
        evidence.append(Evidence(sentence, one.linear == linear))
    return Finding({label: one._asdict() for label, one in grown.items()}, tuple(evidence))


def _low_and_sublinear(curves: Sequence[str], others: Sequence[str], found: Mapping[str, Result]) -> Finding:
    """Judge whether the regret of each curve grows sublinearly and is lower than that of each of the others."""
    sublinear = _grow(curves, False, found)
    low = beat([(one, other) for one in curves for other in others], "regret", found)
    return Finding(sublinear.numbers | low.numbers, sublinear.evidence + low.evidence)


GLM_UCB, UCB_GLM, TSL, FPL = (f"{name} (theory)" for name in ("GLM-UCB", "UCB-GLM", "GLM-TSL", "GLM-FPL"))
INFORMAL_UCBS = ("GLM-UCB (informal)", "UCB-GLM (informal)")
INFORMAL_RANDOMIZED = ("GLM-TSL (informal)", "GLM-FPL (informal)")

QUESTIONS = (
    Question(
        "randomized_beat_glm_ucb",
        "Theory GLM-TSL and GLM-FPL beat theory GLM-UCB.",
        (TSL, FPL, GLM_UCB),
        partial(beat, ((TSL, GLM_UCB), (FPL, GLM_UCB)), "regret"),
    ),
    Question(
        "ucb_glm_beats_randomized",
        "Theory UCB-GLM beats theory GLM-TSL and GLM-FPL.",
        (UCB_GLM, TSL, FPL),
        partial(beat, ((UCB_GLM, TSL), (UCB_GLM, FPL)), "regret"),
    ),
    Question(
        "informal_ucbs_are_linear",
        "Informal GLM-UCB and UCB-GLM have linear regret.",
        INFORMAL_UCBS,
        partial(_grow, INFORMAL_UCBS, True),
    ),
    Question(
        "informal_randomized_are_low",
        "Informal GLM-TSL and GLM-FPL have low, sublinear regret.",
        (*INFORMAL_RANDOMIZED, TSL, FPL, GLM_UCB),
        partial(_low_and_sublinear, INFORMAL_RANDOMIZED, (TSL, FPL, GLM_UCB)),
    ),
)
