"""The results of the arena: regrets with intervals, differences from GLM-TSL, and ranks.

Intervals are mean ± 1.96 standard errors over the reported instances, which is about 95 %.  A policy is compared with
GLM-TSL instance by instance, default with default and tuned with tuned.  It is better or worse if the interval of the
differences excludes 0.

A rank is a policy's place among those of its group by mean regret on a problem, 1 for the lowest regret; ranks are
averaged over the problems of the group.  Their intervals are 2.5 % and 97.5 % quantiles over draws of the instances
with replacement, the same draws for all policies of a problem.
"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from explorax.arena.contestants import Contestant
from explorax.arena.problems import Problem
from explorax.record import Result
from explorax.text import with_error

REFERENCE = "glm_tsl"
DEVIATIONS = 1.96
DRAWS = 1_000  # of the instances, for the intervals of ranks
VARIANTS = ("default", "tuned")


class Standing(NamedTuple):
    """The result of a policy on a problem, with default settings or tuned."""

    problem: Problem
    contestant: Contestant
    variant: str
    value: float | None  # of its exploration setting; None: the default
    rounds: np.ndarray  # (C,) checkpoints
    regret: np.ndarray  # (M, C) of the reported instances
    seconds: float | None  # for each decision, its reward and the simulation around it

    @property
    def final(self) -> np.ndarray:
        """The regret of each instance after the last round."""
        return self.regret[:, -1]


class Interval(NamedTuple):
    """A mean over instances, with half the length of its 95 % interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        return with_error(self.mean, self.half, digits=1 if abs(self.mean) < 1000 else 0)


class Rank(NamedTuple):
    """The mean rank of a policy in a group of problems."""

    group: str
    policy: str
    title: str
    variant: str
    mean: float
    low: float
    high: float
    rivals: int  # policies that were ranked


def standings(
    problem: Problem,
    playing: Sequence[Contestant],
    results: Sequence[Result],
    paces: dict[str, float],
    tuning: int,
) -> list[Standing]:
    """Return the default and the tuned variant of each contestant whose curves are complete."""
    found = {result.curve: result for result in results}
    rows = []
    for one in playing:
        values: list[float | None] = [None, *one.grid]
        if not all(one.label(value) in found for value in values):
            continue
        best = min(values, key=lambda value: float(np.mean(_part(found[one.label(value)], tuning, before=True))))
        for variant, value in zip(VARIANTS, [None, best] if one.grid else [None], strict=False):
            result = found[one.label(value)]
            regret = _part(result, tuning, before=False)
            pace = paces.get(result.curve)
            rows.append(Standing(problem, one, variant, value, result.records.rounds, regret, pace))
    return rows


def _part(result: Result, tuning: int, *, before: bool) -> np.ndarray:
    """Return the regrets of the instances to tune on if `before`, and of the reported ones otherwise."""
    chosen = (result.records.instances < tuning) == before
    regret: np.ndarray = result.records.regret[chosen]
    return regret[:, -1:] if before else regret


def interval(values: np.ndarray) -> Interval:
    """Return the mean of one number for each instance, with its 95 % interval."""
    count = len(values)
    half = DEVIATIONS * float(np.std(values, ddof=1)) / count**0.5 if count > 1 else float("nan")
    return Interval(float(np.mean(values)), half)


def difference(one: Standing, rows: Iterable[Standing]) -> Interval | None:
    """Return the regret of a policy minus that of GLM-TSL, same problem and variant; None if GLM-TSL did not play."""
    for row in rows:
        same = row.problem.name == one.problem.name and row.variant == one.variant
        if same and row.contestant.policy == REFERENCE:
            return interval(one.final - row.final)
    return None


def verdict(gap: Interval | None) -> str:
    """Return whether a difference from GLM-TSL means "better", "worse" or "no difference seen"."""
    if gap is None or gap.mean == gap.half == 0:
        return "–"
    if gap.mean - gap.half > 0:
        return "worse"
    return "better" if gap.mean + gap.half < 0 else "no difference seen"


def ranks(rows: Sequence[Standing], seed: int = 0) -> list[Rank]:
    """Return the mean ranks in each group of problems of the policies that played all of them, best first."""
    found = []
    for group in dict.fromkeys(row.problem.group for row in rows):
        problems = list(dict.fromkeys(row.problem.name for row in rows if row.problem.group == group))
        for variant in VARIANTS:
            here = {
                (row.problem.name, row.contestant.policy): row
                for row in rows
                # A policy with nothing to tune is its own tuned variant.
                if row.problem.group == group and row.variant == (variant if row.contestant.grid else VARIANTS[0])
            }
            every = dict.fromkeys(policy for _, policy in here)
            names = [name for name in every if all((problem, name) in here for problem in problems)]
            if names:
                found += _ranks(group, variant, problems, names, here, np.random.default_rng(seed))
    return found


