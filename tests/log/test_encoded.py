"""Features that are encoded when they are asked for, against a table of all of them."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from explorax import Encoder
from explorax.log.encoded import EncodedFeatures

SAMPLE = [{"topic": topic, "user": user, "age": age} for topic in "abc" for user in "xy" for age in (1.0, 5.0)]
COLUMNS = ["topic", "user", "age"]


def pandas_encoder():
    import pandas

    transformer = make_column_transformer((OneHotEncoder(), ["topic", "user"]), (StandardScaler(), ["age"]))
    return Encoder.from_transformer(transformer.fit(pandas.DataFrame(SAMPLE)), COLUMNS)


@pytest.mark.parametrize("build", [lambda: Encoder.fit(SAMPLE, interactions=True), pandas_encoder])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_blocks_are_what_the_encoder_makes_of_whole_rows(build, dtype):
    encoder, rng = build(), np.random.default_rng(0)
    attributes = [{"topic": "a"}, {"topic": "b"}, {"topic": "c"}]
    which, versions = np.array([[0, 1], [2, 1]]), np.array([0, 0, 1, 0, 1, 1])
    contexts = {"user": np.array(list("xyxyxx"), object), "age": np.array(rng.uniform(1, 5, 6).tolist(), object)}
    features = EncodedFeatures(encoder, dtype, attributes, which, versions, contexts)
    expected = np.array(
        [
            [
                encoder.transform({**attributes[i], "user": contexts["user"][row], "age": contexts["age"][row]})[0]
                for i in which[versions[row]]
            ]
            for row in range(6)
        ]
    ).astype(dtype)
    assert features.shape == (2, encoder.n_features)
    rows, arms = np.array([5, 1, 2, 2]), np.array([0, 1, 0, 1])
    assert features.table(rows).dtype == dtype
    np.testing.assert_array_equal(features.table(rows), expected[rows])
    np.testing.assert_array_equal(features.chosen(rows, arms), expected[rows, arms])
    some = features.some(rows)
    np.testing.assert_array_equal(some.table(np.arange(4)), expected[rows])
