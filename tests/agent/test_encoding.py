"""Rows become the numbers that scikit-learn and pandas make of them, in any form; saved encoders are safe to load."""

import datetime
import decimal
import enum
import functools
import io
import itertools
import json
import os
import pickle
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from explorax.agent import encoding
from explorax.agent.encoding import Encoder
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName
from explorax.tables import MOST_VALUES

TEXT, NUMBERS = ["device", "topic"], ["age", "price"]
COLUMNS = ["device", "age", "member", "topic", "price"]
FORMS = {
    "dicts": lambda rows: rows,
    "reordered": lambda rows: [dict(reversed(row.items())) for row in rows],
    "tuple": tuple,
    "pandas": pd.DataFrame,
    "objects": lambda rows: pd.DataFrame(rows, dtype=object),
    "categories": lambda rows: pd.DataFrame(rows).astype(dict.fromkeys(TEXT, "category")),
    "nullable": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "polars": pl.DataFrame,
    "polars categories": lambda rows: pl.DataFrame(rows).with_columns(pl.col(TEXT).cast(pl.Categorical)),
    "NumPy scalars": lambda rows: [{name: np.array(value)[()] for name, value in row.items()} for row in rows],
}


def draw(rows, seed):
    rng = np.random.default_rng(seed)
    return [
        {
            "device": str(rng.choice(["phone", "tablet", "desk", "tv"])),
            "age": int(rng.integers(18, 90)),
            "member": bool(rng.integers(2)),
            "topic": str(rng.choice(["news", "sport", "art"])),
            "price": float(rng.normal(5.0, 3.0)),
        }
        for _ in range(rows)
    ]


SAMPLE, ROWS = draw(60, 0), draw(9, 1)
ROW = ROWS[0]


def changed(**values):
    """One row with other values; what is ... is left out."""
    return {name: value for name, value in {**ROW, **values}.items() if value is not ...}


@functools.cache
def fitted(**options):
    return Encoder.fit(SAMPLE, **options)


