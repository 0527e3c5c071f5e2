"""The Open Bandit Dataset: what a shop recommended, with which probability, and what was clicked.

The shop ZOZOTOWN recommended items of fashion in three places of a page, in three campaigns, by two policies at the
same time.  The small version of the data has 10 000 recommendations of each policy in each campaign, all of one week:

    random    every item is equally likely in every place
    bts       Bernoulli Thompson sampling, which learned all the while, so that its propensities change within minutes

It comes with the source distribution of the package obp.  Download that, and name the file or its directory:

    pip download --no-deps --no-binary :all: --ignore-requires-python obp==0.5.7
    log = explorax.datasets.open_bandit("men", "random", source="obp-0.5.7.tar.gz")

The files are used as they were published: a file with another SHA-256 is refused.

    source       the archive (also as .zip), or a directory.  Default: the directory that EXPLORAX_DATA names, or else
                 the user's cache.
    directory    has the archive, or the files as POLICY/CAMPAIGN/CAMPAIGN.csv and POLICY/CAMPAIGN/item_context.csv,
                 either directly or in a folder open-bandit; what was unpacked from the archive will do.

Reference: Saito et al., Open Bandit Dataset and Pipeline: Towards Realistic and Reproducible Off-Policy Evaluation,
NeurIPS Datasets and Benchmarks 2021.
"""

import csv
import hashlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath

import numpy as np

from explorax.data_files import ENVIRONMENT_VARIABLE, File, as_directory, cache_folder, check_published
from explorax.errors import InvalidArgument, UnknownName, shown
from explorax.log.data import LoggedData
from explorax.log.features import JoinedFeatures

ARCHIVE = "obp-0.5.7.tar.gz"
PIP = "pip download --no-deps --no-binary :all: --ignore-requires-python obp==0.5.7"
FOLDER, INSIDE = "open-bandit", "obp-0.5.7/obp/dataset/obd"  # of the files in a directory, and in the archive
POSITIONS = (1, 2, 3)
CAMPAIGNS, POLICIES = ("all", "men", "women"), ("random", "bts")
PUBLISHED = {
    file.name: file
    for file in (
        File("bts/all/all.csv", 5084456, "0ad874e4dbf6902f0845dd478ad8dde5ef6903583d3ffaace78411bdad064106"),
        File("bts/all/item_context.csv", 10041, "5d4359ba1cfa3ae88f0f1bae66bd633859fe6323817183632ee57b83539d9153"),
        File("bts/men/item_context.csv", 4287, "3b411ed6b0471316321a6b93f4f756bb25888eac6218cd71d0b603d41d85732d"),
        File("bts/men/men.csv", 3240432, "db6d1f7ed2d591ba521533e45286d4c1fba7fe57a8ad2e80342210335f43c527"),
        File("bts/women/item_context.csv", 5792, "a56295bad066a558eb783055afd9279f5f4e209a4776eafc22151c53f0ac89d4"),
        File("bts/women/women.csv", 3722697, "e5d1b49a39b608585a2f3014a3f54970430cd37a495c1b73fceb85cdf428a5b8"),
        File("random/all/all.csv", 5039451, "7168295b6e0a9eabcf3392320a5dd434e542b68e705d5cd9491499af589812f1"),
        File("random/all/item_context.csv", 10041, "eba04cc23d5f130a93ff174c5392986882b94c3839433cb8143870eaa6221358"),
        File("random/men/item_context.csv", 4287, "6d855c2b7e917d0448d71bbe62c023147495882c0fdc8c41e86fef86abf9fe09"),
        File("random/men/men.csv", 3336811, "ede6d08c6877f99cd3770f7d09e26c738e6aa6de4445ccccfb1356ba5d06b1eb"),
        File("random/women/item_context.csv", 5792, "b1ca4905f97703d196004f2ad4552c1e90c2afad8b50688d333b0d2dc0b33147"),
        File("random/women/women.csv", 3817771, "e65f3bd3beb17664fa69cc129bf7bf852a775f8ffa630506e505fc905315bb34"),
    )
}


