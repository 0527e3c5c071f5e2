"""State that survives: saved whole or not at all, loaded exactly or refused."""

import functools
import io
import json
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import explorax
from explorax import Agent, Encoder, arm_sets, errors, make
from explorax.agent import archive, snapshot
from explorax.networks import Network
from tests.helpers import assert_same

KEPT = Path(__file__).parent / "snapshots"  # written by earlier versions, and never changed
MATRIX = np.random.default_rng(0).uniform(-1, 1, (5, 3))
SAMPLE = [{"user": user, "price": price} for user in "ab" for price in (1.0, 2.0, 4.0)]
TABLES = [np.random.default_rng(i).uniform(-1, 1, (4 + i, 3)) for i in range(4)]


def fixed(name, **settings):
    return Agent(make(name, **settings), arms={f"arm {i}": row for i, row in enumerate(MATRIX)}, seed=3)


def in_context():
    encoder = Encoder.fit(SAMPLE, interactions=True)
    prices = {f"{price:g} euros": {"price": price} for price in (1.0, 2.0, 4.0)}
    policy = make("glm_fpl", family="poisson", memory="constant", warmup="none")
    return Agent(policy, arms=prices, encoder=encoder, draws=10)


AGENTS = {  # how they are made, and what they choose from
    "fixed": (lambda: fixed("glm_tsl"), None),
    "float32": (lambda: Agent(make("ucb_glm"), arms=MATRIX, dtype="float32"), None),
    "discounted": (lambda: fixed("glm_tsl", discount=0.9), None),
    "changing": (lambda: Agent(make("glm_fpl", memory="refitted", capacity=20), n_features=3, draws=5), TABLES),
    "rows": (lambda: Agent(make("glm_tsl", capacity=8, when_full="forget"), n_features=3), TABLES),
    "linear": (lambda: Agent(make("lin_ts"), n_features=3, draws=5), TABLES),
    "deep": (lambda: Agent(make("deep_fpl", hidden=(4,), batch=4, redraws=True), n_features=3, draws=5), TABLES),
    "context": (in_context, [{"user": "a"}, {"user": "b"}]),
    "set": (
        lambda: Agent(
            make("glm_tsl", memory="constant"), arms=arm_sets.polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0]), draws=5
        ),
        None,
    ),
}


def decide(agent, given, number):
    return agent.choose() if given is None else agent.choose(given[number % len(given)])


def lived(name):
    """An agent with a past, some of it still to come."""
    made, given = AGENTS[name]
    agent = made()
    decisions = [decide(agent, given, i) for i in range(12)]
    agent.learn([decision.id for decision in decisions[:9]], [1, 0, 1, 1, 0, 0, 1, 0, 1])
    return agent, given


def but_for_ids(decisions):
    return [decision._replace(id=None) for decision in decisions]


@pytest.mark.parametrize("name", AGENTS)
def test_a_loaded_agent_goes_on_exactly(name, tmp_path):
    agent, given = lived(name)
    agent.save(tmp_path / "agent.npz")
    loaded, other = (Agent.load(tmp_path / "agent.npz", same_ids=same) for same in (True, False))
    assert loaded.pending == other.pending == agent.pending == [9, 10, 11]
    for number in range(6):
        decision = decide(agent, given, number)
        assert decide(loaded, given, number) == decision
        found = decide(other, given, number)
        assert but_for_ids([found]) == but_for_ids([decision])
        assert found.id >= 2**32
        for each in (loaded, other, agent):
            each.learn(each.pending[number % 2], 1.0)
    for each in (loaded, other):
        assert_same(each.state, agent.state)
    for each, file in ((loaded, "again.npz"), (agent, "agent.npz")):
        each.save(tmp_path / file)
    with np.load(tmp_path / "again.npz") as again, np.load(tmp_path / "agent.npz") as first:
        assert again.files == first.files
        for member in set(first.files) - {"encoder"}:  # an archive of its own, which has times in it
            np.testing.assert_array_equal(again[member], first[member])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")  # of the encoder in them