def saved(settings, fitted):
    """A saved encoder as anyone could write it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(encoding.SETTINGS, settings if isinstance(settings, str) else json.dumps(settings))
        archive.writestr(encoding.FITTED, fitted)
    return file.getvalue()


# What the numbers are.


@pytest.mark.parametrize("sample", FORMS)
def test_equals_get_dummies(sample):
    encoder = Encoder.fit(FORMS[sample](SAMPLE), scale=False, bias=False)
    frame = pd.DataFrame(SAMPLE + ROWS)
    order = [name for name in COLUMNS if name not in NUMBERS]
    dummies = pd.get_dummies(frame[NUMBERS + order], columns=order, dtype=float)
    if sample == "reordered":  # columns come in the order of the first row
        assert encoder.columns == tuple(reversed(COLUMNS))
        dummies = dummies[list(encoder.names)]
    assert encoder.names == tuple(dummies.columns)
    assert encoder.n_features == dummies.shape[1]
    np.testing.assert_array_equal(encoder.transform(ROWS), dummies.to_numpy(float)[len(SAMPLE) :])


def test_equals_scikit_learns_transform():
    frame = pd.DataFrame(SAMPLE)
    others = ["device", "member", "topic"]
    theirs = make_column_transformer(
        (StandardScaler(), NUMBERS),
        (OneHotEncoder(handle_unknown="ignore"), others),
        verbose_feature_names_out=False,
        sparse_threshold=0.0,
    ).fit(frame)
    rows = [*ROWS, changed(device="watch", age=1000)]
    encoder = fitted()
    assert encoder.columns == tuple(COLUMNS)
    assert encoder.names == ("bias", *theirs.get_feature_names_out())
    expected = theirs.transform(pd.DataFrame(rows))
    encoded = encoder.transform(rows)
    assert encoded.dtype == np.float64
    np.testing.assert_array_equal(encoded[:, 0], 1.0)
    np.testing.assert_array_equal(encoded[:, 1:], expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", [{}, {"interactions": True}], ids=["plain", "products"])
def test_rows_of_all_forms_alike(form, options):
    encoder = fitted(**options)
    np.testing.assert_array_equal(encoder.transform(FORMS[form](ROWS)), encoder.transform(ROWS))
    if form != "reordered":
        again = Encoder.fit(FORMS[form](SAMPLE), **options)
        assert (again.columns, again.names) == (encoder.columns, encoder.names)
        np.testing.assert_array_equal(again.transform(ROWS), encoder.transform(ROWS))


def test_numbers_of_the_sample_have_mean_0_and_variance_1_and_constants_are_0():
    sample = [{"x": x, "same": 7.3} for x in (1.0, 2.0, 6.0)]
    encoded = Encoder.fit(sample, bias=False).transform(sample)
    np.testing.assert_allclose(encoded[:, 0].mean(), 0.0, atol=1e-15)
    np.testing.assert_allclose(encoded[:, 0].var(), 1.0)
    np.testing.assert_array_equal(encoded[:, 1], 0.0)


def test_unknown_values_are_zeros_and_so_are_their_products():
    encoder = fitted(interactions=True)
    known, unknown = encoder.transform(ROW)[0], encoder.transform(changed(device="watch"))[0]
    about = np.array([name.split(":")[0].startswith("device_") for name in encoder.names])
    assert about.sum() == 4 * (1 + 1 + 2 + 3 + 1)  # itself, and with age, member, topic and price
    assert np.any(known[about] != 0)
    np.testing.assert_array_equal(unknown[about], 0.0)
    np.testing.assert_array_equal(unknown[~about], known[~about])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "interactions", [[("device", "topic")], [("price", "topic"), ("age", "price")], (["member", "age"],), True, []]
)
def test_products_are_those_of_the_columns_features(interactions, bias):
    encoder, plain = Encoder.fit(SAMPLE, interactions=interactions, bias=bias), fitted(bias=bias)
    base = dict(zip(plain.names, plain.transform(ROWS).T, strict=True))
    features = {
        column: [name for name in plain.names if name == column or name.startswith(column + "_")] for column in COLUMNS
    }
    pairs = list(itertools.combinations(COLUMNS, 2)) if interactions is True else interactions
    expected = {f"{a}:{b}": base[a] * base[b] for one, two in pairs for a in features[one] for b in features[two]}
    assert encoder.names == (*plain.names, *expected)
    np.testing.assert_array_equal(encoder.transform(ROWS), np.array([*base.values(), *expected.values()]).T)


def test_the_product_of_two_text_columns_is_the_joint_one_hot():
    encoder = fitted(interactions=(("device", "topic"),), bias=False)
    joint = [f"device_{row['device']}:topic_{row['topic']}" for row in ROWS]
    places = [i for i, name in enumerate(encoder.names) if ":" in name]
    assert len(places) == 4 * 3
    found = [encoder.names[places[i]] for i in encoder.transform(ROWS)[:, places].argmax(axis=1)]
    assert found == joint
    np.testing.assert_array_equal(encoder.transform(ROWS)[:, places].sum(axis=1), 1.0)


class Color(str, enum.Enum):  # noqa: UP042, what str() makes of it is not its value
    RED = "red"


def test_values_that_are_as_good_as_text_or_numbers():
    sample = [{"color": Color.RED, "x": decimal.Decimal("1.5")}, {"color": "blue", "x": np.float32(2.5)}]
    rows = [{"color": "red", "x": 1}, {"color": Color.RED, "x": np.int8(1)}]
    encoder = Encoder.fit(sample, scale=False, bias=False)
    for each in (encoder, Encoder.loads(encoder.dumps())):
        assert each.names == ("x", "color_blue", "color_red")
        np.testing.assert_array_equal(each.transform(rows), [[1, 0, 1], [1, 0, 1]])


def test_values_of_text_are_told_apart_exactly():
    values = ["a", "a\0", "A", " a", "", "é", "e\u0301", "1", "nan", "None"]
    encoder = Encoder.loads(Encoder.fit([{"x": value} for value in values], bias=False).dumps())
    encoded = encoder.transform([{"x": value} for value in values])
    np.testing.assert_array_equal(encoded[np.argsort(values)], np.eye(len(values)))


VALUES = st.fixed_dictionaries(
    {
        "device": st.sampled_from(["phone", "tablet", "desk", "tv", "watch", ""]),
        "age": st.integers(-(10**6), 10**6),
        "member": st.booleans(),
        "topic": st.text(max_size=3),
        "price": st.floats(-1e100, 1e100),
    }
)


@given(st.lists(VALUES, min_size=1, max_size=6), st.booleans())
@settings(max_examples=50, deadline=None)
def test_a_row_alone_is_encoded_as_in_a_batch(rows, interactions):
    encoder = fitted(interactions=interactions)
    batch = encoder.transform(rows)
    assert batch.shape == (len(rows), encoder.n_features)
    for row, expected in zip(rows, batch, strict=True):
        np.testing.assert_array_equal(encoder.transform(row), expected[None])


def test_large_numbers_that_can_be_scaled_are():
    sample = [{"x": 1e150}, {"x": -1e150}]
    np.testing.assert_array_equal(Encoder.fit(sample, bias=False).transform(sample), [[1.0], [-1.0]])


# Transformers of one's own.


def array(rows, names):
    return np.array([[row[name] for name in names] for row in rows], float if names == NUMBERS else object)


@pytest.mark.parametrize("form", FORMS)
def test_a_transformer_fitted_with_names(form):
    pipeline = make_pipeline(
        make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), ["member", "topic"]), remainder="drop"),
        PCA(3, svd_solver="full"),
    ).fit(pd.DataFrame(SAMPLE))
    encoder = Encoder.from_transformer(pipeline, COLUMNS)
    assert encoder.names == ("pca0", "pca1", "pca2")
    expected = pipeline.transform(pd.DataFrame(ROWS))
    np.testing.assert_allclose(encoder.transform(FORMS[form](ROWS)), expected, rtol=1e-12)
    np.testing.assert_allclose(Encoder.loads(encoder.dumps()).transform(ROWS), expected, rtol=1e-12)


@pytest.mark.parametrize("names", [NUMBERS, TEXT, ["member"], COLUMNS], ids=lambda names: "-".join(names))
def test_a_transformer_fitted_without_names(names):
    transformer = OneHotEncoder(handle_unknown="ignore").fit(array(SAMPLE, names))  # its output is sparse
    encoder = Encoder.from_transformer(transformer, names)
    rows = [{name: row[name] for name in names} for row in SAMPLE]
    assert encoder.names == tuple(transformer.get_feature_names_out(names))
    expected = transformer.transform(array(SAMPLE, names)).toarray()
    assert np.all(expected.sum(axis=1) == len(names))
    np.testing.assert_array_equal(encoder.transform(rows), expected)
    np.testing.assert_array_equal(encoder.transform(pl.DataFrame(rows)), expected)
    np.testing.assert_array_equal(Encoder.loads(encoder.dumps()).transform(rows), expected)


def test_a_transformer_completes_arms_by_encoding_whole_rows():
    columns = ["device", "age", "price"]
    mixed = make_pipeline(make_column_transformer((OneHotEncoder(), ["device"]), remainder="passthrough"), PCA(2))
    encoder = Encoder.from_transformer(mixed.fit(pd.DataFrame(SAMPLE)[columns]), columns)
    rows = pd.DataFrame(ROWS)[columns].to_dict("records")
    arms, contexts = [{"price": row["price"]} for row in rows], [{k: r[k] for k in columns[:2]} for r in rows[:2]]
    assert encoder.part(arms).shape == (len(arms), 0)
    found = encoder.completed(encoder.part(arms), arms, contexts)
    for context, encoded in zip(contexts, found, strict=True):
        whole = encoder.transform([{**context, **arm} for arm in arms])
        np.testing.assert_allclose(encoded, whole, rtol=1e-12, atol=1e-12)  # products of other batches round otherwise


def test_a_transformer_gets_floats_where_all_are_numbers():
    encoder = Encoder.from_transformer(FunctionTransformer(np.log1p, feature_names_out="one-to-one"), ["x", "y"])
    expected = [[np.log(4.0), np.log(1.5)]]  # NumPy has no logarithm of objects
    for each in (encoder, Encoder.loads(encoder.dumps())):
        np.testing.assert_allclose(each.transform({"x": 3, "y": decimal.Decimal("0.5")}), expected, rtol=1e-15)


@pytest.mark.parametrize("named", [True, False])
def test_a_transformer_may_fill_in_what_is_missing_or_not(named):
    rows = [{"age": 30, "price": np.nan}, {"age": np.nan, "price": 2.0}]
    sample = pd.DataFrame(SAMPLE)[NUMBERS].astype(float)
    sample = sample if named else sample.to_numpy()
    fills = Encoder.from_transformer(SimpleImputer(strategy="constant", fill_value=-1.0).fit(sample), NUMBERS)
    np.testing.assert_array_equal(fills.transform(rows), [[30.0, -1.0], [-1.0, 2.0]])
    leaves = Encoder.from_transformer(StandardScaler().fit(sample), NUMBERS)
    for missing in (np.nan, None):
        with pytest.raises(InvalidFeatures, match=r"Feature 'price' must be a finite number in row 0 of rows, got nan"):
            leaves.transform({"age": 30, "price": missing})


class Ones(BaseEstimator):
    """A transformer that is not of scikit-learn's making."""

    def __init__(self, width=1):
        self.width = width

    def fit(self, rows):
        self.fitted_ = True
        return self

    def transform(self, rows):
        return np.ones((len(rows), self.width))

    def get_feature_names_out(self, names):
        return ["one"]


