"""Features in a log, row by row, against tables that are written out."""

import numpy as np
import pytest

from explorax.log.features import (
    ContextFeatures,
    FeaturesByVersion,
    FixedFeatures,
    GivenFeatures,
    JoinedFeatures,
    ListedFeatures,
)

RNG = np.random.default_rng(0)
N, K = 7, 3
VECTORS, WHICH = RNG.normal(size=(5, 2)), np.array([[0, 1, 2], [0, 3, 2], [4, 3, 2]])
VERSIONS = np.array([0, 0, 1, 1, 2, 2, 2])
COUNTS = np.array([3, 1, 2, 3, 3, 2, 1])
LISTED = RNG.normal(size=(COUNTS.sum(), 2))
CONTEXTS, ARMS, PAIRS = RNG.normal(size=(N, 2)), RNG.normal(size=(K, 1)), RNG.normal(size=(N, K))


def padded():
    table, rows = np.zeros((N, K, 2)), iter(LISTED)
    for row, count in enumerate(COUNTS):
        for place in range(count):
            table[row, place] = next(rows)
    return table


FIXED, GIVEN = RNG.normal(size=(K, 4)), RNG.normal(size=(N, K, 4))
CASES = {
    "fixed": (FixedFeatures(FIXED), [FIXED] * N),
    "given": (GivenFeatures(GIVEN), GIVEN),
    "by version": (FeaturesByVersion(VECTORS, WHICH, VERSIONS), [[VECTORS[i] for i in WHICH[v]] for v in VERSIONS]),
    "listed": (ListedFeatures(LISTED, np.cumsum(COUNTS) - COUNTS, COUNTS, K), padded()),
    "context": (ContextFeatures(CONTEXTS, ARMS), [[np.kron([1, *arm], [1, *row]) for arm in ARMS] for row in CONTEXTS]),
    "joined": (
        JoinedFeatures(CONTEXTS, ARMS, PAIRS),
        [[[*CONTEXTS[i], *ARMS[k], PAIRS[i, k]] for k in range(K)] for i in range(N)],
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_tables_chosen_and_some(kind):
    features, expected = CASES[kind]
    expected = np.array(expected)
    assert features.shape == expected.shape[1:]
    np.testing.assert_array_equal(features.table(np.arange(N)), expected)
    rows = np.array([5, 0, 0, 3])
    np.testing.assert_array_equal(features.table(rows), expected[rows])
    arms = np.array([1, 0, 0, 1])
    np.testing.assert_array_equal(features.chosen(rows, arms), expected[rows, arms])
    some = features.some(rows)
    np.testing.assert_array_equal(some.table(np.array([3, 1])), expected[[3, 0]])
    np.testing.assert_array_equal(some.chosen(np.arange(4), arms), expected[rows, arms])