@pytest.mark.parametrize("path", sorted(KEPT.glob("format*.npz")), ids=lambda path: path.stem)
def test_snapshots_of_earlier_versions_load(path):
    """They make the decisions that were made when they were written; `write_kept` wrote them."""
    agent = Agent.load(path)
    assert (agent.decisions, agent.pending, agent.dropped) == (12, [9, 10, 11], 0)
    expected = json.loads(path.with_suffix(".json").read_text())
    given = AGENTS[path.stem.split("-")[1]][1]
    decisions = [decide(agent, given, i) for i in range(len(expected["rows"]))]
    assert [decision.row for decision in decisions] == expected["rows"]
    np.testing.assert_allclose([d.features.tolist() for d in decisions], expected["features"], rtol=1e-6)
    np.testing.assert_allclose([d.propensity for d in decisions], expected["propensities"], atol=0.05)
    agent.learn(agent.pending, np.ones(len(agent.pending)))


@pytest.mark.parametrize("number", archive.READ)
def test_a_root_that_a_former_format_did_not_save_is_computed(number):
    state = Agent.load(KEPT / f"format{number}-rows.npz").state
    past, x = state.memory.past, np.asarray(state.memory.past.features)
    means = 1 / (1 + np.exp(-x @ np.asarray(state.theta_hat)))
    curvature = (x * (np.asarray(past.counts) * means * (1 - means))[:, None]).T @ x + float(state.ridge) * np.eye(3)
    root = np.asarray(state.memory.kept_root)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(curvature), rtol=1e-9)


def write_kept():
    """Keep snapshots of this version for all time; called by hand when the format gets a new number."""
    for name in AGENTS:
        agent, given = lived(name)
        path = KEPT / f"format{archive.FORMAT}-{name}.npz"
        agent.save(path)
        decisions = [decide(agent, given, i) for i in range(8)]
        expected = {
            "rows": [decision.row for decision in decisions],
            "features": [decision.features.tolist() for decision in decisions],
            "propensities": [decision.propensity for decision in decisions],
        }
        path.with_suffix(".json").write_text(json.dumps(expected))


def test_every_kind_of_agent_is_kept():
    assert {path.stem for path in KEPT.glob("format*.npz")} >= {f"format{archive.FORMAT}-{name}" for name in AGENTS}


def test_arms_that_came_and_went(tmp_path):
    agent = fixed("glm_tsl")
    agent.learn(list(agent.choose_many(10).ids), np.tile([0.0, 1.0], 5))
    agent.add_arm("new", [1.0, 1.0, 1.0])
    agent.update_arm("arm 2", [0.5, -1.0, 0.0])
    agent.retire_arm("arm 1")
    agent.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz")
    assert loaded.arms == agent.arms
    for each in (agent, loaded):
        each.add_arm("newer", [0.0, 1.0, 0.0])
        each.restore_arm("arm 1")
    assert but_for_ids(loaded.choose_many(20)) == but_for_ids(agent.choose_many(20))


@pytest.mark.parametrize("name", ["glm_tsl", "lin_ts"])
def test_rows_that_were_given_away(name, tmp_path):
    agent = fixed(name, warmup="none")
    late = agent.choose(among=["arm 2"])
    agent.retire_arm("arm 2")
    agent.add_arm("new", [1.0, 1.0, 1.0])
    agent.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz")
    for each in (agent, loaded):
        assert not each.arms["arm 2"]
        each.learn(late.id, 1.0)
        each.restore_arm("arm 2")
        np.testing.assert_array_equal(each.choose(among=["arm 2"]).features, late.features)
    assert_same(loaded.state, agent.state)
    assert but_for_ids(loaded.choose_many(20)) == but_for_ids(agent.choose_many(20))


