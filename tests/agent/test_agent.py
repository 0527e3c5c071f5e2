"""An agent decides as `simulate` does, learns what a fold of `update` learns, and keeps its arms apart."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import explorax
from explorax import Agent, Encoder, environments, make
from explorax.glm.history import Grouped
from explorax.simulation import ARMS, DRAW, FNV_OFFSET, FNV_PRIME, REWARD, instance_keys
from tests.helpers import assert_same

FEATURES, COUNT = 3, 6
MATRIX = np.random.default_rng(0).uniform(-1, 1, (COUNT, FEATURES))
NAMED = {f"arm {i}": row for i, row in enumerate(MATRIX)}
THETA = np.array([1.0, -0.5, 0.8])


def reward_of(decision, seed=0):
    rng = np.random.default_rng([seed, decision.id])
    return float(rng.random() < 1 / (1 + np.exp(-decision.features @ THETA)))


def played(agent, rounds):
    decisions = []
    for _ in range(rounds):
        decisions.append(agent.choose())
        agent.learn(decisions[-1].id, reward_of(decisions[-1]))
    return decisions


@pytest.mark.parametrize(
    ("name", "settings", "change"),
    [
        ("glm_tsl", {}, False),
        ("glm_tsl", {"capacity": 120}, True),
        ("glm_fpl", {"memory": "refitted", "capacity": 120}, True),
        ("lin_ts", {}, False),
        ("epsilon_greedy", {"memory": "constant"}, True),
    ],
)
def test_an_agent_is_simulate_with_one_instance(name, settings, change, turns):
    rounds, seed = 120, 5
    turns(rounds // 2)  # half of the decisions on fixed arms are made ahead
    policy = make(name, **settings)
    arms = {"arms_change": True, "n_arms": COUNT} if change else {"fixed_arms": MATRIX}
    environment = environments.logistic(theta=THETA, **arms)
    records = explorax.simulate(policy, environment, rounds=rounds, instances=1, seed=seed)

    keys = {use: instance_keys(seed, range(1), use)[0] for use in (DRAW, ARMS, REWARD)}
    world = environment.draw(keys[DRAW], 0)
    agent = Agent(policy, seed=seed, draws=0, **({"n_features": FEATURES} if change else {"arms": MATRIX}))
    offer_of, reward_of_arm = jax.jit(environment.offer), jax.jit(environment.reward)
    digest, total = FNV_OFFSET, 0.0
    for t in range(rounds):
        offer = offer_of(keys[ARMS], world, t)
        decision = agent.choose(np.asarray(offer.arms) if change else None)
        reward = float(reward_of_arm(jax.random.fold_in(keys[REWARD], t), offer, decision.row))
        agent.learn(decision.id, reward)
        digest, total = (digest ^ decision.row) * FNV_PRIME % 2**32, total + reward
    assert (digest, total) == (int(records.digest[0]), records.reward[0, -1])


@pytest.mark.parametrize("memory", ["exact", "constant"])
def test_the_live_state_is_a_replay_of_the_log(memory):
    policy = make("glm_tsl", memory=memory)
    agent = Agent(policy, arms=NAMED, draws=0)
    log, waiting = [], []
    rng = np.random.default_rng(1)
    for _ in range(40):
        waiting.append(agent.choose())
        while waiting and rng.random() < 0.5:
            decision = waiting.pop(rng.integers(len(waiting)))
            agent.learn(decision.id, reward_of(decision))
            log.append((decision.row, decision.features, reward_of(decision)))
    state = policy.init(jnp.asarray(MATRIX))
    for row, features, reward in log:
        state = policy.update(state, row, features, reward)
    # The same operations; programs compiled apart may differ in the last bits.
    assert_same(agent.state, state, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["glm_tsl", "lin_ts"])
def test_the_order_of_late_rewards_does_not_matter_to_exact_memories(name):
    agents = [Agent(make(name, tolerance=1e-9) if name == "glm_tsl" else make(name), arms=MATRIX) for _ in range(2)]
    orders = np.arange(30), np.random.default_rng(2).permutation(30)
    for agent, order in zip(agents, orders, strict=True):
        decisions = agent.choose_many(30)
        for i in order:
            agent.learn(decisions[i].id, reward_of(decisions[i]))
    first, second = agents
    if name == "glm_tsl":
        np.testing.assert_allclose(first.state.theta_hat, second.state.theta_hat, atol=1e-8)
        np.testing.assert_array_equal(first.state.memory.past.counts, second.state.memory.past.counts)
    else:
        assert_same(first.state, second.state, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("sizes", [(1,), (16, 3), (37,)])
def test_a_batch_of_rewards_is_one_after_the_other(sizes):
    one_by_one, in_batches = (Agent(make("glm_tsl"), arms=NAMED, draws=0) for _ in range(2))
    for size in sizes:
        decisions, same = one_by_one.choose_many(size), in_batches.choose_many(size)
        rewards = [reward_of(decision) for decision in decisions]
        for decision, reward in zip(decisions, rewards, strict=True):
            one_by_one.learn(decision.id, reward)
        in_batches.learn(list(same.ids), rewards)
    np.testing.assert_allclose(in_batches.state.theta_hat, one_by_one.state.theta_hat, rtol=1e-9)
    assert_same(in_batches.state.memory.past, one_by_one.state.memory.past)
    assert in_batches.pending == one_by_one.pending == []


def unstated(decision):
    """All of a decision but its propensity, for which a batch has more draws."""
    return [value for name, value in decision._asdict().items() if "propensit" not in name]


def test_many_decisions_are_the_same_as_one_by_one():
    tables = [np.random.default_rng(i).uniform(-1, 1, (4 + i % 3, FEATURES)) for i in range(11)]
    for settings, given in (({"arms": NAMED}, None), ({"n_features": FEATURES}, tables)):
        several, single = (Agent(make("glm_fpl", memory="constant"), **settings) for _ in range(2))
        for agent in (several, single):
            start = agent.choose_many(5 if given is None else given[:5])
            agent.learn(list(start.ids), [0, 1, 1, 0, 1])
        together = several.choose_many(11 if given is None else given)
        apart = [single.choose() if given is None else single.choose(table) for table in given or range(11)]
        assert len(together) == 11
        for one, other in zip(together, apart, strict=True):
            assert all(map(np.array_equal, unstated(one), unstated(other)))
        assert several.pending == single.pending
        assert together[2:4] == [together[2], together[3]]


def test_arms_are_added_retired_and_returned():
    agent = Agent(make("glm_tsl"), arms=NAMED)
    played(agent, 25)
    known = agent.state.theta_hat
    agent.add_arm("new", [0.9, -0.9, 0.9])
    assert list(agent.arms) == [*NAMED, "new"]
    np.testing.assert_array_equal(agent.state.theta_hat, known)
    agent.retire_arm("arm 2")
    late = agent.choose(among=["arm 0"])
    agent.retire_arm("arm 0")
    assert agent.arms["arm 0"] is False
    offered = {name for name, on in agent.arms.items() if on}
    assert set(agent.choose_many(200).arms) <= offered
    assert set(agent.propensities().arms) == offered
    agent.learn(late.id, 1.0)  # of an arm that is retired by now
    agent.restore_arm("arm 0")
    assert {agent.choose(among=["arm 0", "new"]).arm for _ in range(30)} <= {"arm 0", "new"}
    assert agent.choose(among=["new"]).arm == "new"


def test_an_arm_gets_other_features(tmp_path):
    """Rewards stay with the features that they were for: the estimate is a fit to both."""
    policy = make("glm_tsl", warmup="none", tolerance=1e-9)
    agent = Agent(policy, arms=dict(zip("abc", MATRIX[:3], strict=True)), draws=0)
    before, late = agent.choose(among=["b"]), agent.choose(among=["b"])
    agent.learn(before.id, 1.0)
    agent.update_arm("b", MATRIX[3])
    after = agent.choose(among=["b"])
    np.testing.assert_array_equal(after.features, MATRIX[3])
    agent.learn([late.id, after.id], [1.0, 0.0])
    assert agent.arms == {"a": True, "b": True, "c": True}
    assert {agent.choose().arm for _ in range(20)} <= set("abc")
    rewarded = Grouped(jnp.asarray(MATRIX[[1, 3]]), jnp.asarray([2.0, 1.0]), jnp.asarray([2.0, 0.0]))
    np.testing.assert_allclose(agent.state.theta_hat, explorax.fit("bernoulli", rewarded).theta, atol=1e-8)

    agent.retire_arm("c")
    agent.update_arm("c", MATRIX[4])
    assert agent.arms == {"a": True, "b": True, "c": False}
    agent.add_arm("c", MATRIX[5])  # which was retired, with other features
    np.testing.assert_array_equal(agent.choose(among=["c"]).features, MATRIX[5])
    agent.retire_arm("a")
    agent.retire_arm("c")
    agent.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz")
    assert loaded.arms == agent.arms == {"a": False, "b": True, "c": False}
    np.testing.assert_array_equal(loaded.choose().features, MATRIX[3])


def test_an_arm_in_a_context_gets_other_attributes():
    sample = [{"user": user, "age": age} for user in "xy" for age in (0.0, 1.0, 5.0)]
    encoder = Encoder.fit(sample, scale=False)
    agent = Agent(make("lin_ts"), arms={"old": {"age": 5.0}, "new": {"age": 0.0}}, encoder=encoder, draws=0)
    context = pd.DataFrame(sample).drop(columns="age").iloc[0]  # a row of a table
    age = encoder.names.index("age")
    assert agent.choose(context, among=["new"]).features[age] == 0.0
    agent.update_arm("new", pd.Series({"age": 1.0}))
    assert agent.choose({"user": "x"}, among=["new"]).features[age] == 1.0
    agent.retire_arm("old")
    agent.add_arm("old", {"age": 6})
    found = agent.choose_many([context, {"user": "y"}, context], among=[["old"], ["new", "old"], ["new"]])
    assert (found.arms[0], found.arms[2]) == ("old", "new")
    assert found.features[[0, 2], age].tolist() == [6.0, 1.0]


def test_each_decision_may_be_among_other_arms():
    lists = [["arm 0"], ["arm 1", "arm 4"], ["arm 5"], list(NAMED), ("arm 2",)] * 2
    together, single = (Agent(make("lin_ts"), arms=NAMED, draws=3) for _ in range(2))
    many = together.choose_many(10, among=lists)
    assert list(many) == [single.choose(among=each) for each in lists]
    assert all(arm in each for arm, each in zip(many.arms, lists, strict=True))
    assert set(together.choose_many(20, among=(name for name in ("arm 0", "arm 1"))).arms) == {"arm 0", "arm 1"}


def test_an_agent_says_what_it_is():
    agent = Agent(make("lin_ts"), arms=NAMED, draws=0, seed=3)
    agent.retire_arm("arm 1")
    agent.choose()
    words = (
        "<Agent: lin_ts, fixed arms with 3 features, 5 of 6 arms on offer, seed 3, 1 decisions, 1 pending, 0 dropped>"
    )
    assert repr(agent) == words
    assert repr(Agent(make("uniform"), n_features=2)).startswith(
        "<Agent: uniform, changing arms with 2 features, seed 0"
    )


def test_collinear_features_work_with_all_defaults():
    """A constant and a full one-hot: the arms are explored in the dimensions that they span, also by `simulate`."""
    table = pd.DataFrame({"color": ["red", "blue", "green", "red"], "size": [1.0, 2.0, 3.0, 4.0]}, index=list("abcd"))
    encoder = Encoder.fit(table)
    agent = Agent(make("glm_tsl"), arms=table, encoder=encoder, draws=0)
    rank = np.linalg.matrix_rank(encoder.transform(table))
    assert rank == 4 < encoder.n_features
    decisions = agent.choose_many(rank + 1)
    assert decisions.forced.tolist() == [True] * rank + [False]
    assert np.linalg.matrix_rank(decisions.features[:rank]) == rank
    environment = environments.logistic(theta=np.zeros(encoder.n_features), fixed_arms=encoder.transform(table))
    assert (explorax.simulate(make("glm_tsl"), environment, rounds=8, instances=1).regret == 0).all()


def test_a_state_with_arms_added_is_that_of_all_arms_from_the_start():
    """In any order of adding and learning: the estimate, and what the policies draw from."""
    for name in ("glm_tsl", "ucb_glm"):
        policy = make(name, warmup="none", tolerance=1e-9)
        grown, complete = Agent(policy, arms=MATRIX[:2], draws=0), Agent(policy, arms=MATRIX, draws=0)
        for i in range(2, COUNT):
            grown.add_arm(i, MATRIX[i])
            for agent in (grown, complete):
                decision = agent.choose(among=[i])
                agent.learn(decision.id, reward_of(decision))
        assert len(grown.state.memory.past.counts) > COUNT  # room for more
        np.testing.assert_allclose(grown.state.theta_hat, complete.state.theta_hat, atol=1e-8)
        np.testing.assert_array_equal(grown.state.memory.past.sums[:COUNT], complete.state.memory.past.sums)
        if name == "ucb_glm":
            norms = [jnp.sum(agent.state.memory.whitened[:, :COUNT] ** 2, axis=0) for agent in (grown, complete)]
            np.testing.assert_allclose(*norms, rtol=1e-6)
        picks = [[agent.choose().arm for _ in range(3)] for agent in (grown, complete)]
        assert picks[0] == picks[1]


def test_tables_of_any_kind_give_the_same_decisions():
    sample = [{"size": float(i), "color": "red" if i % 2 else "blue"} for i in range(6)]
    encoder = Encoder.fit(sample)
    rows = encoder.transform(sample)
    kinds = {
        "array": (rows, None),
        "names": (dict(enumerate(rows)), None),
        "dicts": (sample, encoder),
        "named dicts": (dict(enumerate(sample)), encoder),
        "pandas": (pd.DataFrame(sample), encoder),
        "polars": (pl.DataFrame(sample), encoder),
    }
    chosen = []
    for table, its_encoder in kinds.values():
        agent = Agent(make("lin_ts"), n_features=None if its_encoder else rows.shape[1], encoder=its_encoder, draws=0)
        decisions = [agent.choose(table) for _ in range(5)]
        chosen.append([(decision.arm, *decision.features) for decision in decisions])
    assert all(each == chosen[0] for each in chosen)
    indexed = pd.DataFrame(rows, index=list("abcdef"))
    assert Agent(make("lin_ts"), n_features=rows.shape[1], draws=0).choose(indexed).arm in list("abcdef")


def test_arms_in_a_context():
    """Joint one-hot features: the agent learns that each user likes another article."""
    users, articles = ("ann", "bob"), {name: {"article": name} for name in ("chess", "tennis")}
    sample = [{"user": user, **attributes} for user in users for attributes in articles.values()]
    encoder = Encoder.fit(sample, interactions=[("user", "article")])
    agent = Agent(make("glm_tsl", memory="constant", warmup="none"), arms=articles, encoder=encoder, draws=20)
    likes = {"ann": "chess", "bob": "tennis"}
    rng = np.random.default_rng(3)
    for _ in range(150):
        user = users[rng.integers(2)]
        decision = agent.choose({"user": user})
        agent.learn(decision.id, float(decision.arm == likes[user]))
    for user in users:
        chances = agent.propensities({"user": user})
        assert chances.probabilities[chances.arms.index(likes[user])] > 0.8
    many = agent.choose_many([{"user": "ann"}, {"user": "bob"}] * 20)
    assert np.mean([arm == likes[user] for arm, user in zip(many.arms, users * 20, strict=True)]) > 0.8
    agent.add_arm("golf", {"article": "golf"})  # unknown to the encoder: what is known comes from the user alone
    agent.retire_arm("chess")
    assert set(agent.choose_many(pd.DataFrame({"user": ["ann"] * 20})).arms) <= {"tennis", "golf"}


def test_arrays_that_were_given_may_change():
    fixed, changing = MATRIX.copy(), MATRIX.copy()
    agents = (
        Agent(make("glm_tsl"), arms=fixed, draws=0),
        Agent(make("glm_tsl", memory="constant"), n_features=3, draws=0),
    )
    decisions = agents[0].choose(), agents[1].choose(changing)
    kept = [decision.features.copy() for decision in decisions]
    fixed[:], changing[:] = np.nan, np.nan
    for agent, decision, features in zip(agents, decisions, kept, strict=True):
        np.testing.assert_array_equal(decision.features, features)
        agent.learn(decision.id, 1.0)
        assert np.isfinite(agent.state.theta_hat).all()
    assert np.isfinite(agents[0].choose().features).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_the_agents_own(dtype):
    agent = Agent(make("glm_tsl"), arms=NAMED, dtype=dtype)
    with jax.enable_x64(dtype == "float32"):  # JAX's default is another one
        played(agent, 4)
    assert agent.state.theta_hat.dtype == dtype
    assert agent.choose().features.dtype == dtype


def test_the_oldest_pending_decisions_are_dropped():
    agent = Agent(make("uniform"), n_features=FEATURES, max_pending=10)
    ids = list(agent.choose_many([MATRIX] * 25).ids)
    assert agent.pending == ids[-10:]
    with pytest.raises(explorax.errors.UnknownDecision, match="among the 15 oldest that were dropped"):
        agent.learn(3, 1.0)
    agent.learn(ids[-10:], np.ones(10))
    assert agent.pending == []


def test_many_choosers_and_a_learner():
    policy = make("glm_tsl", warmup="none")
    agent = Agent(policy, arms=NAMED, draws=10)
    agent.learn(agent.choose().id, 1.0)
    decisions, learned, lock = [], [], threading.Lock()

    def chooser():
        for i in range(40):
            made = list(agent.choose_many(3)) if i % 4 == 0 else [agent.choose()]
            with lock:
                decisions.extend(made)

    def learner():
        while len(learned) < 200:
            with lock:
                ready = decisions[len(learned) : len(learned) + 7]
            if ready:
                agent.learn([d.id for d in ready], [reward_of(d) for d in ready])
                learned.extend(ready)

    threads = [threading.Thread(target=chooser) for _ in range(4)] + [threading.Thread(target=learner)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(d.id for d in decisions) == list(range(1, 4 * 60 + 1))
    assert agent.decisions == 241
    assert set(agent.pending) == set(range(1, 241)) - {d.id for d in learned}
    counts = np.bincount([d.row for d in learned], minlength=COUNT)
    np.testing.assert_array_equal(np.asarray(agent.state.memory.past.counts).sum(), counts.sum() + 1)


@pytest.mark.parametrize("kind", ["ball", "box", "polytope"])
def test_infinite_sets(kind):
    """The points chosen approach the best one, and are those of θ̃."""
    corner = np.ones(FEATURES)
    arms = {
        "ball": explorax.arm_sets.ball(np.zeros(FEATURES), 1.0),
        "box": explorax.arm_sets.box(-corner, corner),
        "polytope": explorax.arm_sets.polytope(np.vstack([np.eye(FEATURES), -np.eye(FEATURES)]), np.ones(2 * FEATURES)),
    }[kind]
    agent = Agent(make("glm_tsl", memory="constant"), arms=arms, draws=20)
    decisions = played(agent, 150)
    assert all(arms.contains(d.arm) for d in decisions)
    assert [d.forced for d in decisions[:4]] == [True, True, True, False]
    best = arms.maximize(THETA[None])[0] @ THETA
    lost = [best - d.features @ THETA for d in decisions]
    assert np.mean(lost[-50:]) < 0.25 * np.mean(lost[:30])
    if kind == "ball":
        assert decisions[-1].propensity is decisions[-1].propensity_stderr is None
    else:
        assert all(0 < d.propensity <= 1 for d in decisions)
        assert all(set(np.abs(d.arm)) == {1.0} for d in decisions if not d.forced)