def test_a_transformer_of_ones_own_works_but_is_not_saved():
    encoder = Encoder.from_transformer(Ones().fit(None), ["x"])
    np.testing.assert_array_equal(encoder.transform([{"x": 1}, {"x": 2}]), [[1.0], [1.0]])
    with pytest.raises(InvalidArgument, match=r"could not be loaded again .* does not trust .*Ones"):
        encoder.dumps()


@pytest.mark.parametrize(
    ("transformer", "columns", "error", "words"),
    [
        (
            StandardScaler(),
            NUMBERS,
            InvalidArgument,
            r"transformer must be fitted, got StandardScaler\(\)\. Call its fit",
        ),
        (make_pipeline(StandardScaler()), NUMBERS, InvalidArgument, "transformer must be fitted, got"),
        (Ones(), ["x"], InvalidArgument, "transformer must be fitted, got"),
        (StandardScaler, NUMBERS, InvalidArgument, "must be a transformer in the style of scikit-learn, got"),
        (LogisticRegression(), NUMBERS, InvalidArgument, "must be a transformer in the style of scikit-learn, got"),
        (
            StandardScaler().fit(np.eye(2)).transform,
            NUMBERS,
            InvalidArgument,
            "must be a transformer in the style of scikit-learn, got",
        ),
        (FunctionTransformer(np.log1p), ["x"], InvalidArgument, "must be able to name its features, got"),
        (
            StandardScaler().fit(np.eye(3)),
            NUMBERS,
            InvalidShape,
            "must be as many as the transformer was fitted with, got .* Give 3 names",
        ),
        (StandardScaler().fit(np.eye(1)), [], InvalidShape, "at least one column, got no columns"),
        (StandardScaler().fit(np.eye(2)), ["x", "x"], InvalidArgument, "columns whose names are text and differ, got"),
        (StandardScaler().fit(np.eye(2)), ["x", 1], InvalidArgument, "columns whose names are text and differ, got"),
        (
            StandardScaler().fit(pd.DataFrame({"a": [1.0], "b": [2.0]})),
            ["b", "a"],
            InvalidArgument,
            r"got \('b', 'a'\)\. Give \('a', 'b'\)",
        ),
    ],
    ids=str,
)
def test_transformers_that_cannot_be_used(transformer, columns, error, words):
    with pytest.raises(error, match=words):
        Encoder.from_transformer(transformer, columns)


