"""Bias of off-policy estimates, and how often their intervals hold, by simulation with known truth.

    PYTHONPATH=src python benchmarks/evaluation_coverage.py [--logs 500] [--rounds 30000] [--processes 1] [--page FILE]

Logs of `evaluation_logs.py` are evaluated after 300, 3 000 and 30 000 rows (those up to --rounds) for four targets.
The reward model is wrong on purpose: it is the mean so far of each arm, whatever the context.  For each estimator:

    bias        the mean error in its standard errors over logs; of the four targets the largest one
    error       the root mean squared error over that of the mean of as many rows of the target's own, a geometric
                mean over the targets
    coverage    the share of nominal 95 % intervals that hold the truth; of the four targets the smallest one.
                For anytime intervals: the share of logs in which all intervals up to this row hold it
    width       the mean width of intervals over that of a normal interval from as many rows of the target's own,
                a geometric mean over the targets

and then what fails.  With --page the tables take the place of those in a page.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from evaluation_logs import ARMS, PLAYERS, Log, logs, targets, world

from explorax.evaluation.estimators import ESTIMATORS
from explorax.evaluation.intervals import interval, path
from explorax.evaluation.scores import Scores, scored
from explorax.files import write_atomically

SIZES = (300, 3000, 30_000)
NORMAL = 1.959963984540054
CLIP, RESAMPLES, WATCHED = 5.0, 200, 30
SHORT = 3000  # rows of the logs whose failures are shown
BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"


class Outcome(NamedTuple):
    """What came of one interval in one log; an estimate without an interval holds NaN for the last two."""

    error: float
    holds: float
    width: float


class Cell(NamedTuple):
    """The outcomes of many logs for one target."""

    bias: float  # in standard errors
    error: float  # the root of the mean squared error
    coverage: float
    width: float


Key = tuple[str, str, int, str]  # player, target, rows, method
Outcomes = dict[tuple[str, int, str], Outcome]


def outcome(value: float, low: float, high: float, truth: float) -> Outcome:
    return Outcome(value - truth, float(low <= truth <= high), high - low)


def running_means(log: Log) -> np.ndarray:
    """The mean reward of each arm before each row, (n, ARMS), whatever the context."""
    chosen = np.eye(ARMS)[log.arms]
    before = np.cumsum(np.stack([chosen, chosen * log.rewards[:, None]]), axis=1) - [
        chosen,
        chosen * log.rewards[:, None],
    ]
    return (0.5 + before[1]) / (1 + before[0])


def scores_of(log: Log, target: np.ndarray) -> Scores:
    wanted = target[log.contexts]
    return scored(log.rewards, log.arms, log.chosen, wanted, running_means(log), log.every, (0.0, 1.0))


def measured(log: Log, problem: np.ndarray, wanted: dict[str, np.ndarray]) -> Outcomes:
    """What comes of all estimators and intervals in a log, for all targets and numbers of rows."""
    found: Outcomes = {}
    for target, chances in wanted.items():
        scores, value = scores_of(log, chances), float(np.mean(np.sum(chances * problem, axis=1)))
        for rows in (size for size in SIZES if size <= len(log.arms)):
            part = scores.some(slice(rows))
            own = float(np.mean(np.sum(log.every[:rows] * problem[log.contexts[:rows]], axis=1)))
            for name, estimator in ESTIMATORS.items():
                truth, estimate = own if name == "on_policy" else value, estimator.estimate(part).value
                for kind in estimator.intervals:
                    if kind != "anytime":
                        low, high, _ = interval(kind, name, part)
                    else:
                        running = path(name, part).running()
                        low, high = float(running.low[-1]), float(running.high[-1])
                    found[target, rows, f"{name} {kind}"] = outcome(estimate, low, high, truth)
    return found


def failing(log: Log, problem: np.ndarray, wanted: dict[str, np.ndarray], seed: int = 0) -> Outcomes:
    """What comes of methods that are known to fail, next to those that take their place."""
    found: Outcomes = {}
    rng = np.random.default_rng(seed)
    for target, chances in wanted.items():
        scores, value = scores_of(log, chances), float(np.mean(np.sum(chances * problem, axis=1)))
        few, rows = scores.some(slice(SIZES[0])), scores.size
        if few.weights.any():
            counts = rng.multinomial(SIZES[0], np.full(SIZES[0], 1 / SIZES[0]), RESAMPLES)
            totals = counts @ few.weights
            ratios = (counts @ (few.weights * few.rewards))[totals > 0] / totals[totals > 0]
            low, high = np.quantile(ratios, [0.025, 0.975])
            snips = ESTIMATORS["snips"].estimate(few).value
            found[target, SIZES[0], "snips, percentile bootstrap"] = outcome(snips, low, high, value)
            found[target, SIZES[0], "snips, delta method"] = outcome(
                snips, *interval("asymptotic", "snips", few)[:2], value
            )
        clipped = scores._replace(weights=np.minimum(scores.weights, CLIP))
        for method, which in (("ips", scores), ("ips, weights clipped at 5", clipped)):
            estimate = ESTIMATORS["ips"].estimate(which).value
            found[target, rows, f"{method}, normal"] = outcome(
                estimate, *interval("asymptotic", "ips", which)[:2], value
            )
        terms, times = scores.weights * scores.rewards, np.arange(1, rows + 1)
        means = np.cumsum(terms) / times
        deviations = np.sqrt(np.maximum(np.cumsum(terms**2) / times - means**2, 0) / np.maximum(times - 1, 1))
        wrong = np.abs(means - value)[WATCHED:] > NORMAL * deviations[WATCHED:]
        found[target, rows, "ips, normal, after every row"] = Outcome(
            means[-1] - value, float(not wrong.any()), 2 * NORMAL * deviations[-1]
        )
        running = path("ips", scores).running()
        found[target, rows, "ips, anytime"] = outcome(means[-1], running.low[-1], running.high[-1], value)
        for kind, called in (("asymptotic", "normal"), ("anytime", "anytime")):
            estimate = ESTIMATORS["dr"].estimate(scores).value
            found[target, rows, f"dr, {called}"] = outcome(estimate, *interval(kind, "dr", scores)[:2], value)
        model = ESTIMATORS["dm"].estimate(scores).value
        found[target, rows, "dm, normal"] = outcome(model, *interval("asymptotic", "dm", scores)[:2], value)
    return found


def gathered(work: Iterable[Outcomes], player: str) -> dict[Key, Cell]:
    """The outcomes of many logs in short."""
    lists: dict[Key, list[Outcome]] = defaultdict(list)
    for found in work:
        for (target, rows, method), each in found.items():
            lists[player, target, rows, method].append(each)
    cells = {}
    for key, outcomes in lists.items():
        errors, holds, widths = np.array(outcomes).T
        spread = max(float(errors.std(ddof=1)), 1e-12)
        bias, error = float(errors.mean()) / spread * len(errors) ** 0.5, float(np.mean(errors**2)) ** 0.5
        cells[key] = Cell(bias, error, float(holds.mean()), float(widths.mean()))
    return cells


def worst(cells: dict[Key, Cell], player: str, rows: int, method: str, oracle: dict[str, float]) -> Cell | None:
    """The largest bias, the least coverage, and the mean width relative to that of the targets' own rows."""
    some = {key[1]: cell for key, cell in cells.items() if (key[0], key[2], key[3]) == (player, rows, method)}
    if not some:
        return None
    bias = max((cell.bias for cell in some.values()), key=abs)
    own = np.array([oracle[target] / rows**0.5 for target in some])  # the standard errors of rows of the targets' own
    error, width = (
        float(np.exp(np.mean(np.log(np.maximum(values / own, 1e-9)))))
        for values in (
            np.array([cell.error for cell in some.values()]),
            np.array([cell.width for cell in some.values()]),
        )
    )
    return Cell(bias, error, min(cell.coverage for cell in some.values()), width / (2 * NORMAL))