def _ranks(
    group: str,
    variant: str,
    problems: Sequence[str],
    names: Sequence[str],
    here: dict[tuple[str, str], Standing],
    random: np.random.Generator,
) -> list[Rank]:
    means, drawn = [], []
    for problem in problems:
        finals = np.stack([here[problem, name].final for name in names])  # (P, M)
        picks = random.integers(0, finals.shape[1], (DRAWS, finals.shape[1]))
        means.append(_places(finals.mean(axis=1)))
        drawn.append(_places(finals[:, picks].mean(axis=2).T))
    mean, (low, high) = np.mean(means, axis=0), np.quantile(np.mean(drawn, axis=0), (0.025, 0.975), axis=0)
    title = {name: here[problems[0], name].contestant.title for name in names}
    order = np.argsort(mean, kind="stable")
    return [
        Rank(group, names[i], title[names[i]], variant, float(mean[i]), float(low[i]), float(high[i]), len(names))
        for i in order
    ]


def _places(regrets: np.ndarray) -> np.ndarray:
    """Return ranks along the last axis, from 1 for the lowest; equal values share the mean of their ranks."""
    below = np.sum(regrets[..., None, :] < regrets[..., :, None], axis=-1)
    equal = np.sum(regrets[..., None, :] == regrets[..., :, None], axis=-1)
    return np.asarray(1 + below + (equal - 1) / 2, float)


COLUMNS = (
    "problem",
    "policy",
    "variant",
    "knob",
    "value",
    "misspecified",
    "instances",
    "rounds",
    "regret",
    "regret_half",
    "difference",
    "difference_half",
    "verdict",
    "microseconds",
)


def to_csv(rows: Sequence[Standing]) -> str:
    """Return all standings as CSV, one line each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        regret, gap = interval(row.final), difference(row, rows)
        numbers = [regret.mean, regret.half, *((None, None) if gap is None else gap)]
        writer.writerow(
            [
                row.problem.name,
                row.contestant.policy,
                row.variant,
                row.contestant.knob,
                "" if row.value is None else f"{row.value:g}",
                int(row.contestant.misspecified),
                len(row.final),
                int(row.rounds[-1]),
                *("" if number is None else f"{number:.4f}" for number in numbers),
                verdict(gap),
                "" if row.seconds is None else f"{1e6 * row.seconds:.2f}",
            ]
        )
    return text.getvalue()


def to_markdown(rows: Sequence[Standing]) -> str:
    """Return tables in Markdown for each group of problems: regret, difference from GLM-TSL, microseconds per round."""
    text = []
    for group in dict.fromkeys(row.problem.group for row in rows):
        here = [row for row in rows if row.problem.group == group]
        text.append(f"## {group[0].upper()}{group[1:]}\n")
        for variant in VARIANTS:
            of_variant = [row for row in here if row.variant == variant]
            text.append(f"### Regret, {variant}\n\n{_table(of_variant, lambda row: str(interval(row.final)))}")
            if any(difference(row, rows) for row in of_variant):
                gaps = _table(of_variant, lambda row: _marked(difference(row, rows)))
                text.append(f"### Regret minus regret of GLM-TSL, {variant}\n\n{gaps}")
        paces = _table([row for row in here if row.variant == "default"], microseconds)
        text.append(f"### Microseconds per round\n\n{paces}")
    return "\n".join(text)


def _table(rows: Sequence[Standing], cell: Callable[[Standing], str]) -> str:
    problems = list(dict.fromkeys(row.problem.name for row in rows))
    cells = {(row.contestant.policy, row.problem.name): cell(row) for row in rows}
    titles = {row.contestant.policy: title_of(row.contestant) for row in rows}
    lines = ["| policy | " + " | ".join(problems) + " |", "|---" * (len(problems) + 1) + "|"]
    for policy, title in titles.items():
        lines.append(f"| {title} | " + " | ".join(cells.get((policy, problem), "–") for problem in problems) + " |")
    return "\n".join([*lines, ""])


def title_of(one: Contestant) -> str:
    """Return the title of a policy, marked if it has a linear model of rewards that are not linear."""
    return f"{one.title} (linear model)" if one.misspecified else one.title


def _marked(gap: Interval | None) -> str:
    if gap is None or verdict(gap) == "–":
        return "–"
    mark = {"better": " ▼", "worse": " ▲"}.get(verdict(gap), "")
    return with_error(gap.mean, gap.half, digits=1, sign="+") + mark


def microseconds(row: Standing) -> str:
    """Return the microseconds of one round with three digits and no exponent; "–" if unknown."""
    if row.seconds is None:
        return "–"
    time = float(f"{1e6 * row.seconds:.3g}")
    return f"{time:.0f}" if time >= 100 else f"{time:g}"
