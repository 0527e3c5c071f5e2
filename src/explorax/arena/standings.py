"""What the arena found: regrets with intervals, differences from GLM-TSL, ranks.

Intervals are mean ± 1.96 standard errors over the reported instances, about 95 %.  A policy is compared with GLM-TSL
instance by instance, default with default and tuned with tuned; it is better or worse where the interval of the
differences leaves out 0.

A rank is a policy's place among those of its group by mean regret on a problem, 1 for the lowest; ranks are averaged
over the problems of the group.  Their intervals are 2.5 % and 97.5 % quantiles over draws of the instances with
replacement, the same draws for all policies of a problem.
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
    """A policy on a problem, as documented or tuned."""

    problem: Problem
    contestant: Contestant
    variant: str
    value: float | None  # of its knob; None: the default
    rounds: np.ndarray  # (C,) checkpoints
    regret: np.ndarray  # (M, C) of the reported instances
    seconds: float | None  # for each decision, its reward and the simulation around it

    @property
    def final(self) -> np.ndarray:
        """Regret of each instance at the end."""
        return self.regret[:, -1]


class Interval(NamedTuple):
    """A mean over instances, and half the length of its interval."""

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
    """Both variants of each contestant whose curves are all there; one without a knob has its default only."""
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
    """Regrets of the instances to tune on, or of the others."""
    chosen = (result.records.instances < tuning) == before
    regret: np.ndarray = result.records.regret[chosen]
    return regret[:, -1:] if before else regret


def interval(values: np.ndarray) -> Interval:
    """The mean of one number for each instance."""
    count = len(values)
    half = DEVIATIONS * float(np.std(values, ddof=1)) / count**0.5 if count > 1 else float("nan")
    return Interval(float(np.mean(values)), half)


def difference(one: Standing, rows: Iterable[Standing]) -> Interval | None:
    """Its regret minus that of GLM-TSL's same variant on the same problem; None where that did not play."""
    for row in rows:
        same = row.problem.name == one.problem.name and row.variant == one.variant
        if same and row.contestant.policy == REFERENCE:
            return interval(one.final - row.final)
    return None


def verdict(gap: Interval | None) -> str:
    """What a difference from GLM-TSL says."""
    if gap is None or gap.mean == gap.half == 0:
        return "–"
    if gap.mean - gap.half > 0:
        return "worse"
    return "better" if gap.mean + gap.half < 0 else "no difference seen"


def ranks(rows: Sequence[Standing], seed: int = 0) -> list[Rank]:
    """Mean ranks within each group of problems, of the policies that played all of these; best first."""
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
    """The place of each along the last axis, from 1 for the lowest; equal ones share the mean of their places."""
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
    """All standings, a line each."""
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
    """Tables for each group of problems, a line for each policy: regret, difference from GLM-TSL, microseconds."""
    text = []
    for group in dict.fromkeys(row.problem.group for row in rows):
        here = [row for row in rows if row.problem.group == group]
        text.append(f"## {group[0].upper()}{group[1:]}\n")
        for variant in VARIANTS:
            of_variant = [row for row in here if row.variant == variant]
            text.append(f"### Regret, {variant}\n\n{_table(of_variant, lambda row: str(interval(row.final)))}")
            if any(difference(row, rows) for row in of_variant):
                gaps = _table(of_variant, lambda row: _marked(difference(row, rows)))
                text.append(f"### Regret minus that of GLM-TSL, {variant}\n\n{gaps}")
        paces = _table([row for row in here if row.variant == "default"], microseconds)
        text.append(f"### Microseconds for a round\n\n{paces}")
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
    """Its title, and a warning where its model is wrong."""
    return f"{one.title} (linear model)" if one.misspecified else one.title


def _marked(gap: Interval | None) -> str:
    if gap is None or verdict(gap) == "–":
        return "–"
    mark = {"better": " ▼", "worse": " ▲"}.get(verdict(gap), "")
    return with_error(gap.mean, gap.half, digits=1, sign="+") + mark


def microseconds(row: Standing) -> str:
    """Of one round, in three digits and no exponent."""
    if row.seconds is None:
        return "–"
    time = float(f"{1e6 * row.seconds:.3g}")
    return f"{time:.0f}" if time >= 100 else f"{time:g}"
