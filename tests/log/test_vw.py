"""Text for Vowpal Wabbit.  `benchmarks/exchange.py` gives it to the real one."""

import re

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from explorax import LoggedData, errors, from_vw, read_log, to_vw
from explorax.log.vw import escaped, unescaped

NAMES = ("red hot", "a:b|c", 'quo"te', "ünï, %20", "7", 7, "-3", -3, "shared", "'x", "\N{NO-BREAK SPACE}")
RNG = np.random.default_rng(0)
N, K = 9, 4
ARMS, REWARDS, CHANCES = RNG.integers(0, K, N), RNG.normal(size=N) / 3, RNG.uniform(0.1, 1, N)
OFFERED = RNG.random((N, K)) < 0.7
OFFERED[np.arange(N), ARMS] = True
OFFERED[0] = True
CONTEXTS, TABLES = RNG.normal(size=(N, 2)) / 3, RNG.normal(size=(N, K, 3)) / 3
KINDS = {
    "nothing": {},
    "contexts": {"contexts": CONTEXTS},
    "described": {"contexts": CONTEXTS, "arm_features": RNG.normal(size=(K, 2))},
    "fixed": {"features": RNG.normal(size=(K, 3))},
    "given": {"features": TABLES * OFFERED[..., None]},
}


def test_names_are_words_that_differ():
    words = [escaped(name) for name in NAMES]
    assert [unescaped(word) for word in words] == list(NAMES)
    assert len(set(words)) == len(NAMES)
    assert not any(set(word) & set(" :|\t\n'") or not word.isascii() for word in words)


@hypothesis.given(names=strategies.sets(strategies.text(min_size=1) | strategies.integers(), min_size=1, max_size=5))
@hypothesis.settings(max_examples=300, deadline=None, derandomize=True)
def test_any_name_survives(names):
    words = [escaped(name) for name in names]
    assert [unescaped(word) for word in words] == list(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_.~%-]+", word) for word in words)
    assert escaped("٣") != escaped(3)
    assert unescaped(escaped("\ud800")) == "\ud800"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offered", [None, OFFERED])
def test_round_trips_are_exact(tmp_path, kind, offered):
    names = NAMES[:K] if offered is not None else NAMES[4 : 4 + K]
    data = LoggedData.of(
        [names[arm] for arm in ARMS], REWARDS, names=names, propensities=CHANCES, offered=offered, **KINDS[kind]
    )
    to_vw(data, tmp_path / "log.vw")
    again = from_vw(tmp_path / "log.vw")
    assert again.names == data.names
    assert again.columns().keys() == data.columns().keys()
    for name, column in data.columns().items():
        np.testing.assert_array_equal(getattr(again, name), column)
    assert (again.features is None) == (data.features is None)
    if data.features is not None:
        table = data.features.table(np.arange(N))
        np.testing.assert_array_equal(again.features.table(np.arange(N)), table)


@pytest.mark.parametrize("kind", ["nothing", "contexts"])
def test_round_trips_of_single_lines(tmp_path, kind):
    data = LoggedData.of(ARMS, REWARDS, names=range(K), propensities=CHANCES, offered=OFFERED, **KINDS[kind])
    to_vw(data, tmp_path / "log.vw", format="cb")
    again = from_vw(tmp_path / "log.vw", format="cb", names=range(K))
    for name, column in data.columns().items():
        np.testing.assert_array_equal(getattr(again, name), column)


def test_the_text_of_a_decision(tmp_path):
    data = LoggedData.of(
        ["b c"],
        [0.5],
        names=["a", "b c", "d"],
        propensities=[0.25],
        offered=[[1, 1, 0]],
        contexts=[[7.0]],
        arm_features=[[1.0], [2.0], [3.0]],
    )
    to_vw(data, tmp_path / "log.vw")
    assert (tmp_path / "log.vw").read_text() == "shared |c 0:7.0\n 'a|x 0:1.0\n0:-0.5:0.25 'b%20c|x 0:2.0\n\n"
    to_vw(data, tmp_path / "cb.vw", format="cb")
    assert (tmp_path / "cb.vw").read_text() == "1 2:-0.5:0.25 |c 0:7.0\n"


