"""Logs of the Open Bandit Dataset are read exactly, from files that are what they say or not at all."""

import hashlib
import io
import os
import re
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pooch
import pytest

from explorax import open_bandit as module
from explorax.data_files import File
from explorax.datasets import open_bandit
from explorax.errors import InvalidArgument, UnknownName

ITEMS, ROWS = 5, 40
INSIDE = "obp-0.5.7/obp/dataset/obd"
CASES = [(campaign, policy) for campaign in ("men", "women") for policy in ("random", "bts")]


def fabricated(seed, kinds):
    """A log and its items, in the columns of the data set."""
    rng = np.random.default_rng(seed)
    times = pd.Timestamp("2019-11-24 00:00:34.762830+00:00") + pd.to_timedelta(np.arange(ROWS) * 61.000001, unit="s")
    log = pd.DataFrame(
        {
            "timestamp": [str(time) for time in times],
            "item_id": rng.integers(ITEMS, size=ROWS),
            "position": rng.integers(1, 4, size=ROWS),
            "click": rng.integers(2, size=ROWS),
            "propensity_score": 0.2 if seed % 2 else rng.uniform(0.01, 1.0, size=ROWS),
        }
        | {f"user_feature_{k}": rng.choice(list(kinds), size=ROWS) for k in range(4)}
        | {f"user-item_affinity_{item}": rng.integers(3, size=ROWS) / 2 for item in range(ITEMS)}
    )
    items = pd.DataFrame({"item_id": range(ITEMS), "item_feature_0": rng.normal(size=ITEMS)})
    for k, groups in enumerate(([0, 1, 0, 2, 1], [0, 0, 0, 1, 1], [0, 1, 2, 3, 4]), start=1):
        hashes = rng.permutation(list("vwxyz"))  # of this log alone: the groups are the same
        items[f"item_feature_{k}"] = hashes[groups]
    return log, items