def shown(cell: Cell | None, with_bias: bool) -> str:
    if cell is None:
        return ""
    bias = f"{round(cell.bias, 1) + 0.0:+.1f}, {cell.error:.2f}, " if with_bias else ""
    return f"{bias}{cell.coverage:.1%}, {cell.width:.2f}".replace("%", " %")


def rows_of(lines: list[list[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield "| " + " | ".join(lines[0]) + " |"
    yield "|---" * len(lines[0]) + "|"
    for line in lines[1:]:
        yield "| " + " | ".join(line) + " |"


def main_tables(cells: dict[Key, Cell], sizes: list[int], oracle: dict[str, float]) -> Iterator[str]:
    """The tables of each kind of log."""
    titles = [f"{size:,} rows".replace(",", " ") for size in sizes]
    for player in [
        name for name in PLAYERS if any(key[0] == name for key in cells) and name != "GLM-TSL without floor"
    ]:
        yield f"\n### Logs of {player}\n"
        yield "Normal intervals: bias in standard errors, error, coverage, width.\n"
        lines = [["estimator", *titles]]
        for name in ESTIMATORS:
            found = [worst(cells, player, size, f"{name} asymptotic", oracle) for size in sizes]
            lines.append([name, *(shown(each, with_bias=True) for each in found)])
        yield from rows_of(lines)
        yield "\nIntervals that hold for every number of rows: coverage, width.\n"
        lines = [["interval", *titles]]
        for name in ("ips", "dr"):
            for kind in ("anytime", "bernstein", "betting"):
                found = [worst(cells, player, size, f"{name} {kind}", oracle) for size in sizes]
                lines.append([f"{kind}, {name}", *(shown(each, with_bias=False) for each in found)])
        yield from rows_of(lines)


def failing_table(cells: dict[Key, Cell]) -> Iterator[str]:
    """What fails, each with the target for which it covers least."""
    yield "\n### What fails\n"
    lines = [["method", "log", "target", "rows", "bias", "coverage"]]
    for method in dict.fromkeys(key[3] for key in cells):
        for player in dict.fromkeys(key[0] for key in cells):
            some = {key: cell for key, cell in cells.items() if key[3] == method and key[0] == player}
            key, cell = min(some.items(), key=lambda item: item[1].coverage)
            lines.append(
                [
                    method,
                    player,
                    key[1],
                    str(key[2]),
                    f"{round(cell.bias, 1) + 0.0:+.1f}",
                    f"{cell.coverage:.1%}".replace("%", " %"),
                ]
            )
    yield from rows_of(lines)


def tables(count: int, rounds: int, processes: int) -> Iterator[str]:
    """All tables, as Markdown."""
    problem = world()
    wanted, began = targets(problem), time.time()
    oracle = {name: float(np.sqrt(v * (1 - v))) for name, v in values(wanted, problem.table).items()}
    sizes = [size for size in SIZES if size <= rounds]
    context: Any = ProcessPoolExecutor(processes, get_context("spawn")) if processes > 1 else nullcontext()
    with context as pool:
        each: Callable[..., Iterable[Outcomes]] = pool.map if pool else map
        cells: dict[Key, Cell] = {}
        fails: dict[Key, Cell] = {}
        for number, (name, player) in enumerate(PLAYERS.items()):
            if player.floor or not player.draws:
                made = logs(player, problem, rounds, count, seed=number)
                cells |= gathered(each(partial(measured, problem=problem.table, wanted=wanted), made), name)
            made = logs(player, problem, min(rounds, SHORT), count, seed=100 + number)
            fails |= gathered(each(partial(failing, problem=problem.table, wanted=wanted), made), name)
            print(f"{name}: done after {time.time() - began:.0f} s", flush=True)
    told = ", ".join(f"{name} {value:.3f}" for name, value in values(wanted, problem.table).items())
    yield fill(
        f"{count} logs of each kind, of up to {rounds} rows. Values of the targets: {told}.",
        100,
        break_on_hyphens=False,
    )
    yield from main_tables(cells, sizes, oracle)
    yield from failing_table(fails)


def values(wanted: dict[str, np.ndarray], problem: np.ndarray) -> dict[str, float]:
    """The values of the targets."""
    return {name: float(np.mean(np.sum(chances * problem, axis=1))) for name, chances in wanted.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=500, help="how many logs of each kind")
    parser.add_argument("--rounds", type=int, default=SIZES[-1], help="how many rows the longest logs have")
    parser.add_argument("--processes", type=int, default=1, help="how many processes evaluate")
    parser.add_argument("--page", type=Path, help="a page to put the tables into")
    asked = parser.parse_args()
    if asked.page and not {BEGIN, END} <= set(asked.page.read_text("utf-8").splitlines()):
        raise SystemExit(f"{asked.page} must have the lines {BEGIN} and {END}, between which the tables are put.")
    text = "\n".join(tables(asked.logs, asked.rounds, asked.processes))
    print(text)
    if asked.page:
        before, _, rest = asked.page.read_text("utf-8").partition(BEGIN)
        write_atomically(asked.page, f"{before}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}".encode())


if __name__ == "__main__":
    main()
