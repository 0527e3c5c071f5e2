"""Intervals from the normal distribution, for many rows.

An estimate plus and minus normal quantiles times its standard error, which comes from what each row adds to the error
(`explorax.evaluation.estimate`): for the ratios snips and sndr by the delta method on both sums, which takes no
denominator as fixed, for adaptive_dr with the adaptive weights, for all others as the plain variance of the terms.

What is proven: coverage in the limit of many rows, for independent rows; for logs of policies that learn, in which
variances depend on what happened, that of adaptive_dr alone.  Where few rows carry most of the weight the interval is
too narrow: the large weights that the log does not show are missing in the variance, too.
"""

from statistics import NormalDist

from explorax.evaluation.estimate import Estimate


def asymptotic(estimate: Estimate, level: float) -> tuple[float, float]:
    """Return the normal interval around an estimate.

    Args:
        estimate: The estimate.
        level: The probability with which the interval holds if there are many rows.

    Returns:
        The bounds, infinite for a single row.
    """
    width = NormalDist().inv_cdf((1 + level) / 2) * estimate.stderr
    return estimate.value - width, estimate.value + width