TABLES = {
    (campaign, policy): fabricated(seed, kinds)
    for seed, ((campaign, policy), kinds) in enumerate(zip(reversed(CASES), ("abc", "bcd", "ab", "a"), strict=True))
}
FILES = {
    f"{policy}/{campaign}/{name}": table.to_csv().encode()
    for (campaign, policy), tables in TABLES.items()
    for name, table in zip((f"{campaign}.csv", "item_context.csv"), tables, strict=True)
}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Published files of a few rows, an empty cache and no directory."""
    published = {name: File(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in FILES.items()}
    monkeypatch.setattr(module, "PUBLISHED", published)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.delenv("EXPLORAX_DATA", raising=False)


def folder(place, files=FILES):
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return place


def tarred(path, files=FILES, inside=INSIDE):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as bundle:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{inside}/{name}")
            member.size = len(content)
            bundle.addfile(member, io.BytesIO(content))
        bundle.addfile(tarfile.TarInfo("obp-0.5.7/women/women.csv"))  # another file of that name
    return path


def zipped(path, files=FILES):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(f"data/{name}", content)
    return path


def dummies(column, categories):
    return pd.get_dummies(pd.Categorical(column, categories)).to_numpy(float)


@pytest.mark.parametrize(("campaign", "policy"), CASES)
@pytest.mark.parametrize("kind", ["folder", "archive", "zip"])
def test_a_log_is_what_pandas_reads(tmp_path, campaign, policy, kind):
    source = {
        "folder": lambda: folder(tmp_path / "obd"),
        "archive": lambda: tarred(tmp_path / "obp.tar.gz"),
        "zip": lambda: zipped(tmp_path / "obd.zip"),
    }[kind]()
    found = open_bandit(campaign, policy, source if kind == "zip" else str(source))
    log, items = TABLES[campaign, policy]
    both = pd.concat([TABLES[campaign, each][0] for each in ("random", "bts")])
    np.testing.assert_array_equal(found.arms, log.item_id)
    np.testing.assert_array_equal(found.rewards, log.click)
    np.testing.assert_array_equal(found.propensities, log.propensity_score)
    assert found.names == tuple(range(ITEMS))
    whole = pd.to_datetime(log.timestamp) - pd.Timestamp(0, tz="UTC")
    np.testing.assert_allclose(found.times, whole / pd.Timedelta(seconds=1), rtol=0, atol=1e-6)
    users = [dummies(log[f"user_feature_{k}"], sorted(both[f"user_feature_{k}"].unique())) for k in range(4)]
    affinities = log.filter(like="affinity").to_numpy()
    np.testing.assert_array_equal(found.contexts, np.column_stack([log.position, *users, affinities]))
    described = [items[f"item_feature_{k}"] for k in (1, 2, 3)]
    own = np.column_stack([items.item_feature_0, *(dummies(each, each.unique()) for each in described)])
    table = found.features.table(np.arange(ROWS))
    assert table.shape == (ROWS, *found.features.shape)
    for row in range(ROWS):
        for item in range(ITEMS):
            wanted = [*dummies(log.position, [1, 2, 3])[row], *np.concatenate(users, axis=1)[row]]
            wanted += [*own[item], log.loc[row, f"user-item_affinity_{item}"]]
            np.testing.assert_array_equal(table[row, item], wanted)


def test_both_logs_of_a_campaign_have_the_same_columns(tmp_path):
    folder(tmp_path)
    random, bts = (open_bandit("men", policy, tmp_path) for policy in ("random", "bts"))
    assert random.contexts.shape[1] == bts.contexts.shape[1]
    rows = np.arange(1)
    start = random.features.contexts.shape[1] + 1  # after what describes the user, and a number
    np.testing.assert_array_equal(
        random.features.table(rows)[0, :, start:-1], bts.features.table(rows)[0, :, start:-1]
    )  # although each has hashes of its own


def test_all_probabilities_are_known_of_the_uniform_policy_alone(tmp_path):
    folder(tmp_path)
    np.testing.assert_array_equal(open_bandit("men", "random", tmp_path).all_propensities, np.full((ROWS, ITEMS), 0.2))
    assert open_bandit("men", "bts", tmp_path).all_propensities is None


def test_some_rows_have_their_own_features(tmp_path):
    log = open_bandit("men", "bts", folder(tmp_path))
    rows = np.flatnonzero(log.contexts[:, 0] == 2)
    part, table = log.some(log.contexts[:, 0] == 2), log.features.table(rows)
    places = np.arange(len(part))
    np.testing.assert_array_equal(part.features.table(places), table)
    np.testing.assert_array_equal(part.features.chosen(places, part.arms), table[places, log.arms[rows]])


@pytest.mark.parametrize("inside", ["", "open-bandit", INSIDE, f"open-bandit/{INSIDE}"])
@pytest.mark.parametrize("named", ["source", "environment", "cache"])
def test_places_of_the_files(tmp_path, monkeypatch, inside, named):
    start = tmp_path / "cache" / "explorax" if named == "cache" else tmp_path / "data"
    folder(start / inside)
    if named == "environment":
        monkeypatch.setenv("EXPLORAX_DATA", str(start))
    assert len(open_bandit("men", source=start if named == "source" else None)) == ROWS


@pytest.mark.parametrize("inside", ["", "open-bandit"])
def test_a_directory_may_hold_the_archive(tmp_path, inside):
    tarred(tmp_path / inside / "obp-0.5.7.tar.gz")
    assert len(open_bandit("women", "bts", tmp_path)) == ROWS


def test_files_that_are_not_found_are_named_with_the_remedy(tmp_path, monkeypatch):
    for place in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InvalidArgument) as caught:
            open_bandit(source=place)
        for part in (f"got {place}.", "obp-0.5.7.tar.gz", "pip download --no-deps", "obp==0.5.7", "EXPLORAX_DATA"):
            assert part in str(caught.value)
    with pytest.raises(InvalidArgument, match=re.escape(f"got {tmp_path / 'cache' / 'explorax'}.")):
        open_bandit()


@pytest.mark.parametrize("pack", [folder, tarred, zipped])
def test_a_file_that_is_not_as_published_is_refused(tmp_path, pack):
    damaged = FILES["random/men/men.csv"].replace(b"0.2", b"0.3")
    with pytest.raises(InvalidArgument) as caught:
        open_bandit("men", "random", pack(tmp_path / "obd", FILES | {"random/men/men.csv": damaged}))
    for part in ("random/men/men.csv is damaged, or another file", hashlib.sha256(damaged).hexdigest(), "whole copy"):
        assert part in str(caught.value)


@pytest.mark.parametrize("pack", [folder, tarred, zipped])
def test_a_file_that_is_missing_is_named(tmp_path, pack):
    some = {name: content for name, content in FILES.items() if name != "bts/men/item_context.csv"}
    place = pack(tmp_path / "obd", some)
    assert len(open_bandit("men", "random", place)) == ROWS
    with pytest.raises(InvalidArgument, match=r"must hold bts/men/item_context.csv, got no such file\. .* pip down"):
        open_bandit("men", "bts", place)


def test_an_archive_that_cannot_be_read_is_refused(tmp_path):
    whole = tarred(tmp_path / "whole.tar.gz").read_bytes()
    for name, content in (("cut.tar.gz", whole[: len(whole) // 2]), ("text.tar.gz", b"no archive"), ("none.zip", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidArgument, match=rf"{name} cannot be read: .*\. Download it again with pip download"):
            open_bandit("men", "random", tmp_path / name)
    path = zipped(tmp_path / "whole.zip")
    with zipfile.ZipFile(path) as packed:
        start = packed.getinfo("data/random/men/men.csv").header_offset
    content = path.read_bytes()
    path.write_bytes(content[: start + 100] + bytes(50) + content[start + 150 :])
    with pytest.raises(InvalidArgument, match=r"whole\.zip cannot be read"):
        open_bandit("men", "random", path)


def test_arguments_that_are_none_of_these():
    with pytest.raises(UnknownName, match=r"campaign must be one of all, men, women, got 'woman'\. Did you mean"):
        open_bandit("woman")
    with pytest.raises(UnknownName, match=r"policy must be one of bts, random, got 'thompson'"):
        open_bandit("men", "thompson")
    with pytest.raises(InvalidArgument, match=r"source must be the path of an archive or a directory, got 3\."):
        open_bandit("men", source=3)


PUBLISHED, REAL = module.PUBLISHED, os.environ.get("EXPLORAX_DATA", "")
CLICKS = {
    ("all", "random"): 38,
    ("all", "bts"): 42,
    ("men", "random"): 46,
    ("men", "bts"): 69,
    ("women", "random"): 46,
    ("women", "bts"): 46,
}


def real_data():
    """Whether EXPLORAX_DATA names a directory that holds the data set itself."""
    try:
        return bool(REAL) and Path(module.located(REAL)).exists()
    except InvalidArgument:
        return False


@pytest.mark.skipif(not real_data(), reason="EXPLORAX_DATA names no directory with the Open Bandit Dataset")
@pytest.mark.parametrize(("campaign", "policy"), CLICKS)
def test_the_data_set_itself(monkeypatch, campaign, policy):
    monkeypatch.setattr(module, "PUBLISHED", PUBLISHED)
    log, known = open_bandit(campaign, policy, REAL), {"all": 80, "men": 34, "women": 46}[campaign]
    assert (len(log), log.n_arms, log.rewards.sum()) == (10_000, known, CLICKS[campaign, policy])
    assert set(log.contexts[:, 0]) == {1, 2, 3}
    assert (np.diff(log.times) >= 0).all()
    if policy == "random":
        np.testing.assert_allclose(log.propensities, 1 / known, rtol=1e-15)