def test_rows_that_a_transformer_cannot_use():
    scaler = Encoder.from_transformer(StandardScaler().fit(np.eye(2)), ["x", "y"])
    for value in ("old", [1.0], 10**400):
        with pytest.raises(
            InvalidFeatures, match=r"The transformer refuses these rows. Give rows like those that it was fitted with: "
        ):
            scaler.transform({"x": value, "y": 1.0})
    with pytest.raises(InvalidShape, match=r"must return an array of shape \(1, 1\), .* got \(1, 2\)"):
        Encoder.from_transformer(Ones(2).fit(None), ["x"]).transform({"x": 1})


# Saved and loaded.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"interactions": True},
        {"interactions": (("device", "topic"),), "bias": False},
        {"scale": False},
        {"only": NUMBERS},
        {"only": NUMBERS, "scale": False},
        {"only": TEXT},
    ],
    ids=str,
)
def test_a_loaded_encoder_is_the_same(options):
    names = options.get("only", COLUMNS)
    sample, rows = ([{name: row[name] for name in names} for row in part] for part in (SAMPLE, ROWS))
    encoder = Encoder.fit(sample, **{name: value for name, value in options.items() if name != "only"})
    data = encoder.dumps()
    assert isinstance(data, bytes)
    again = Encoder.loads(data)
    assert (again.columns, again.names, again.n_features) == (encoder.columns, encoder.names, encoder.n_features)
    np.testing.assert_array_equal(again.transform(rows), encoder.transform(rows))
    np.testing.assert_array_equal(Encoder.loads(again.dumps()).transform(rows), encoder.transform(rows))


