"""Snapshots that were damaged, edited or never ones: refused by name, without harm; and places that are not plain."""

import io
import json
import zipfile

import jax
import numpy as np
import pytest

from explorax import Agent, Encoder, arm_sets, errors, files, make
from explorax.agent import archive, snapshot

ROWS = np.random.default_rng(0).uniform(-1, 1, (4, 2))
NAMES = [f"arm {i}" for i in range(4)]


def lived(agent, *given):
    decisions = [agent.choose(*given) for _ in range(6)]
    agent.learn([decision.id for decision in decisions[:4]], [1.0, 0.0, 1.0, 1.0])
    return agent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Snapshots of one agent of each kind."""
    folder = tmp_path_factory.mktemp("snapshots")
    encoder = Encoder.fit([{"user": user, "price": price} for user in "ab" for price in (1.0, 2.0)])
    prices = {f"{price:g} euros": {"price": price} for price in (1.0, 2.0)}
    agents = {
        "fixed": (Agent(make("lin_ts"), arms=dict(zip(NAMES, ROWS, strict=True)), draws=0),),
        "changing": (Agent(make("lin_ts"), n_features=2, draws=0), ROWS),
        "context": (Agent(make("lin_ts"), arms=prices, encoder=encoder, draws=0), {"user": "a"}),
        "set": (Agent(make("lin_ts"), arms=arm_sets.ball([0.0, 0.0], 1.0), draws=0),),
    }
    for kind, (agent, *given) in agents.items():
        lived(agent, *given).save(folder / f"{kind}.npz")
    return folder


def edited(source, target, schema, arrays):
    """A snapshot with other values in its schema, and arrays that are changed by functions, or removed (None)."""
    with np.load(source) as archive:
        members = dict(archive)
    members["schema"] = np.frombuffer(json.dumps(json.loads(members["schema"].tobytes()) | schema).encode(), np.uint8)
    for name, change in arrays.items():
        members[name] = change and change(members[name])
    np.savez(target, **{name: array for name, array in members.items() if array is not None})
    return target


def with_first(value):
    """A change of an array: another first element."""

    def change(array):
        array = array.copy()
        array.flat[0] = value
        return array

    return change


EDITS = {  # kind, schema, arrays, words
    "NaN in the state": ("fixed", {}, {"state_0": with_first(np.nan)}, "of the state contains NaN or infinity"),
    "infinity in the state": ("fixed", {}, {"state_0": with_first(np.inf)}, "of the state contains NaN or infinity"),
    "another dtype": (
        "fixed",
        {},
        {"state_0": np.float32},
        r"must have shape \(2, 2\) and dtype float64, got .*float32",
    ),
    "another shape": ("fixed", {}, {"state_0": lambda a: a[:1]}, r"of the state must have shape \(2, 2\)"),
    "no state_0": ("fixed", {}, {"state_0": None}, "of the state is missing: there is no array state_0"),
    "no ids": ("fixed", {}, {"pending_ids": None}, "ids of decisions that wait is missing"),
    "names twice": ("fixed", {"names": ["a", "a", "b", "c"]}, {}, "arm name 'a' is given twice"),
    "too many names": ("fixed", {"names": ["a", "b", "c", "d", "e"]}, {}, "5 names do not go with a table of 4 arms"),
    "too few names": ("fixed", {"names": ["a"]}, {}, "1 names do not go with a table of 4 arms"),
    "no name": ("fixed", {"names": [None, "b", "c", "d"]}, {}, "an arm on offer has no name"),
    "explore_floor": ("fixed", {"explore_floor": 2}, {}, "explore_floor must be a number from 0"),
    "names are no list": ("fixed", {"names": 3}, {}, "lacks something, or has it in another form"),
    "rows below 0": ("fixed", {}, {"pending_rows": with_first(-1)}, "must be rows from 0 to 3, got"),
    "rows beyond the arms": ("fixed", {}, {"pending_rows": with_first(4)}, "must be rows from 0 to 3, got"),
    "an id twice": ("fixed", {}, {"pending_ids": lambda a: a * 0 + 4}, "a decision waits twice"),
    "an id never made": ("fixed", {}, {"pending_ids": with_first(77)}, "decision 77 waits .* and was never made"),
    "features NaN": ("fixed", {}, {"pending_features": with_first(np.nan)}, "decisions that wait contains NaN"),
    "fewer rows": ("fixed", {}, {"pending_rows": lambda a: a[:1]}, r"arms of decisions that wait must have shape \(2,"),
    "arms NaN": ("fixed", {}, {"arms": with_first(np.nan)}, "the table of arms contains NaN"),
    "on offer or not": ("fixed", {}, {"active": np.float64}, "which arms are on offer must have .* dtype bool"),
    "decisions below 0": ("fixed", {"decisions": -1}, {}, "decisions=-1 must be a whole number of at least 0"),
    "decisions too few": ("fixed", {"decisions": 3}, {}, "spans of decisions must follow each other up to decision 3"),
    "dropped text": ("fixed", {"dropped": "x"}, {}, "dropped='x' must be a whole number"),
    "dropped too many": ("fixed", {"dropped": 7}, {}, "dropped=7 is more than the 6 decisions"),
    "unsure too large": ("fixed", {"unsure": 7}, {}, "unsure=7 is more than the 6 decisions"),
    "offset": ("fixed", {"offset": 0.5}, {}, "offset=0.5 must be a whole number"),
    "spans overlap": ("fixed", {"spans": [[0, 0, 6], [9, 3, 6]]}, {}, "spans of decisions must follow each other"),
    "spans too far": ("fixed", {"spans": [[2**53, 0, 6]]}, {}, "spans of decisions must follow each other"),
    "spans are no list": ("fixed", {"spans": [0]}, {}, "lacks something, or has it in another form"),
    "draws": ("fixed", {"draws": 2.5}, {}, "draws=2.5 must be a whole number"),
    "pending": ("fixed", {"max_pending": 0}, {}, "max_pending=0 must be a whole number of at least 1"),
    "features": ("fixed", {"features": 3}, {}, r"table of arms must have shape \(None, 3\)"),
    "kind": ("fixed", {"kind": "changing"}, {}, "kind='changing' does not go with its arms"),
    "no such kind": ("fixed", {"kind": "some"}, {}, "unknown kind of arms 'some'"),
    "no such dtype": ("fixed", {"dtype": "float16"}, {}, "unknown dtype 'float16'"),
    "state": ("fixed", {"state": 5}, {}, "lacks something, or has it in another form"),
    "rows of changing arms": ("changing", {}, {"pending_rows": with_first(-1)}, "must be rows from 0"),
    "changing with names": ("changing", {"names": ["a"]}, {}, "kind='changing' does not go with its arms"),
    "no attributes": ("context", {"attributes": []}, {}, "attributes of 0 arms do not go with 2 names"),
    "a list of attributes": ("context", {"attributes": [[1], [2]]}, {}, "must be text, numbers, True or False"),
    "attributes missing": ("context", {"attributes": [{"price": None}, {"price": float("nan")}]}, {}, "must be text"),
    "encoder of others": ("context", {"features": 2}, {}, "features=2 where the encoder makes"),
    "bytes of the encoder": ("context", {}, {"encoder": with_first(0)}, "are no saved encoder"),
    "no such set": ("set", {"set": "cube"}, {}, "unknown kind of arm set 'cube'"),
    "radius": ("set", {}, {"set_radius": with_first(-1.0)}, "radius=-1.0 must be a finite number above 0"),
}


@pytest.mark.parametrize("case", EDITS)
def test_what_contradicts_itself_is_refused(case, folder, tmp_path):
    kind, schema, arrays, words = EDITS[case]
    path = edited(folder / f"{kind}.npz", tmp_path / "agent.npz", schema, arrays)
    with pytest.raises(errors.InvalidSnapshot, match=f"agent.npz (cannot be used: )?.*{words}"):
        Agent.load(path)


def test_counts_below_0_are_refused(tmp_path):
    agent = lived(Agent(make("lin_ts", window=3), n_features=2, draws=0), ROWS)
    agent.save(tmp_path / "agent.npz")
    described, _ = snapshot.flatten(agent.state)
    place = next(i for i, (name, *_) in enumerate(described) if name.endswith(".seen"))
    edited(tmp_path / "agent.npz", tmp_path / "agent.npz", {}, {f"state_{place}": with_first(-1)})
    with pytest.raises(
        errors.InvalidSnapshot, match="seen of the state counts or names something, and must not be neg"
    ):
        Agent.load(tmp_path / "agent.npz")


def test_a_state_that_is_not_finite_is_not_saved(tmp_path):
    lived(Agent(make("lin_ts"), arms=ROWS, draws=0)).save(tmp_path / "agent.npz")
    before = (tmp_path / "agent.npz").read_bytes()
    policy = make("lin_ts")
    broken = policy._replace(init=lambda *given: jax.tree.map(lambda leaf: leaf * np.nan, policy.init(*given)))
    agent = Agent(broken, arms=ROWS, draws=0)
    with pytest.raises(
        errors.NotFinite, match="of the state contains NaN or infinity, and is not saved: load the last"
    ):
        agent.save(tmp_path / "agent.npz")
    assert (tmp_path / "agent.npz").read_bytes() == before


def test_a_byte_that_is_flipped(folder, tmp_path):
    """Every 7th byte of all, and every one of the directory at the end: refused, or read as it was."""
    content = (folder / "fixed.npz").read_bytes()
    schema, arrays = archive.read(folder / "fixed.npz")
    path, read = tmp_path / "agent.npz", 0
    for place in sorted({*range(0, len(content), 7), *range(content.index(b"PK\1\2"), len(content))}):
        path.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
        try:
            found, others = archive.read(path)
        except errors.InvalidSnapshot:
            continue
        read += 1
        assert found == schema
        assert others.keys() == arrays.keys()
        for name, array in others.items():
            assert array.dtype == arrays[name].dtype
            np.testing.assert_array_equal(array, arrays[name])
    assert read > 0  # there are bytes that nobody needs, such as dates


def with_header(path, header):
    """The same archive with another header of `state_0`, and right checksums."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    start, end = members["state_0.npy"].index(b"{"), members["state_0.npy"].index(b"\n")
    members["state_0.npy"] = (
        members["state_0.npy"][:start] + header.encode().ljust(end - start) + members["state_0.npy"][end:]
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)


def compressed(path):
    with np.load(path) as archive:
        members = dict(archive)
    np.savez_compressed(path, **members)


def nested(path):
    np.savez(path, schema=np.frombuffer(b"[" * 100_000 + b"]" * 100_000, np.uint8))


def npy(path):
    with open(path, "wb") as file:
        np.save(file, ROWS)


ODD = {
    "an array of 8 TB": (
        lambda path: with_header(path, "{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,), }"),
        "Cannot parse header|malformed|state_0.npy",
    ),
    "an array of 7 TiB": (
        lambda path: with_header(path, "{'descr': '<f8','fortran_order': False, 'shape': (1000000000000,)}"),
        r"state_0.npy does not hold an array of shape \(1000000000000,\) and dtype float64, as it says",
    ),
    "a negative shape": (
        lambda path: with_header(path, "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -2), }"),
        "is no snapshot, or a damaged one",
    ),
    "compressed": (compressed, "npy is compressed"),
    "nested": (nested, "is no snapshot, or a damaged one: .*recursion"),
    "npy": (npy, "is no snapshot, or a damaged one: File is not a zip file"),
    "no schema": (lambda path: np.savez(path, a=ROWS), "is no snapshot, or a damaged one: it has no schema"),
    "a list": (lambda path: np.savez(path, schema=np.frombuffer(b"[]", np.uint8)), "is no snapshot of an agent"),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_files(case, folder, tmp_path):
    change, words = ODD[case]
    path = tmp_path / "agent.npz"
    path.write_bytes((folder / "fixed.npz").read_bytes())
    change(path)
    with pytest.raises(errors.InvalidSnapshot, match=words):
        Agent.load(path)


def test_places_that_are_none(folder, tmp_path):
    agent = Agent.load(folder / "fixed.npz")
    for path in (None, 5, b"agent.npz", "a\0b", ["agent.npz"]):
        for call in (agent.save, Agent.load):
            with pytest.raises(errors.InvalidArgument, match="path must be the name of a file, as text or a Path, got"):
                call(path)
    with pytest.raises(errors.InvalidSnapshot, match="cannot be read: Is a directory"):
        Agent.load(tmp_path)


def test_a_symbolic_link_stays_one(folder, tmp_path):
    agent = Agent.load(folder / "fixed.npz")
    (tmp_path / "disk").mkdir()
    (tmp_path / "link.npz").symlink_to("disk/agent.npz")  # there is no such file yet
    for _ in range(2):
        agent.choose()
        agent.save(tmp_path / "link.npz")
        assert (tmp_path / "link.npz").is_symlink()
        assert Agent.load(tmp_path / "disk" / "agent.npz").decisions == agent.decisions
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["agent.npz", "disk", "link.npz"]
    (tmp_path / "round.npz").symlink_to("round.npz")
    with pytest.raises(errors.InvalidArgument, match="must be a file in a folder that exists"):
        agent.save(tmp_path / "round.npz")


def test_leftovers_of_writers_that_were_killed(folder, tmp_path):
    """Those that nobody holds are removed, whatever process they are said to be of; nothing else is."""
    agent, path = Agent.load(folder / "fixed.npz"), tmp_path / "agent.npz"
    kept = [".agent.npz.1.2.tmp", ".other.npz.1.2.tmp", ".agent.npz.old.tmp", "agent.npz.1.2.tmp"]
    for name in (*kept, ".agent.npz.1.1.tmp", ".agent.npz.123456.140000000000000.tmp"):
        (tmp_path / name).write_bytes(b"half")
    with open(tmp_path / kept[0], "ab") as writing:
        assert files.acquire(writing.fileno())
        agent.save(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([*kept, "agent.npz"])
    agent.save(path)  # the writer is gone
    assert not (tmp_path / kept[0]).exists()


def test_a_temporary_file_that_is_removed_before_it_is_held(tmp_path, monkeypatch):
    acquire, removed = files.acquire, []

    def late(descriptor, **settings):
        if not removed:
            removed.extend(each.unlink() or each for each in list(tmp_path.iterdir()))
        return acquire(descriptor, **settings)

    monkeypatch.setattr(files, "acquire", late)
    with files.temporary(tmp_path / "a") as beside:
        assert removed == [beside]
        assert beside.exists()
    assert not list(tmp_path.iterdir())


def test_archives_are_those_of_numpy(folder):
    """What is read without NumPy's own reader is what NumPy reads."""
    _, arrays = archive.read(folder / "context.npz")
    with np.load(io.BytesIO((folder / "context.npz").read_bytes()), allow_pickle=False) as read:
        assert {*arrays, "schema"} == set(read.files)
        for name, array in arrays.items():
            assert array.dtype == read[name].dtype
            np.testing.assert_array_equal(array, read[name])