def open_bandit(campaign: str = "all", policy: str = "random", source: str | Path | None = None) -> LoggedData:
    """Read a log of the small Open Bandit Dataset: 10 000 recommendations of a shop, and whether they were clicked.

    A row is one place of the page, 1, 2 or 3, in which one item was recommended.  All places are in one log, in the
    order of time; the place is the first column of `contexts`, so that a policy may depend on it, and rows of one
    place are `log.some(log.contexts[:, 0] == 1)`.

    Args:
        campaign: "all" (80 items), "men" (34) or "women" (46).
        policy: The policy that made the log: "random" or "bts" (Bernoulli Thompson sampling).
        source: The archive that pip downloads, or a directory.  Default: the directory that the environment variable
            EXPLORAX_DATA names, or else the user's cache.

    Returns:
        The log. The arms are the items, a reward is 1 for a click, and propensities are those of the item in its
        place, as they were logged; `all_propensities` are known for "random". `contexts` has the place, the four
        user features one-hot, and the affinity of the user to each item. `features` joins the place and the user
        features, one-hot, with the features of the item and the affinity to it. Both logs of a campaign have the
        same columns.

    Raises:
        InvalidArgument: If the files are not found or are not those that were published.
        UnknownName: If there is no such campaign or policy.
    """
    for kind, name, known in (("campaign", campaign, CAMPAIGNS), ("policy", policy, POLICIES)):
        if name not in known:
            raise UnknownName(kind, name, known)
    if not isinstance(source, str | Path | None):
        raise InvalidArgument(f"source must be the path of an archive or a directory, got {shown(source)}.")
    tables = [f"{each}/{campaign}/{campaign}.csv" for each in POLICIES]
    described = f"{policy}/{campaign}/item_context.csv"
    found = contents(located(source), [*tables, described])
    logs = [read_columns(found[name]) for name in tables]
    log, items = logs[POLICIES.index(policy)], item_features(read_columns(found[described]))
    # Few users are of a rare kind: the columns are those of both logs, to be the same in both.
    users = np.hstack([one_hot(log[name], sorted({*logs[0][name], *logs[1][name]})) for name in user_columns(log)])
    affinities = np.array([log[f"user-item_affinity_{item}"] for item in range(len(items))], float).T
    places = np.array(log["position"], int)
    rows, every = len(places), len(items)
    return LoggedData(
        arms=np.array(log["item_id"], int),
        rewards=np.array(log["click"], float),
        features=JoinedFeatures(np.hstack([one_hot(places, POSITIONS), users]), items, affinities),
        names=range(every),
        propensities=np.array(log["propensity_score"], float),
        all_propensities=np.full((rows, every), 1 / every) if policy == "random" else None,
        contexts=np.column_stack([places, users, affinities]),
        times=np.array([datetime.fromisoformat(each).timestamp() for each in log["timestamp"]]),
    )


def user_columns(log: dict[str, Sequence[str]]) -> list[str]:
    """Return the names of the columns that describe users, whose values are hashes."""
    return [name for name in log if name.startswith("user_feature")]


def item_features(table: dict[str, Sequence[str]]) -> np.ndarray:
    """Return the (K, p) features of the items: a number, and categories as zeros and ones.

    Each log has hashes of its own for the same categories, which are therefore taken in the order of the items.
    """
    order = np.argsort(np.array(table["item_id"], int))
    number = np.array(table["item_feature_0"], float)[order, None]
    hashes = [np.array(table[f"item_feature_{kind}"])[order].tolist() for kind in (1, 2, 3)]
    return np.hstack([number, *(one_hot(each, list(dict.fromkeys(each))) for each in hashes)])


def one_hot(values: Sequence[object] | np.ndarray, known: Sequence[object]) -> np.ndarray:
    """Return a column of zeros and ones for each of the known values."""
    return (np.asarray(values)[:, None] == np.asarray(known)).astype(float)


def read_columns(content: bytes) -> dict[str, Sequence[str]]:
    """Return the columns of a CSV file by name, as text."""
    header, *rows = csv.reader(io.StringIO(content.decode()))
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def located(source: str | Path | None) -> Path:
    """Return the archive, or the folder of the files, that is given or lies where data sets lie."""
    start = as_directory(source) or cache_folder("the Open Bandit Dataset in the user's cache")
    if start.is_file():
        return start
    folders = [start / folder / inside for folder in ("", FOLDER) for inside in ("", INSIDE)]
    archives = [start / folder / ARCHIVE for folder in ("", FOLDER)]
    for place in (*folders, *archives):
        if place.is_file() or any((place / policy).is_dir() for policy in POLICIES):
            return place
    raise InvalidArgument(
        f"source must be {ARCHIVE}, or a directory with it or with the folders random and bts, got {start}. "
        f"Download the archive with {PIP}, and name it with source=, or its directory with {ENVIRONMENT_VARIABLE}."
    )


def contents(place: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the contents of published files by name, from a folder or an archive; raise if one is not as published."""
    try:
        found = from_folder(place, names) if place.is_dir() else from_archive(place, names)
    except (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split())
        raise InvalidArgument(f"{place} cannot be read: {reason}. Download it again with {PIP}.") from error
    for name in names:
        if name not in found:
            raise InvalidArgument(f"{place} must hold {name}, got no such file. Download all of it with {PIP}.")
        check_published(place / name, found[name], hashlib.sha256(found[name]).hexdigest(), PUBLISHED[name])
    return found


def from_folder(place: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return those of the files that are in a folder."""
    return {name: (place / name).read_bytes() for name in names if (place / name).is_file()}


def from_archive(place: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return those of the files that are in an archive, in whatever folder there."""
    if zipfile.is_zipfile(place):
        with zipfile.ZipFile(place) as packed:
            members = {wanted: name for name in packed.namelist() for wanted in names if ends(name, wanted)}
            return {wanted: packed.read(name) for wanted, name in members.items()}
    found = {}
    with tarfile.open(place) as bundle:
        for member in bundle:
            for wanted in names:
                if member.isfile() and ends(member.name, wanted):
                    file = bundle.extractfile(member)
                    found[wanted] = file.read() if file else b""
    return found


def ends(path: str, wanted: str) -> bool:
    """Return whether a path in an archive ends with the parts of another path."""
    parts = PurePosixPath(wanted).parts
    return PurePosixPath(path).parts[-len(parts) :] == parts