class Malicious:
    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_untrusted_types_are_named_and_nothing_runs(tmp_path):
    evil = FunctionTransformer(os.mkdir, feature_names_out="one-to-one")
    blob = saved({"format": encoding.FORMAT, "columns": ["x"]}, skops.io.dumps(evil))
    with pytest.raises(InvalidArgument, match=r"data cannot be loaded, because skops does not trust \w+\.mkdir"):
        Encoder.loads(blob)
    thing = Malicious()
    thing.path = str(tmp_path / "made")
    for content in (thing, {"numbers": thing, "values": None}):
        blob = saved({"format": encoding.FORMAT, "kinds": {}, "pairs": [], "bias": True}, skops.io.dumps(content))
        with pytest.raises(InvalidArgument, match=r"does not trust .*Malicious"):
            Encoder.loads(blob)
    with pytest.raises(InvalidArgument, match=r"could not be loaded again .* \w+\.mkdir"):
        Encoder.from_transformer(evil, ["x"]).dumps()
    for data in (pickle.dumps(thing), saved({"format": encoding.FORMAT, "columns": ["x"]}, pickle.dumps(thing))):
        with pytest.raises(
            InvalidArgument, match=r"must be a saved encoder, got .*\. Give what Encoder\.dumps returned"
        ):
            Encoder.loads(data)
    assert not (tmp_path / "made").exists()


STOCK = {"format": encoding.FORMAT, "kinds": {"x": "number"}, "pairs": [], "bias": True}
NOTHING = skops.io.dumps({"numbers": None, "values": None})