def test_a_network_of_ones_own_is_given_again(tmp_path):
    network = Network(
        init=lambda key, features: {"w": jax.random.normal(key, (features,))},
        apply=lambda params, rows: rows @ params["w"],
    )
    policy = make("deep_fl", network=network, batch=4)
    agent = Agent(policy, n_features=3)
    agent.learn(agent.choose(TABLES[0]).id, 1.0)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(errors.InvalidSnapshot, match=r"cannot be made from text.*policy=make"):
        Agent.load(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz", policy, same_ids=True)
    assert loaded.choose(TABLES[1]) == agent.choose(TABLES[1])
    with pytest.raises(errors.InvalidSnapshot, match="saved with the policy 'deep_fl', not 'lin_ts'"):
        Agent.load(tmp_path / "agent.npz", make("lin_ts"))


def full(tmp_path, name="glm_tsl", **settings):
    """An agent with three rewards and no room for more, of two decisions that still wait; saved."""
    agent = Agent(make(name, capacity=3, **settings), n_features=3, draws=0)
    ids = [agent.choose(table).id for table in (*TABLES, TABLES[0])]
    agent.learn(ids[:3], [1.0, 0.0, 1.0])
    agent.save(tmp_path / "agent.npz")
    return agent, ids[3:]


def test_an_agent_that_is_full_goes_on_with_more_room(tmp_path):
    agent, waiting = full(tmp_path, warmup="none")
    remedy = r"Agent.load\(path, make\('glm_tsl', capacity=6, warmup='none'\)\)"
    with pytest.raises(
        errors.HistoryFull, match=rf"All 3 rows are taken\. Give a larger capacity.*newest\. Save the agent.*{remedy}"
    ):
        agent.learn(waiting, [1.0, 0.0])
    larger = Agent.load(tmp_path / "agent.npz", make("glm_tsl", capacity=6, warmup="none"))
    larger.learn(waiting, [1.0, 0.0])
    never_full = Agent(make("glm_tsl", capacity=6, warmup="none"), n_features=3, draws=0)
    never_full.learn([never_full.choose(table).id for table in (*TABLES, TABLES[0])], [1.0, 0.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(larger.state.theta_hat, never_full.state.theta_hat, atol=1e-6)
    assert larger.state.memory.past.seen == 5
    larger.save(tmp_path / "larger.npz")
    assert Agent.load(tmp_path / "larger.npz").policy.recipe.settings["capacity"] == 6


@pytest.mark.parametrize("memory", ["constant", "refitted"])
def test_an_agent_goes_on_with_another_memory(memory, tmp_path):
    agent, waiting = full(tmp_path)
    loaded = Agent.load(tmp_path / "agent.npz", make("glm_tsl", memory=memory))
    np.testing.assert_allclose(loaded.state.theta_hat, agent.state.theta_hat, atol=1e-6)
    loaded.learn(waiting, [1.0, 0.0])
    assert loaded.pending == []


def test_other_settings_that_a_state_cannot_have(tmp_path):
    full(tmp_path)
    load = functools.partial(Agent.load, tmp_path / "agent.npz")
    with pytest.raises(errors.HistoryFull):
        load(make("glm_tsl", capacity=2))
    with pytest.raises(errors.InvalidSnapshot, match=r"cannot go on with .*\. Leave family as it was"):
        load(make("glm_tsl", family="poisson"))
    with pytest.raises(errors.InvalidSnapshot, match="discount"):
        load(make("glm_tsl", discount=0.9))
    full(tmp_path, memory="refitted")
    load(make("glm_tsl", memory="constant")).save(tmp_path / "agent.npz")
    with pytest.raises(errors.InvalidSnapshot, match=r"agent.npz cannot be used: "):
        load(make("glm_tsl", capacity=100))
    agent, _ = lived("linear")
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(errors.InvalidSnapshot, match=r"lin_ts cannot go on with .*\. Leave scale as it was"):
        load(make("lin_ts", scale=2.0))


def rewritten(path, **changes):
    with np.load(path) as archive:
        arrays = dict(archive)
    schema = json.loads(arrays.pop("schema").tobytes()) | changes
    arrays["schema"] = np.frombuffer(json.dumps(schema).encode(), np.uint8)
    np.savez(path, **arrays)


def spoil_bits(path):
    content = bytearray(path.read_bytes())
    content[content.index(b"explorax agent")] ^= 255
    path.write_bytes(bytes(content))


def write_objects(path):
    with open(path, "wb") as file:
        np.savez(file, schema=np.array([{"a": 1}], dtype=object))


REFUSED = {
    "missing": (lambda path: path.unlink(), "cannot be read: No such file"),
    "empty": (lambda path: path.write_bytes(b""), "is not a snapshot, or is damaged"),
    "text": (lambda path: path.write_text("hello"), "is not a snapshot, or is damaged"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps({"a": 1})), "is not a snapshot, or is damaged"),
    "objects": (
        write_objects,
        "is not a snapshot, or is damaged: schema.npy must hold numbers or bools, got dtype object",
    ),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-200]), "is not a snapshot, or is damaged"),
    "a bit flipped": (spoil_bits, "is not a snapshot, or is damaged"),
    "other file": (
        lambda path: rewritten(path, file="something else"),
        "is not a snapshot of an agent. Give a file that",
    ),
    "newer": (
        lambda path: rewritten(path, format=99, version="9.0"),
        "has format 99, written by explorax 9.0. .* reads formats up to",
    ),
    "settings": (
        lambda path: rewritten(path, settings={"ridg": 1.0}),
        "setting of glm_tsl must be one of .*, got 'ridg'",
    ),
    "policy": (
        lambda path: rewritten(path, policy="glm_tsk"),
        "policy must be one of .*, got 'glm_tsk'. Did you mean 'glm_tsl'",
    ),
    "other policy": (lambda path: rewritten(path, policy="lin_ts"), "holds a state of another kind: .* instead of"),
    "other dtype": (lambda path: rewritten(path, dtype="float32"), "table of arms must have shape .* dtype float32"),
    "no seed": (lambda path: rewritten(path, seed=None), "seed must be a whole number of at least .*, got None"),
    "no names": (lambda path: rewritten(path, attributes=7), "lacks something, or has it in another form"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused(case, tmp_path):
    change, words = REFUSED[case]
    path = tmp_path / "agent.npz"
    agent = fixed("glm_tsl")
    agent.save(path)
    change(path)
    with pytest.raises(errors.InvalidArgument, match=words):
        Agent.load(path)


def test_places_that_cannot_be_written(tmp_path):
    agent = fixed("uniform")
    for path in (tmp_path, tmp_path / "nowhere" / "agent.npz"):
        with pytest.raises(errors.InvalidArgument, match="must be a file in a folder that exists"):
            agent.save(path)


def test_a_failure_leaves_the_old_snapshot(tmp_path, monkeypatch):
    agent = fixed("glm_tsl")
    path = tmp_path / "agent.npz"
    agent.save(path)
    before = path.read_bytes()
    agent.choose()
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        agent.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["agent.npz"]


KILLED = """
import sys
import numpy as np
from explorax import Agent, make
agent = Agent(make("uniform"), arms=np.eye(200), draws=0)
print("ready", flush=True)
while True:
    agent.learn(agent.choose().id, 1.0)
    agent.save(sys.argv[1])
"""


def test_a_kill_in_the_middle_of_saving_leaves_a_snapshot(tmp_path):
    path = tmp_path / "agent.npz"
    child = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE)
    child.stdout.readline()
    seen, delays = [], np.random.default_rng(0).uniform(0, 0.02, 30)
    while not path.exists():
        time.sleep(0.01)
    for delay in delays:  # stopped at any moment, the file is whole
        time.sleep(delay)
        child.send_signal(signal.SIGSTOP)
        seen.append(Agent.load(path).decisions)
        child.send_signal(signal.SIGCONT)
    child.kill()
    child.wait()
    child.stdout.close()
    agent = Agent.load(path)
    assert agent.decisions >= seen[-1] > seen[0]
    agent.save(path)  # removes what the child may have left behind
    assert [each.name for each in tmp_path.iterdir()] == ["agent.npz"]


