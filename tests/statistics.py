"""Statistical checks with a stated false-alarm rate: the chance that a correct program fails one of them.

Seeds are fixed, so a test that passes once passes always; the rate says how unlucky a seed would have to be.
"""

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6


def assert_standard_normal(draws: np.ndarray, alarm: float = FALSE_ALARM) -> None:
    """The rows of `draws` are independent N(0, I): checks the mean, every covariance entry and each marginal law."""
    count, size = draws.shape
    level = alarm / 3
    mean = count * np.sum(draws.mean(axis=0) ** 2)
    assert stats.chi2.sf(mean, size) > level, f"mean is off: {draws.mean(axis=0)}"
    upper = np.triu_indices(size)
    products = draws[:, upper[0]] * draws[:, upper[1]]
    expected = np.asarray(upper[0] == upper[1], float)
    deviation = np.abs(products.mean(axis=0) - expected) / np.sqrt((1 + expected) / count)
    assert 2 * stats.norm.sf(deviation.max()) > level / len(expected), (
        f"covariance is off by {deviation.max():.1f} s.d."
    )
    for column in draws.T:
        assert stats.kstest(column, "norm").pvalue > level / size, "marginal law is not normal"


def same_law_pvalue(first: np.ndarray, second: np.ndarray) -> float:
    """p-value that two samples of vectors have one law: two-sample KS on coordinates, pairs and norms (Bonferroni)."""
    size = first.shape[1]
    center, spread = second.mean(axis=0), second.std(axis=0)
    first, second = (first - center) / spread, (second - center) / spread
    directions = [np.eye(size)[i] for i in range(size)]
    directions += [np.eye(size)[i] + np.eye(size)[j] for i in range(size) for j in range(i)]
    samples = [(first @ v, second @ v) for v in directions]
    samples.append((np.sum(first**2, axis=1), np.sum(second**2, axis=1)))
    return min(1.0, len(samples) * min(stats.ks_2samp(*pair).pvalue for pair in samples))