def test_what_is_written_by_hand_is_loaded_if_it_is_right():
    np.testing.assert_array_equal(Encoder.loads(saved(STOCK, NOTHING)).transform({"x": 3}), [[1.0, 3.0]])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x05\x06" + bytes(18),  # a zip file without files
        NOTHING,
        None,
        "text",
        pickle.dumps({"x": 1}),
        saved("{", NOTHING),
        saved("[]", NOTHING),
        saved("{}", NOTHING),
        saved({**STOCK, "more": 1}, NOTHING),
        saved({**STOCK, "pairs": [["x", "y"]]}, NOTHING),
        saved({**STOCK, "kinds": {"x": "text"}}, NOTHING),
        saved(STOCK, b"{}"),
        saved(STOCK, skops.io.dumps([])),
        saved(STOCK, skops.io.dumps({"numbers": PCA(), "values": None})),
    ],
    ids=itertools.count(),  # archives hold the time at which they were made
)
def test_data_that_are_no_encoder(data):
    with pytest.raises(
        InvalidArgument, match=r"^data must be a saved encoder, got .*\. Give what Encoder\.dumps returned"
    ):
        Encoder.loads(data)


def test_damaged_and_foreign_data():
    data = fitted().dumps()
    for broken in (data[:-30], data[:200] + bytes([data[200] ^ 1]) + data[201:]):
        with pytest.raises(InvalidArgument, match="data must be a saved encoder, got"):
            Encoder.loads(broken)
    with pytest.raises(
        InvalidArgument, match=r"data must have format 1, got 2\. Load them with the version of explorax that saved"
    ):
        Encoder.loads(saved({**STOCK, "format": encoding.FORMAT + 1}, NOTHING))
    with pytest.raises(InvalidArgument, match="transformer must be fitted, got"):
        Encoder.loads(saved({"format": encoding.FORMAT, "columns": ["x"]}, skops.io.dumps(StandardScaler())))


