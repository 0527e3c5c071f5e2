"""Theorems 1 and 2 at work: GLM-TSL and GLM-FPL, played as the theorems ask, next to the bounds that these prove.

Everything that a theorem asks for is done: its exploration scale a and its τ rounds of exploration, both computed from
the μ̇min that belongs to θ* (and not from the most optimistic one, as in the paper's experiments), in a problem of its
kind.  That is, K = 100 arms with one non-zero feature each, uniform on [−1, 1], so that ‖x‖ ≤ 1 and Theorem 2 applies
too; θ* = s (1, 2, …, d) / ‖(1, 2, …, d)‖, of the known length s; rewards that are σ²-sub-Gaussian around their means:

    logistic   s = 0.2, σ = 0.5, n = 1 000 000, d = 1, 2          τ of GLM-FPL is then a good part of n
    gaussian   s = 1, σ = 0.02, n = 200 000, d = 2, 5, 10         the bounds are then below n Δmax

One thing is added: a ridge of 0.001, since early in a run the estimates would not exist without one.  It is lost among
the eigenvalues of G, which are at least 1 after exploration and far more soon.

A theorem bounds the expected regret of a problem after n rounds.  The claims ask for more: that the regret of *every*
run, each of another random problem, stays under the bound of its own problem (its own τ and Δmax), not only after n
rounds but at every checkpoint from τ on, with the bound that the proof gives there (`theory.regret_bounds_of_run`).
Whether that is worth something is another question: no policy can have more regret than n Δmax, and where the bound is
above that, all policies are under it.  The numbers of a claim say so, and the figure shows it.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 4.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from explorax import theory
from explorax.errors import InvalidArgument, UnknownName
from explorax.experiments.study import Panel, Study, curve, for_features
from explorax.record import Result
from explorax.simulation import draw
from explorax.summarize import Claim, Numbers, Question, evaluate

if TYPE_CHECKING:
    from explorax.plot import Bound

RIDGE = 1e-3
TOLERANCE = 1e-3  # error of a score that a fit may leave
LABELS = {"glm_tsl": "GLM-TSL (theory)", "glm_fpl": "GLM-FPL (theory)"}


class Kind(NamedTuple):
    """A kind of problems that fulfils the assumptions of both theorems."""

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


def study(
    *,
    environment: str = "logistic",
    dims: Sequence[int] | None = None,
    rounds: int | None = None,
    instances: int = 50,
    n_arms: int = 100,
    seed: int = 0,
    checkpoints: int | None = None,
) -> Study:
    """Both policies on problems of that kind, "logistic" or "gaussian"."""
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
    return Study(
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
) -> Study:
    """The same in small, with τ below n all the same; takes what `study` takes."""
    kind = kind_of(environment)
    dims = kind.quick_dims if dims is None else dims
    return study(environment=environment, dims=dims, rounds=kind.quick_rounds if rounds is None else rounds, **others)


def kind_of(environment: str) -> Kind:
    """The kind of problems that an environment draws here."""
    if environment not in KINDS:
        raise UnknownName("environment of the theorems", environment, KINDS)
    return KINDS[environment]


def _with_theta(panel: Panel, norm: float) -> Panel:
    direction = np.arange(1.0, panel.environment_settings["n_features"] + 1)
    theta = norm * direction / np.linalg.norm(direction)
    return panel._replace(environment_settings=panel.environment_settings | {"theta": theta.tolist()})


class Promise(NamedTuple):
    """What a theorem says of each of M instances that a policy has played."""

    explored: np.ndarray  # (M,) τ
    max_gap: np.ndarray  # (M,) Δmax
    regret: np.ndarray  # (M, C) the bound at each checkpoint; it says something from τ on


def promise(study: Study, result: Result) -> Promise:
    """The theorem's bounds for the instances of a result."""
    panel = next(one for one in study.panels if one.label == result.panel)
    settings = study.arguments(next(one for one in study.curves if one.label == result.curve), panel)
    if settings.get("warmup") != "theory":
        raise InvalidArgument(f"{result.curve}: the theorems need warmup='theory', their exploration")
    environment, numbers = study.make_environment(panel), result.records.instances
    instances = range(int(numbers.min()), int(numbers.max()) + 1)
    world = draw(environment, instances, study.seed)
    names = ("family", "noise_std", "min_slope", "max_slope")
    constants = {name: settings[name] for name in names if name in settings}
    each = []
    for number in numbers - instances.start:
        arms, means = (np.asarray(of_all[number], float) for of_all in (world.arms, world.means))
        at = theory.problem(
            n_features=environment.n_features,
            rounds=study.rounds,
            n_arms=len(arms),
            max_gap=float(means.max() - means.min()),
            **constants,
        )
        explored = theory.schedule(arms, theory.required_eigenvalue(result.policy, at)).rounds
        bound = theory.regret_bounds_of_run(result.policy, at, result.records.rounds, exploration_rounds=explored)
        each.append((explored, at.max_gap, bound))
    return Promise(*(np.array(of_all) for of_all in zip(*each, strict=True)))


def bounds(study: Study, results: Sequence[Result]) -> list["Bound"]:
    """The lowest bound of any instance from the largest τ on, the worst regret of any, and the largest Δmax."""
    from explorax.plot import Bound

    found = []
    for result in results:
        with suppress(InvalidArgument):  # a curve that no theorem is about
            promised, records = promise(study, result), result.records
            explored = int(promised.explored.max())
            after = records.rounds >= explored
            if np.any(after):
                lowest = promised.regret[:, after].min(axis=0)
                worst, max_gap = records.regret.max(axis=0), float(promised.max_gap.max())
                compared = explored, worst, max_gap
                found.append(Bound(result.policy, result.panel, records.rounds[after], lowest, *compared))
    return found


def claims(study: Study, results: Sequence[Result]) -> list[Claim]:
    """What the theorems say: in every dimension, then in each."""
    questions = [
        Question(
            f"{policy}_under_theorem_{number}",
            f"The regret of {label.partition(' ')[0]} is under the bound of Theorem {number} in every instance.",
            (label,),
            partial(_under, study, label),
        )
        for number, (policy, label) in enumerate(LABELS.items(), 1)
    ]
    return evaluate(questions, results)


def _under(study: Study, label: str, found: Mapping[str, Result]) -> tuple[bool, Numbers]:
    result = found[label]
    records, promised = result.records, promise(study, result)
    longest = int(promised.explored.max())
    if longest >= study.rounds:
        raise InvalidArgument(
            f"{result.panel}: {label} explores for {longest} of {study.rounds} rounds, and the theorem is about more: "
            "play more rounds"
        )
    after = records.rounds >= promised.explored[:, None]
    holds = np.all(records.regret[after] <= promised.regret[after])
    final, bound = records.regret[:, -1], promised.regret[:, -1]
    numbers: Numbers = {
        label: {
            "mean_regret": float(final.mean()),
            "worst_regret": float(final.max()),
            "lowest_bound": float(bound.min()),
            "bound_over_worst_regret": float(bound.min() / final.max()) if final.max() > 0 else None,
            "bound_over_largest_possible_regret": float(np.min(bound / (study.rounds * promised.max_gap))),
            "exploration_rounds": longest,
            "rounds": study.rounds,
        }
    }
    return bool(holds), numbers
