"""From results to tables, curves over rounds, comparisons and the growth of regret.

The measure of an instance is its cumulative regret, the less the better, or its reward per round so far, the more the
better.  Means and standard errors are over instances.  Two policies are compared on the instances that both played, by
the mean of the paired differences D of their measures at the end: one *beats* the other if it is better by more than 2
standard errors of D, that is, for regret, if mean D + 2 s.e. D < 0.

How fast the mean regret R grows is judged by one statistic, its growth exponent late in the run of n rounds:

    γ = 1 + log₂ (r₂ / r₁),    r₁ = (R(n/2) − R(n/4)) / (n/4),    r₂ = (R(n) − R(n/2)) / (n/2)

that is, by how regret per round changes from the second quarter of the run to its second half.  For R(t) = A + B f(t)
with f(t) = t, √t or log t it is 1, 1/2 or 0, whatever A and B.  R grows *linearly* if γ > 3/4, the middle between t and
√t, and *sublinearly* if γ < 3/4.

The slope of log R against log t is not used for this.  A policy that is stuck forever in a few instances has linear
regret, but the regret A that all instances paid while learning hides it for a long time: the slope of A + Bt is
Bt / (A + Bt).  That slope over the last two thirds of the run, the share of the regret paid in its second half (1/2 if
linear, 0.29 for √t) and the number of stuck instances are reported beside γ, and are not judged.  The choice matters,
and was made after looking at curves of trial runs: docs/results.md shows where the two statistics disagree.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from explorax.errors import InvalidArgument
from explorax.files import write_atomically
from explorax.places import Place
from explorax.record import Records, Result
from explorax.text import Table, with_error

LINEAR_ABOVE = 0.75  # growth exponent; see above
BEATS_BY = 2.0  # standard errors
MEASURES = ("regret", "reward")
NAMES = {"regret": ("Regret", 1), "reward": ("Average reward", 4)}  # of a measure, and the digits after its point
CLIP = (-1.0, 2.0)  # of the growth exponent, which is −∞ if no regret is paid at the end
STEADY = 1e-3  # relative spread of the increments of an instance that always pulls the same arm

Tags = Mapping[str, str | int]


class Summary(NamedTuple):
    """The measure of one curve in one panel at the end of the run, over all instances."""

    policy: str
    design: str
    panel: str
    rounds: int
    instances: int
    mean: float
    stderr: float | None  # None with a single instance
    compile_seconds: float | None  # None, as the next, if compiling and running were not timed separately
    run_seconds: float | None
    curve: str
    q10: float
    q50: float
    q90: float
    max: float
    unconverged: int


class Series(NamedTuple):
    """The mean measure of one curve in one panel at each checkpoint."""

    curve: str
    policy: str
    design: str
    environment: str
    panel: str
    rounds: np.ndarray  # (C,)
    mean: np.ndarray  # (C,)
    stderr: np.ndarray | None  # (C,); None with a single instance


class Comparison(NamedTuple):
    """The difference of two policies' measures at the end, over the instances that both played."""

    difference: float  # mean over instances
    stderr: float
    z: float | None  # difference / stderr; None if stderr is 0
    instances: int
    beats: bool  # whether the first is better, by more than two standard errors


class Growth(NamedTuple):
    """How fast mean regret grows; claims are judged by `exponent`."""

    exponent: float  # γ
    stderr: float  # of γ, by the jackknife over instances
    slope: float | None  # of log R against log t over the last two thirds; None if there are too few points
    late_share: float  # (R(n) − R(n/2)) / R(n)
    stuck: int  # instances that paid the same regret, above 0, in every round of the second half

    @property
    def linear(self) -> bool:
        """Whether mean regret grows linearly, i.e. its growth exponent is above 3/4."""
        return self.exponent > LINEAR_ABOVE


def measured(records: Records, measure: str) -> np.ndarray:
    """Return the measure of each instance at each checkpoint: cumulative regret, or reward per round."""
    return records.regret if measure == "regret" else records.reward / records.rounds