# What is refused.


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (
            changed(age=...),
            InvalidFeatures,
            "row 0 of rows must have the columns device, age, member.*, got no column 'age'",
        ),
        ([ROW, changed(age=...)], InvalidFeatures, "row 1 of rows must have the columns .*, got no column 'age'"),
        (changed(agee=3), UnknownName, "column of row 0 of rows must be one of .*, got 'agee'. Did you mean 'age'"),
        (changed(topic=..., topik="art"), UnknownName, "got 'topik'. Did you mean 'topic'"),
        (
            pd.DataFrame([changed(topic=..., topik="art")]),
            UnknownName,
            "column of rows must be one of .*, got 'topik'. Did you mean 'topic'",
        ),
        (pl.DataFrame([changed(price=...)]), InvalidFeatures, "rows must have the columns .*, got no column 'price'"),
        (pd.DataFrame(ROWS).rename(columns={"age": 7}), UnknownName, "column of rows must be one of .*, got 7"),
        (
            pd.concat([pd.DataFrame([ROW]), pd.DataFrame([ROW])], axis=1),
            InvalidArgument,
            "columns whose names are text and differ, got",
        ),
        (
            changed(device=None),
            InvalidFeatures,
            r"Column 'device' must be a value in row 0 of rows, got None\. Fill it in",
        ),
        (
            [ROW, changed(device=float("nan"))],
            InvalidFeatures,
            r"Column 'device' must be a value in row 1 of rows, got nan",
        ),
        (changed(member=None), InvalidFeatures, r"'member' must be a value in row 0 of rows, got None"),
        (changed(age=None), InvalidFeatures, r"'age' must be a value in row 0 of rows, got None"),
        (changed(age=float("nan")), InvalidFeatures, r"Column 'age' must be a finite number in row 0 of rows, got nan"),
        (changed(age=pd.NA), InvalidFeatures, r"'age' must be a value in row 0 of rows, got <NA>"),
        (changed(age=pd.NaT), InvalidFeatures, r"'age' must be a value in row 0 of rows, got NaT"),
        (
            pd.DataFrame([ROW, changed(device=None)]),
            InvalidFeatures,
            "Column 'device' must be a .* in row 1 of rows, got",
        ),
        (
            pd.DataFrame([ROW, changed(price=None)]),
            InvalidFeatures,
            "Column 'price' must be a .* in row 1 of rows, got",
        ),
        (
            pl.DataFrame([ROW, changed(device=None)]),
            InvalidFeatures,
            "Column 'device' must be a .* in row 1 of rows, got",
        ),
        (
            pl.DataFrame([ROW, changed(price=None)]),
            InvalidFeatures,
            "Column 'price' must be a .* in row 1 of rows, got",
        ),
        (
            [ROW, changed(price=np.inf)],
            InvalidFeatures,
            "Column 'price' must be a finite number in row 1 of rows, got inf",
        ),
        (changed(age="old"), InvalidFeatures, "Column 'age' must be a number in row 0 of .*, got 'old'"),
        (changed(age="30"), InvalidFeatures, "Column 'age' must be a number in row 0 of .*, got '30'"),
        (changed(age=True), InvalidFeatures, "Column 'age' must be a number in row 0 of .*, got True"),
        (changed(age=1j), InvalidFeatures, "Column 'age' must be a number in row 0 of .*, got 1j"),
        (changed(age=[1, 2]), InvalidFeatures, r"Column 'age' must be a number in row 0 of .*, got \[1, 2\]"),
        (changed(age=10**400), InvalidFeatures, "Columns age, price of rows must fit into float64, got"),
        (changed(device=3), InvalidFeatures, "Column 'device' must be text in row 0 of .*, got 3"),
        (changed(member=1), InvalidFeatures, "Column 'member' must be True or False in row 0 of .*, got 1"),
        (changed(member="True"), InvalidFeatures, "Column 'member' must be True or False in row 0 of .*, got 'True'"),
        ([], InvalidShape, "rows must have at least one row, got an empty table"),
        (pd.DataFrame(ROWS)[:0], InvalidShape, "rows must have at least one row, got an empty table"),
        (pl.DataFrame(ROWS)[:0], InvalidShape, "rows must have at least one row, got an empty table"),
        (None, InvalidArgument, "rows must be a DataFrame of pandas or polars, .* got a value of type NoneType"),
        ("phone", InvalidArgument, "rows must be a DataFrame of pandas or polars, .* got a value of type str"),
        (np.eye(5), InvalidArgument, "rows must be a DataFrame of pandas or polars, .* got a value of type ndarray"),
        (
            [ROW, ["phone"]],
            InvalidArgument,
            "rows must be a DataFrame of pandas or polars, .* got a value of type list",
        ),
        (
            pd.DataFrame(ROWS)["age"],
            InvalidArgument,
            "rows must be a DataFrame of pandas or polars, .* got a value of type Series",
        ),
        (
            pl.DataFrame(ROWS).lazy(),
            InvalidArgument,
            "rows must be a DataFrame of pandas or polars, .* got a value of type LazyFrame",
        ),
    ],
)
def test_rows_that_cannot_be_encoded(rows, error, words):
    encoder = fitted()
    with pytest.raises(error, match=words):
        encoder.transform(rows)


def test_products_that_overflow_are_refused():
    with pytest.raises(InvalidFeatures, match="Feature 'age:price' must be a finite number in row 1 of rows, got inf"):
        fitted(interactions=True).transform([ROW, changed(age=1e200, price=1e200)])
    sample = [{"x": 1e307}, {"x": 1.1e307}]
    np.testing.assert_allclose(Encoder.fit(sample, bias=False).transform(sample), [[-1.0], [1.0]], rtol=1e-12)
    np.testing.assert_array_equal(Encoder.fit(sample, scale=False, bias=False).transform(sample), [[1e307], [1.1e307]])