def test_text_of_others(tmp_path):
    """Namespaces with weights, features without values, with words as values, and missing ones; a decision without a
    label; lines without tags."""
    (tmp_path / "log.vw").write_text(
        "shared | user=Tom day:2\n0:1.5:0.5 |Action:2 politics len:3\n|Action sports\n\n"
        "|Action politics\n|Action sports\n\n"
        "shared | user=Anna day:3 kind:new\n|Action len:1\n0:-1:0.25 |Action music len:4\n"
    )
    data = from_vw(tmp_path / "log.vw")
    assert data.left_out == 1
    assert data.names == (0, 1)
    assert data.arms.tolist() == [0, 1]
    assert data.rewards.tolist() == [-1.5, 1.0]
    assert data.propensities.tolist() == [0.5, 0.25]
    assert data.contexts.tolist() == [[1, 2, 0, 0], [0, 3, 1, 1]]  # Tom, day, Anna, kind=new
    own = np.array([[[2, 6, 0, 0], [0, 0, 1, 0]], [[0, 1, 0, 0], [0, 4, 0, 1]]])  # politics, len, sports, music
    expected = [[np.kron([1, *arm], [1, *row]) for arm in arms] for arms, row in zip(own, data.contexts, strict=True)]
    np.testing.assert_array_equal(data.features.table(np.arange(2)), expected)


def test_logs_of_agents(logs, tmp_path):
    for kind in ("fixed", "changing", "context"):
        data = read_log(logs[kind].path)
        to_vw(data, tmp_path / f"{kind}.vw")
        again = from_vw(tmp_path / f"{kind}.vw", names=data.names)
        np.testing.assert_array_equal(again.arms, data.arms)
        np.testing.assert_array_equal(again.rewards, data.rewards)
        np.testing.assert_array_equal(again.propensities, data.propensities)
        offered = np.ones((len(data), data.n_arms), bool) if data.offered is None else data.offered
        np.testing.assert_array_equal(
            again.features.table(np.arange(len(data)))[offered], data.features.table(np.arange(len(data)))[offered]
        )


@pytest.mark.parametrize(
    ("text", "format", "said"),
    [
        ("", "adf", "decisions with labels"),
        ("|a x\n|a y\n", "adf", "decisions with labels"),
        ("0:1:0.5 |a x\n0:1:0.5 |a y\n", "adf", "one chosen arm in each block of lines, got 2"),
        ("0:1 |a x\n", "adf", "labels action:cost:probability, got '0:1'"),
        ("0:1:x |a x\n", "adf", "labels action:cost:probability"),
        ("0:1:0.5 |a x:inf\n", "adf", "finite features"),
        ("0:1:0.5 |a x\n", "cb", "labels of arms from 1 on"),
        ("0:1:7 |a x\n", "adf", "propensities must be above 0 and at most 1, got 7"),
        ("0:1:0.5 'y|a x\n", "wv", "format must be one of adf, cb, got 'wv'"),
    ],
)
def test_wrong_text_is_explained(tmp_path, text, format, said):
    (tmp_path / "log.vw").write_text(text)
    with pytest.raises(errors.InvalidArgument, match=said):
        from_vw(tmp_path / "log.vw", format=format)


def test_what_cannot_be_written_is_refused(tmp_path):
    data = LoggedData.of(ARMS, REWARDS, names=range(K), propensities=CHANCES, features=TABLES)
    with pytest.raises(errors.InvalidArgument, match="format must be 'adf' for a log whose arms have features"):
        to_vw(data, tmp_path / "log.vw", format="cb")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(errors.UnknownName, match="format must be one of adf, cb"):
        to_vw(data, tmp_path / "log.vw", format="wv")
    with pytest.raises(errors.InvalidArgument, match="data must have propensities"):
        to_vw(LoggedData.of(ARMS, REWARDS), tmp_path / "log.vw")
    (tmp_path / "log.vw").write_text("mine")
    with pytest.raises(errors.InvalidArgument, match="must be a new file"):
        to_vw(data, tmp_path / "log.vw")
    assert (tmp_path / "log.vw").read_text() == "mine"
    with pytest.raises(errors.CannotWrite):
        to_vw(data, tmp_path / "no" / "log.vw")
    with pytest.raises(errors.InvalidArgument, match="can be read"):
        from_vw(tmp_path / "nowhere.vw")