def mean_and_stderr(values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the mean over the first axis and its standard error, which is None for a single value."""
    count = len(values)
    stderr = np.std(values, axis=0, ddof=1) / math.sqrt(count) if count > 1 else None
    return np.mean(values, axis=0), stderr


def summarize(results: Iterable[Result], measure: str) -> list[Summary]:
    """Return the row of summary.csv for each result."""
    return [_summary(result, measure) for result in results]


def _summary(result: Result, measure: str) -> Summary:
    records = result.records
    final = measured(records, measure)[:, -1]
    mean, stderr = mean_and_stderr(final)
    q10, q50, q90 = np.quantile(final, (0.1, 0.5, 0.9))
    return Summary(
        policy=result.policy,
        design=result.design,
        panel=result.panel,
        rounds=int(records.rounds[-1]),
        instances=len(final),
        mean=float(mean),
        stderr=None if stderr is None else float(stderr),
        compile_seconds=result.compile_seconds,
        run_seconds=None if result.compile_seconds is None else result.seconds - result.compile_seconds,
        curve=result.curve,
        q10=float(q10),
        q50=float(q50),
        q90=float(q90),
        max=float(np.max(final)),
        unconverged=int(np.sum(records.unconverged)),
    )


def overview(summaries: Sequence[Summary], measure: str) -> Table:
    """Return the table of the mean measure of each curve in each panel, with standard errors."""
    name, digits = NAMES[measure]
    counts = sorted({row.instances for row in summaries})
    over = f"{counts[0]} instances" if len(counts) == 1 else f"the instances in brackets, {counts[0]} to {counts[-1]}"
    curves, panels = ({getattr(row, kind): None for row in summaries} for kind in ("curve", "panel"))  # in their order
    cells = {}
    for row in summaries:
        its_count = f" ({row.instances})" if len(counts) > 1 else ""
        cells[row.curve, row.panel] = with_error(row.mean, row.stderr, digits) + its_count
    return Table(
        f"{name} after {summaries[0].rounds} rounds, mean ± standard error over {over}",
        ["", *panels],
        [[curve, *(cells.get((curve, panel), "-") for panel in panels)] for curve in curves],
    )


def series(results: Iterable[Result], measure: str) -> list[Series]:
    """Return the mean measure over rounds, with standard errors, for each result."""
    return [
        Series(*result[:5], result.records.rounds, *mean_and_stderr(measured(result.records, measure)))
        for result in results
    ]


def write_summary(
    path: Place,
    summaries: Sequence[Summary],
    measure: str,
    tags: Mapping[str, Tags],
    more: Sequence[Mapping[str, object]] = (),
) -> None:
    """Write summary.csv; an unknown standard error is an empty cell.

    Args:
        path: The file.
        summaries: Its rows.
        measure: "regret" or "reward".
        tags: The tags of each panel, which are columns in place of its label.
        more: Further cells at the end of each row, by column. Default: none.
    """
    some_design = any(row.design for row in summaries)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for index, row in enumerate(summaries):
        cells: dict[str, object] = {}
        for name, value in row._asdict().items():
            if name == "panel":
                cells |= tags[row.panel]
            elif name in ("mean", "stderr", "q10", "q50", "q90", "max"):
                cells[f"{measure}_{name}"] = value
            elif name != "design" or some_design:
                cells[name] = value
        cells |= more[index] if more else {}
        if index == 0:
            writer.writerow(cells)
        writer.writerow([round(cell, 6) if isinstance(cell, float) else cell for cell in cells.values()])
    write_atomically(path, text.getvalue().encode())


def compare(first: Result, second: Result, measure: str) -> Comparison:
    """Compare two results of the same number of rounds by paired differences over their common instances."""
    ours, theirs = first.records, second.records
    if ours.rounds[-1] != theirs.rounds[-1]:
        raise InvalidArgument(
            f"{first.curve!r} played {ours.rounds[-1]} rounds and {second.curve!r} {theirs.rounds[-1]}. "
            "Compare runs of the same length."
        )
    common, left, right = np.intersect1d(ours.instances, theirs.instances, return_indices=True)
    if len(common) < 2:
        raise InvalidArgument(
            f"{first.curve!r} and {second.curve!r} must have at least two instances in common, got {len(common)}."
        )
    final = measured(ours, measure)[left, -1] - measured(theirs, measure)[right, -1]
    mean, stderr = float(np.mean(final)), float(np.std(final, ddof=1) / math.sqrt(len(common)))
    beats = (mean if measure == "reward" else -mean) > BEATS_BY * stderr
    return Comparison(mean, stderr, mean / stderr if stderr > 0 else None, len(common), beats)


def growth(records: Records) -> Growth:
    """Estimate how fast the mean regret grows late in the run."""
    rounds, count = records.rounds, len(records.instances)
    end = int(rounds[-1])
    second_half = 2 * rounds >= end
    if count < 2 or 4 * rounds[0] > end or np.sum(second_half) < 3:
        raise InvalidArgument(
            f"Growth over {end} rounds needs two instances (there are {count}), a first checkpoint no later than a "
            f"quarter of the rounds (it is {rounds[0]}) and three in the second half (there are {np.sum(second_half)})."
        )
    at = np.array([end / 4, end / 2, end])
    regret = np.array([np.interp(at, rounds, row) for row in records.regret])  # (M, 3)
    mean = regret.mean(axis=0)
    without = _exponent((count * mean - regret) / (count - 1))  # with each instance left out in turn
    steps = np.diff(records.regret[:, second_half], axis=1) / np.diff(rounds[second_half])
    largest, smallest = steps.max(axis=1), steps.min(axis=1)
    return Growth(
        exponent=float(_exponent(mean)),
        stderr=float(np.sqrt((count - 1) * np.var(without))),
        slope=_log_slope(rounds, records.regret.mean(axis=0)),
        late_share=float((mean[2] - mean[1]) / mean[2]) if mean[2] > 0 else 0.0,
        stuck=int(np.sum((largest > 0) & (largest - smallest <= STEADY * largest))),
    )


def _exponent(regret: np.ndarray) -> np.ndarray:
    """Return the growth exponent γ from mean regrets at n/4, n/2 and n along the last axis."""
    before, late = regret[..., 1] - regret[..., 0], (regret[..., 2] - regret[..., 1]) / 2
    some = (before > 0) & (late > 0)
    ratio = np.where(some, late, 1.0) / np.where(some, before, 1.0)
    return np.clip(np.where(some, 1 + np.log2(ratio), np.where(late > 0, np.inf, -np.inf)), *CLIP)


def _log_slope(rounds: np.ndarray, mean: np.ndarray) -> float | None:
    used = (3 * rounds >= rounds[-1]) & (mean > 0)
    if np.sum(used) < 3:
        return None
    x, y = np.log(rounds[used]), np.log(mean[used])
    return float(np.sum((x - x.mean()) * (y - y.mean())) / np.sum((x - x.mean()) ** 2))