def test_nothing_is_pickled(tmp_path):
    agent, _ = lived("context")
    agent.save(tmp_path / "agent.npz")
    with np.load(io.BytesIO((tmp_path / "agent.npz").read_bytes()), allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
    assert explorax.Agent.load(tmp_path / "agent.npz").decisions == 12


# Snapshots that were edited


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
    "NaN in the state": (
        "fixed",
        {},
        {"state_0": with_first(np.nan)},
        "of the state must be finite, got NaN or infinity",
    ),
    "infinity in the state": (
        "fixed",
        {},
        {"state_0": with_first(np.inf)},
        "of the state must be finite, got NaN or infinity",
    ),
    "another dtype": (
        "fixed",
        {},
        {"state_0": np.float32},
        r"must have shape \(2, 2\) and dtype float64, got .*float32",
    ),
    "another shape": ("fixed", {}, {"state_0": lambda a: a[:1]}, r"of the state must have shape \(2, 2\)"),
    "no state_0": ("fixed", {}, {"state_0": None}, "of the state is missing: there is no array state_0"),
    "no ids": ("fixed", {}, {"pending_ids": None}, "ids of decisions that wait is missing"),
    "names twice": ("fixed", {"names": ["a", "a", "b", "c"]}, {}, "names of arms must differ, got 'a' twice"),
    "too many names": (
        "fixed",
        {"names": ["a", "b", "c", "d", "e"]},
        {},
        "names must fit the table of 4 arms, got 5 names",
    ),
    "too few names": ("fixed", {"names": ["a"]}, {}, "names must fit the table of 4 arms, got 1 names"),
    "no name": ("fixed", {"names": [None, "b", "c", "d"]}, {}, "Every arm on offer must have a name"),
    "explore_floor": ("fixed", {"explore_floor": 2}, {}, "explore_floor must be a number from 0"),
    "names are no list": ("fixed", {"names": 3}, {}, "lacks something, or has it in another form"),
    "rows below 0": ("fixed", {}, {"pending_rows": with_first(-1)}, "must be rows from 0 to 3, got"),
    "rows beyond the arms": ("fixed", {}, {"pending_rows": with_first(4)}, "must be rows from 0 to 3, got"),
    "an id twice": ("fixed", {}, {"pending_ids": lambda a: a * 0 + 4}, "A decision waits twice"),
    "an id never made": ("fixed", {}, {"pending_ids": with_first(77)}, "Decision 77 waits .* but was never made"),
    "features NaN": (
        "fixed",
        {},
        {"pending_features": with_first(np.nan)},
        "decisions that wait must be finite, got NaN",
    ),
    "fewer rows": ("fixed", {}, {"pending_rows": lambda a: a[:1]}, r"arms of decisions that wait must have shape \(2,"),
    "arms NaN": ("fixed", {}, {"arms": with_first(np.nan)}, "the table of arms must be finite, got NaN"),
    "on offer or not": ("fixed", {}, {"active": np.float64}, "the array of arms on offer must have .* dtype bool"),
    "decisions below 0": ("fixed", {"decisions": -1}, {}, "decisions must be a whole number of at least 0, got -1"),
    "decisions too few": ("fixed", {"decisions": 3}, {}, "spans of decisions must follow each other up to decision 3"),
    "dropped text": ("fixed", {"dropped": "x"}, {}, "dropped must be a whole number of at least .*, got 'x'"),
    "dropped too many": ("fixed", {"dropped": 7}, {}, "dropped must be at most 6, the number of decisions, got 7"),
    "unsure too large": ("fixed", {"unsure": 7}, {}, "unsure must be at most 6, the number of decisions, got 7"),
    "offset": ("fixed", {"offset": 0.5}, {}, "offset must be a whole number of at least .*, got 0.5"),
    "spans overlap": ("fixed", {"spans": [[0, 0, 6], [9, 3, 6]]}, {}, "spans of decisions must follow each other"),
    "spans too far": ("fixed", {"spans": [[2**53, 0, 6]]}, {}, "spans of decisions must follow each other"),
    "spans are no list": ("fixed", {"spans": [0]}, {}, "lacks something, or has it in another form"),
    "draws": ("fixed", {"draws": 2.5}, {}, "draws must be a whole number of at least .*, got 2.5"),
    "pending": ("fixed", {"max_pending": 0}, {}, "max_pending must be a whole number of at least 1, got 0"),
    "features": ("fixed", {"features": 3}, {}, r"table of arms must have shape \(None, 3\)"),
    "kind": ("fixed", {"kind": "changing"}, {}, "kind must fit the arms, .* got 'changing'"),
    "no such kind": ("fixed", {"kind": "some"}, {}, "kind of arms must be one of .*, got 'some'"),
    "no such dtype": ("fixed", {"dtype": "float16"}, {}, "dtype must be one of .*, got 'float16'"),
    "state": ("fixed", {"state": 5}, {}, "lacks something, or has it in another form"),
    "rows of changing arms": ("changing", {}, {"pending_rows": with_first(-1)}, "must be rows from 0"),
    "changing with names": ("changing", {"names": ["a"]}, {}, "kind must fit the arms, .* got 'changing'"),
    "no attributes": ("context", {"attributes": []}, {}, "attributes must fit the 2 names of arms, got 0 of them"),
    "a list of attributes": ("context", {"attributes": [[1], [2]]}, {}, "must be text, numbers, True or False"),
    "attributes missing": ("context", {"attributes": [{"price": None}, {"price": float("nan")}]}, {}, "must be text"),
    "encoder of others": ("context", {"features": 2}, {}, "features must be .*, as the encoder makes, got 2"),
    "bytes of the encoder": ("context", {}, {"encoder": with_first(0)}, "data must be a saved encoder, got"),
    "no such set": ("set", {"set": "cube"}, {}, "kind of arm set must be one of .*, got 'cube'"),
    "radius": ("set", {}, {"set_radius": with_first(-1.0)}, "radius must be a finite number above 0, got -1.0"),
}


