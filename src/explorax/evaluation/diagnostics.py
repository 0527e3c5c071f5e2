"""Whether a log can tell the value of a target: weights, overlap, and propensities that can be believed.

    effective rows    (Σ w)² / Σ w²: how many rows of the target's own the weighted rows are worth
    overlap           how much of the target falls on arms that had no chance, or one below 1 %
    mean weight       is 1 where propensities are right and every arm had a chance; its deviation in standard errors,
                      in all rows and in each half of them
    calibration       with all propensities: in bins of them, how often an arm was chosen minus how often it should have
                      been; with those of chosen arms alone: for each arm the sum of 1/p, which is the number of rows in
                      which it was on offer, or less if it had no chance in some of them

The verdict is "no" where one of these holds, with the limits of this module, and "barely" where one is near it.

    effective rows        below 50 / 500: 95 % intervals of a rate are about ±0.14 / ±0.044 wide, or wider
    no chance             5 % / 0.1 % of the target fall on arms that had none
    rare                  50 % / 20 % of the target fall on arms with a chance below 1 %
    largest 1 % of rows   carry 90 % / 50 % of the weight
    propensities          deviate by more than 6 / 4 standard errors, in the mean weight or in the calibration
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from explorax.errors import InvalidArgument
from explorax.evaluation.scores import Scores
from explorax.log.data import LoggedData

TOP = 0.01  # the share of rows with the largest weights that is looked at
EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)  # of the bins of propensities
BLOCK = 10_000  # rows whose propensities are looked at together, so that their tables stay small
ANSWERS = ("yes", "barely", "no")


class Bin(NamedTuple):
    """How often something was chosen, and how often it should have been.

    Attributes:
        label: The range of propensities, or the name of an arm.
        observed: How often it was chosen; without all propensities, the sum of 1/p over the rows with this arm.
        expected: How often it should have been; without all propensities, the rows in which the arm was on offer.
        deviation: The difference in standard errors.
    """

    label: str
    observed: float
    expected: float
    deviation: float


class Diagnosis(NamedTuple):
    """What is known of a log with respect to a target.

    Attributes:
        rows: The number of rows.
        effective: The number of effective rows.
        largest: The largest weight.
        top: The share of the weight that the largest 1 % of rows carry.
        unused: The share of rows with the weight 0.
        unsupported: The share of the target on arms that had no chance; None unless all propensities are known.
        rare: The share of the target on arms with a chance below 1 %; None unless all propensities are known.
        mean_weights: The mean weight in all rows, in the first half and in the second one.
        deviations: Their deviations from what they should be, in standard errors.
        calibration: The calibration of propensities.
        by_arm: Whether the calibration is that of arms, because only propensities of chosen arms are known.
    """

    rows: int
    effective: float
    largest: float
    top: float
    unused: float
    unsupported: float | None
    rare: float | None
    mean_weights: tuple[float, float, float]
    deviations: tuple[float, float, float]
    calibration: tuple[Bin, ...]
    by_arm: bool

    @property
    def verdict(self) -> str:
        """Whether the log can answer the question: "yes", "barely" or "no"."""
        return ANSWERS[max(severity for severity, _ in self._findings())]

    def sentences(self) -> list[str]:
        """Return what there is to say of the log, beginning with the verdict.

        Returns:
            The sentences, of which the first is the verdict and those after it name what is wrong, worst first.
        """
        verdict = {
            "yes": "The log can answer the question.",
            "barely": "The log can barely answer the question.",
            "no": "The log cannot answer the question.",
        }[self.verdict]
        return [verdict, *(text for _, text in sorted(self._findings(), key=lambda finding: -finding[0]))]

    def _findings(self) -> Iterator[tuple[int, str]]:
        """Yield sentences, each with 0 if all is well, 1 if it is a warning and 2 if it is the end."""
        yield (
            _severity(-self.effective, -500, -50),
            f"The {self.rows} rows are worth {self.effective:.0f} rows of the target's own.",
        )
        yield (
            _severity(self.top, 0.5, 0.9),
            f"The largest {TOP:.0%} of rows carry {self.top:.0%} of the weight, the largest weight is "
            f"{self.largest:.3g}, and {self.unused:.0%} of the rows have none.",
        )
        if self.unsupported is not None and self.rare is not None:
            yield (
                max(_severity(self.unsupported, 0.001, 0.05), _severity(self.rare, 0.2, 0.5)),
                f"Of what the target chooses, {self.unsupported:.2%} had no chance in the log, and {self.rare:.2%} had "
                "one below 1 %.",
            )
        whole, first, second = self.mean_weights
        yield (
            _severity(max(map(abs, self.deviations)), 4, 6),
            f"The mean weight, which should be 1, is {whole:.3f}: {first:.3f} in the first half and {second:.3f} in "
            f"the second; the largest deviation is {max(map(abs, self.deviations)):.1f} standard errors.",
        )
        # An arm that had no chance in some rows lowers its sum of 1/p: that alone does not mean wrong propensities.
        worst = max(self.calibration, key=lambda each: each.deviation if self.by_arm else abs(each.deviation))
        off = worst.deviation if self.by_arm else abs(worst.deviation)
        text = (
            f"The sums of 1/p exceed the rows with an arm most for {worst.label}: {worst.observed:.0f} where "
            f"{worst.expected:.0f} are expected"
            if self.by_arm
            else f"Propensities deviate most from {worst.label}: {worst.observed:.0f} choices where "
            f"{worst.expected:.0f} are expected"
        )
        yield _severity(off, 4, 6), f"{text}, {off:.1f} standard errors."


def diagnose(data: LoggedData, scores: Scores) -> Diagnosis:
    """Return what is known of a log with respect to a target.

    Args:
        data: The log, with propensities.
        scores: What its rows say of the target.

    Returns:
        The diagnosis.

    Raises:
        InvalidArgument: If the log has fewer than 2 rows or no propensities, or its rows are not those of the scores.
    """
    if data.propensities is None:
        raise InvalidArgument("propensities must be in the log, got None. Log them, or estimate them first.")
    if len(data) < 2 or len(data) != scores.size:
        raise InvalidArgument(
            f"scores must be those of the log's rows, at least 2, got {scores.size} for {len(data)} rows. Score the "
            "whole log."
        )
    weights, half = scores.weights, len(data) // 2
    total, top = float(weights.sum()), -(-len(data) // round(1 / TOP))
    wanted = np.ones(len(data)) if scores.unsupported is None else 1 - scores.unsupported
    parts = (slice(None), slice(half), slice(half, None))
    return Diagnosis(
        rows=len(data),
        effective=total**2 / float(np.sum(weights**2)) if total else 0.0,
        largest=float(weights.max()),
        top=float(np.partition(weights, -top)[-top:].sum()) / total if total else 1.0,
        unused=float(np.mean(weights == 0)),
        unsupported=None if scores.unsupported is None else float(scores.unsupported.mean()),
        rare=None if scores.rare is None else float(scores.rare.mean()),
        mean_weights=tuple(float(weights[part].mean()) for part in parts),  # type: ignore[arg-type]
        deviations=tuple(_deviation(weights[part] - wanted[part]) for part in parts),  # type: ignore[arg-type]
        calibration=tuple(_by_arm(data) if data.all_propensities is None else _by_propensity(data)),
        by_arm=data.all_propensities is None,
    )


def _severity(value: float, warning: float, end: float) -> int:
    """Return 2 for a value beyond the end, 1 for one beyond the warning, else 0."""
    return 2 if value > end else 1 if value > warning else 0


def _deviation(errors: np.ndarray) -> float:
    """Return the sum of errors that should have the mean 0, in standard errors."""
    spread = float(np.sqrt(np.sum(errors**2)))
    return float(errors.sum()) / spread if spread > 1e-9 * len(errors) else 0.0


def _by_propensity(data: LoggedData) -> Iterator[Bin]:
    """Yield how often arms were chosen, in bins of their propensities."""
    assert data.all_propensities is not None  # the caller looks
    observed, expected, variance = np.zeros((3, len(EDGES) - 1))
    for start in range(0, len(data), BLOCK):
        every, arms = np.minimum(data.all_propensities[start : start + BLOCK], 1), data.arms[start : start + BLOCK]
        for place, (low, high) in enumerate(pairwise(EDGES)):
            inside = (every > low) & (every <= high)
            chances = np.where(inside, every, 0).sum(axis=1).clip(0, 1)
            observed[place] += inside[np.arange(len(arms)), arms].sum()
            expected[place] += chances.sum()
            variance[place] += np.sum(chances * (1 - chances))  # of the number of choices, given the propensities
    for place, (low, high) in enumerate(pairwise(EDGES)):
        error, spread = observed[place] - expected[place], np.sqrt(variance[place])
        deviation = float(error / spread) if spread > 1e-9 * len(data) else 0.0
        yield Bin(f"{low:g} to {high:g}", float(observed[place]), float(expected[place]), deviation)


def _by_arm(data: LoggedData) -> Iterator[Bin]:
    """Yield the sum of 1/p of each arm next to the number of rows in which it was on offer."""
    assert data.propensities is not None  # the caller looks
    for arm, name in enumerate(data.names):
        offered = np.ones(len(data)) if data.offered is None else data.offered[:, arm].astype(float)
        inverse = np.where(data.arms == arm, 1 / data.propensities, 0)
        yield Bin(str(name), float(inverse.sum()), float(offered.sum()), _deviation(inverse - offered))
