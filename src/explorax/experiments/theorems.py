"""Theorems 1 and 2 in practice: the regret of GLM-TSL and GLM-FPL, played as the theorems ask, under the proven bounds.

The policies do everything that a theorem asks for.  They use its exploration scale a and its τ rounds of exploration,
both computed from the μ̇min that belongs to θ* (and not from the most optimistic one, as in the paper's experiments).
The problem fulfills the assumptions of both theorems: K = 100 arms with one non-zero feature each, uniform on [−1, 1],
so that ‖x‖ ≤ 1 and Theorem 2 applies too; θ* = s (1, 2, …, d) / ‖(1, 2, …, d)‖ of known length s; and rewards that are
σ²-sub-Gaussian around their means:

    logistic   s = 0.2, σ = 0.5, n = 1 000 000, d = 1, 2          τ of GLM-FPL is then a large part of n
    gaussian   s = 1, σ = 0.02, n = 200 000, d = 2, 5, 10         the bounds are then below n Δmax

One thing is added: a ridge of 0.001, because early in a run the estimates would not exist without one.  The ridge is
negligible next to the eigenvalues of G, which are at least 1 after exploration and soon much larger.

A theorem bounds the expected regret of a problem after n rounds.  The claims ask for more: the regret of *every* run,
each of another random problem, must stay under the bound of its own problem (with its own τ and Δmax), not only after n
rounds but at every checkpoint from τ on, with the bound that the proof gives there (`theory.regret_bounds_of_run`).
A bound can still be too loose to be useful: no policy can have more regret than n Δmax, so a bound above n Δmax holds
for every policy.  The numbers of a claim compare the bound with n Δmax, and the figure shows both.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 4.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from explorax import theory
from explorax.claims import Claim, Evidence, Finding, Question, evaluate
from explorax.errors import InvalidArgument, UnknownName
from explorax.experiments.study import Drawing, Figure, Panel, Study, curve, for_features
from explorax.record import Result
from explorax.simulation import draw
from explorax.text import grouped

if TYPE_CHECKING:
    from explorax.plot import Bound

RIDGE = 1e-3
TOLERANCE = 1e-3  # error of a score that a fit may leave
COMPARED = (
    "Thin lines are the worst instance. Dashed lines are the lowest bound of any instance, from the end of the longest "
    "exploration τ (dotted). The gray line is the most regret that any policy could have."
)
LABELS = {"glm_tsl": "GLM-TSL (theory)", "glm_fpl": "GLM-FPL (theory)"}


class Kind(NamedTuple):
    """A class of random problems that fulfills the assumptions of both theorems."""

    name: str  # of the study
    family: str  # of the rewards
    noise_std: float  # σ
    norm: float  # ‖θ*‖
    dims: tuple[int, ...]
    rounds: int
    quick_dims: tuple[int, ...]
    quick_rounds: int


KINDS = {
    "logistic": Kind("theorems", "bernoulli", 0.5, 0.2, (1, 2), 1_000_000, (1,), 200_000),
    "gaussian": Kind("theorems-gaussian", "gaussian", 0.02, 1.0, (2, 5, 10), 200_000, (2, 5), 20_000),
}


class Promise(NamedTuple):
    """The bound of a theorem for each of M instances that a policy has played."""

    explored: np.ndarray  # (M,) τ
    max_gap: np.ndarray  # (M,) Δmax
    regret: np.ndarray  # (M, C) the bound at each checkpoint; valid from τ on


class Theorems(Study):
    """The study of GLM-TSL and GLM-FPL on problems that fulfill the assumptions of Theorems 1 and 2."""

    stem = "theorems"
    purpose = (
        "This study plays GLM-TSL and GLM-FPL as Theorems 1 and 2 of Kveton et al., Randomized Exploration in "
        "Generalized Linear Bandits (AISTATS 2020), ask, and compares their regret with the bounds of the theorems."
    )

    @classmethod
    def covers(cls, name: str, environment: str, measure: str) -> bool:
        """Return whether a study with this name, environment and measure is this experiment."""
        return (name, environment, measure) in [
            (kind.name, its_environment, "regret") for its_environment, kind in KINDS.items()
        ]

    @property
    def title(self) -> str:
        """The title of the report."""
        return f"Regret and the bounds of Theorems 1 and 2 ({self.environment} rewards)"

    def drawings(self, results: Sequence[Result], asked: Figure) -> list[Drawing]:
        """Return the one figure of this study, which always has logarithmic axes and the bounds."""
        return [Drawing("log", self.bounds(results), remark=COMPARED)]

    def promise(self, result: Result) -> Promise:
        """Compute the theorem's regret bounds for the instances of a result.

        Args:
            result: The records of one curve in one panel of this study.

        Returns:
            The exploration length τ, the largest gap Δmax and the bound of each instance.

        Raises:
            InvalidArgument: If the policy was played without the exploration that the theorem asks for.
        """
        panel = next(one for one in self.panels if one.label == result.panel)
        settings = self.arguments(next(one for one in self.curves if one.label == result.curve), panel)
        if settings.get("warmup") != "theory":
            raise InvalidArgument(
                f"warmup must be 'theory', the exploration that the theorems ask for, got "
                f"{settings.get('warmup')!r} for {result.curve}."
            )
        environment, numbers = self.make_environment(panel), result.records.instances
        instances = range(int(numbers.min()), int(numbers.max()) + 1)
        world = draw(environment, instances, self.seed)
        names = ("family", "noise_std", "min_slope", "max_slope")
        constants = {name: settings[name] for name in names if name in settings}
        each = []
        for number in numbers - instances.start:
            arms, means = (np.asarray(of_all[number], float) for of_all in (world.arms, world.means))
            at = theory.problem(
                n_features=environment.n_features,
                rounds=self.rounds,
                n_arms=len(arms),
                max_gap=float(means.max() - means.min()),
                **constants,
            )
            explored = theory.schedule(arms, theory.required_eigenvalue(result.policy, at)).rounds
            bound = theory.regret_bounds_of_run(result.policy, at, result.records.rounds, exploration_rounds=explored)
            each.append((explored, at.max_gap, bound))
        return Promise(*(np.array(of_all) for of_all in zip(*each, strict=True)))

    def bounds(self, results: Sequence[Result]) -> list["Bound"]:
        """Return the lowest bound of any instance from the largest τ on, with the worst regret and the largest Δmax."""
        from explorax.plot import Bound

        found = []
        for result in results:
            with suppress(InvalidArgument):  # a curve that no theorem is about
                promised, records = self.promise(result), result.records
                explored = int(promised.explored.max())
                after = records.rounds >= explored
                if np.any(after):
                    lowest = promised.regret[:, after].min(axis=0)
                    worst, max_gap = records.regret.max(axis=0), float(promised.max_gap.max())
                    compared = explored, worst, max_gap
                    found.append(Bound(result.policy, result.panel, records.rounds[after], lowest, *compared))
        return found

    def claims(self, results: Sequence[Result]) -> list[Claim]:
        """Judge whether all regrets are under their bounds: for all dimensions together, then for each dimension."""
        questions = [
            Question(
                f"{policy}_under_theorem_{number}",
                f"The regret of {label.partition(' ')[0]} is under the bound of Theorem {number} in every instance.",
                (label,),
                partial(self._under, label),
            )
            for number, (policy, label) in enumerate(LABELS.items(), 1)
        ]
        return evaluate(questions, results)

    def _under(self, label: str, found: Mapping[str, Result]) -> Finding:
        """Judge whether the regret of a curve is under its bound in every instance, at every checkpoint from τ on."""
        result = found[label]
        records, promised = result.records, self.promise(result)
        longest = int(promised.explored.max())
        if longest >= self.rounds:
            raise InvalidArgument(
                f"{label} explores for {longest} of {self.rounds} rounds, and the theorem is about longer runs. "
                "Play more rounds."
            )
        after = records.rounds >= promised.explored[:, None]
        under = np.all((records.regret <= promised.regret) | ~after, axis=1)  # (M,) of each instance
        final, bound = records.regret[:, -1], promised.regret[:, -1]
        worst, lowest = float(final.max()), float(bound.min())
        over_trivial = float(np.min(bound / (self.rounds * promised.max_gap)))
        compared = "" if worst <= 0 else f", {_times(lowest / worst)} times as much"
        sentences = (
            f"The regret of {label} is under its bound in {under.sum()} of {len(under)} instances.",
            f"After {grouped(self.rounds)} rounds the largest regret is {worst:.1f}, and the lowest bound is "
            f"{grouped(round(lowest))}{compared}.",
            f"The bound is at least {_times(over_trivial)} times the largest regret that any policy could have.",
            f"Exploration takes up to {grouped(longest)} rounds.",
        )
        numbers = {
            "mean_regret": float(final.mean()),
            "worst_regret": worst,
            "lowest_bound": lowest,
            "bound_over_worst_regret": lowest / worst if worst > 0 else None,
            "bound_over_largest_possible_regret": over_trivial,
            "exploration_rounds": longest,
            "rounds": self.rounds,
        }
        return Finding({label: numbers}, (Evidence(" ".join(sentences), bool(under.all())),))


def study(
    *,
    environment: str = "logistic",
    dims: Sequence[int] | None = None,
    rounds: int | None = None,
    instances: int = 50,
    n_arms: int = 100,
    seed: int = 0,
    checkpoints: int | None = None,
) -> Theorems:
    """Return the study of GLM-TSL and GLM-FPL under the bounds of Theorems 1 and 2.

    Args:
        environment: "logistic" for rewards of 0 and 1, "gaussian" for normal rewards. Default: "logistic".
        dims: Numbers of features d. Default: 1 and 2; for normal rewards 2, 5 and 10.
        rounds: Length n of a run. Default: 1 000 000; for normal rewards 200 000.
        instances: Number of random problems that both policies play. Default: 50.
        n_arms: Number of arms K. Default: 100.
        seed: Seed of the random problems and of the policies. Default: 0.
        checkpoints: How many times regret is recorded in a run. Default: 100, or every round of a shorter run.

    Returns:
        A study to pass to `explorax.runner.run`.
    """
    kind = kind_of(environment)
    settings = {
        "warmup": "theory",
        "family": kind.family,
        "noise_std": kind.noise_std,
        "min_slope": theory.min_slope_near(kind.family, [kind.norm]),
        "ridge": RIDGE,
        "tolerance": TOLERANCE,
    }
    noise = {"noise_std": kind.noise_std} if environment == "gaussian" else {}
    return Theorems(
        name=kind.name,
        environment=environment,
        environment_settings={"n_arms": n_arms, "nonzero": 1} | noise,
        panels=tuple(_with_theta(panel, kind.norm) for panel in for_features(kind.dims if dims is None else dims)),
        rounds=kind.rounds if rounds is None else rounds,
        instances=instances,
        seed=seed,
        checkpoints=checkpoints,
        spacing="log",
        curves=tuple(curve(policy, "theory", settings=settings) for policy in LABELS),
    )


def quick(
    *, environment: str = "logistic", dims: Sequence[int] | None = None, rounds: int | None = None, **others: Any
) -> Theorems:
    """Return a smaller version of the study of the theorems, in which τ is still below n.

    Args:
        environment: "logistic" or "gaussian". Default: "logistic".
        dims: Numbers of features d. Default: 1; for normal rewards 2 and 5.
        rounds: Length n of a run. Default: 200 000; for normal rewards 20 000.
        **others: Further arguments of `study`.

    Returns:
        A study to pass to `explorax.runner.run`.
    """
    kind = kind_of(environment)
    dims = kind.quick_dims if dims is None else dims
    return study(environment=environment, dims=dims, rounds=kind.quick_rounds if rounds is None else rounds, **others)


def kind_of(environment: str) -> Kind:
    """Return the problems that are drawn for an environment; raise `UnknownName` for any other environment."""
    if environment not in KINDS:
        raise UnknownName("environment of the theorems", environment, KINDS)
    return KINDS[environment]


def _times(ratio: float) -> str:
    """Return a ratio with three digits, without an exponent if it is large."""
    return f"{ratio:.3g}" if ratio < 100 else grouped(round(ratio))


def _with_theta(panel: Panel, norm: float) -> Panel:
    direction = np.arange(1.0, panel.environment_settings["n_features"] + 1)
    theta = norm * direction / np.linalg.norm(direction)
    return panel._replace(environment_settings=panel.environment_settings | {"theta": theta.tolist()})