@pytest.mark.parametrize("case", EDITS)
def test_what_contradicts_itself_is_refused(case, folder, tmp_path):
    kind, schema, arrays, words = EDITS[case]
    path = edited(folder / f"{kind}.npz", tmp_path / "agent.npz", schema, arrays)
    with pytest.raises(errors.InvalidSnapshot, match=f"agent.npz (cannot be used: )?.*{words}"):
        Agent.load(path)


def test_counts_below_0_are_refused(folder, tmp_path):
    described, _ = snapshot.flatten(Agent.load(folder / "windowed.npz").state)
    place = next(i for i, (name, *_) in enumerate(described) if name.endswith(".seen"))
    edited(folder / "windowed.npz", tmp_path / "agent.npz", {}, {f"state_{place}": with_first(-1)})
    with pytest.raises(
        errors.InvalidSnapshot, match="seen of the state must be at least 0, since it counts something, got -1"
    ):
        Agent.load(tmp_path / "agent.npz")


def test_a_state_that_is_not_finite_is_not_saved(folder, tmp_path):
    before = (folder / "fixed.npz").read_bytes()
    (tmp_path / "agent.npz").write_bytes(before)
    policy = make("lin_ts")
    broken = policy._replace(init=lambda *given: jax.tree.map(lambda leaf: leaf * np.nan, policy.init(*given)))
    agent = Agent(broken, arms=np.eye(2), draws=0)
    with pytest.raises(
        errors.NotFinite, match=r"of the state must be finite to be saved, got NaN or infinity. Load the last"
    ):
        agent.save(tmp_path / "agent.npz")
    assert (tmp_path / "agent.npz").read_bytes() == before


def test_states_are_taken_apart_and_put_together():
    state = {"a": jax.numpy.arange(3.0), "b": (jax.numpy.asarray(True), jax.numpy.zeros((2, 0), int))}
    described, arrays = snapshot.flatten(state)
    assert described == [["['a']", [3], "float64"], ["['b'][0]", [], "bool"], ["['b'][1]", [2, 0], "int64"]]
    like = jax.tree.map(jax.numpy.zeros_like, state)
    assert_same(snapshot.unflatten(like, described, arrays, "a file"), state)
    with pytest.raises(errors.InvalidSnapshot, match=r"a file holds a state of another kind: .* instead of"):
        snapshot.unflatten({"a": like["a"]}, described, arrays, "a file")
    with pytest.raises(errors.InvalidArgument, match="must hold numbers or bools to be saved, got dtype complex128"):
        snapshot.flatten({"a": jax.numpy.ones(2, complex)})