@pytest.mark.parametrize(
    ("sample", "error", "words"),
    [
        ([], InvalidShape, "sample must have at least one row, got an empty table"),
        (pd.DataFrame(SAMPLE)[:0], InvalidShape, "sample must have at least one row, got an empty table"),
        ([{}], InvalidShape, "row 0 of sample must have at least one column, got no columns"),
        (pd.DataFrame(index=[0, 1]), InvalidShape, "sample must have at least one column, got no columns"),
        (pl.DataFrame(), InvalidShape, "sample must have at least one column, got no columns"),
        (
            pd.DataFrame([[1, 2]]),
            InvalidArgument,
            r"sample must have columns whose names are text and differ, got \[0, 1\]\. Rename",
        ),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), InvalidArgument, "columns whose names are text and differ, got"),
        (3, InvalidArgument, "sample must be a DataFrame of pandas or polars, .* got a value of type int"),
        ([{"x": 1}, {"y": 1}], UnknownName, "column of row 1 of sample must be one of x, got 'y'"),
        ([{"x": 1, "y": 1}, {"y": 1}], InvalidFeatures, "row 1 of sample must have the columns .*, got no column 'x'"),
        ([{"x": 1}, {"x": "a"}], InvalidFeatures, "Column 'x' must be a number in row 1 of sample, got 'a'"),
        ([{"x": "a"}, {"x": 1}], InvalidFeatures, "Column 'x' must be text in row 1 of sample, got 1"),
        ([{"x": True}, {"x": 1}], InvalidFeatures, "Column 'x' must be True or False in row 1 of sample, got 1"),
        ([{"x": None}, {"x": 1}], InvalidFeatures, "Column 'x' must be a .* in row 0 of sample, got"),
        ([{"x": 1}, {"x": None}], InvalidFeatures, "Column 'x' must be a .* in row 1 of sample, got"),
        ([{"x": float("nan")}, {"x": 1}], InvalidFeatures, "Column 'x' must be a .* in row 0 of sample, got"),
        ([{"x": 1}, {"x": np.inf}], InvalidFeatures, "Column 'x' must be a finite number in row 1 of sample, got inf"),
        (
            [{"x": datetime.date(2024, 1, 1)}],
            InvalidFeatures,
            r"Column 'x' must be text in row 0 of .*, got datetime.date\(2024, 1, 1\)",
        ),
        (pl.DataFrame({"x": [[1], [2]]}), InvalidFeatures, r"Column 'x' must be text in row 0 of .*, got \[1\]"),
        (
            pd.DataFrame({"x": pd.Categorical([1, 2])}),
            InvalidFeatures,
            "must not have categories that are numbers, got dtype category. Turn them into text",
        ),
        (
            [{"x": str(i)} for i in range(MOST_VALUES + 1)],
            InvalidFeatures,
            "Column 'x' of sample must have at most 1000 different values, got 1001. Leave it out if it is an id",
        ),
    ],
)
def test_samples_that_cannot_be_fitted(sample, error, words):
    with pytest.raises(error, match=words):
        Encoder.fit(sample)


def test_as_many_values_as_allowed_are():
    sample = [{"x": str(i)} for i in range(MOST_VALUES)]
    encoder = Encoder.loads(Encoder.fit(sample, bias=False).dumps())
    assert encoder.n_features == MOST_VALUES
    np.testing.assert_array_equal(encoder.transform(sample).sum(axis=0), 1.0)


@pytest.mark.parametrize(
    ("interactions", "error", "words"),
    [
        (
            [("device", "topik")],
            UnknownName,
            "column of interactions must be one of .*, got 'topik'. Did you mean 'topic'",
        ),
        (
            ("device", "topic"),
            InvalidArgument,
            r"must be True, False or a list of pairs of columns, got \('device', 'topic'\)\. Give",
        ),
        ("device", InvalidArgument, "interactions must be .*, got 'device'"),
        (None, InvalidArgument, "interactions must be .*, got None"),
        ([("device",)], InvalidArgument, "list of pairs"),
        (
            [("age", "age")],
            InvalidArgument,
            r"must be pairs of different columns, each pair once, got \('age', 'age'\)",
        ),
        (
            [("age", "price"), ("price", "age")],
            InvalidArgument,
            r"each pair once, got \('price', 'age'\)\. Leave it out",
        ),
    ],
)
def test_interactions_that_make_no_sense(interactions, error, words):
    with pytest.raises(error, match=words):
        Encoder.fit(SAMPLE, interactions=interactions)
