"""A log as a bandit: what its rounds offer, what arms pay, and who can play it.

Statistical tests have fixed seeds; each one's false-alarm rate is at most FALSE_ALARM = 1e-6.
"""

import functools
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

import explorax
from explorax import environments
from explorax.arena import tournament
from explorax.environments import logged
from explorax.environments.logged import from_log
from explorax.errors import InvalidArgument, InvalidFeatures, UnknownName
from explorax.experiments.settings import from_settings
from explorax.log import reading
from explorax.log.data import LoggedData
from explorax.log.features import ContextFeatures, FixedFeatures, GivenFeatures, JoinedFeatures
from explorax.runner import local_processes
from tests.statistics import FALSE_ALARM

KEY = jax.random.key(3)
COUNT, ARMS, SIZE = 60, 4, 3
ROUNDS = 6000
TRUE = np.array([1.0, -1.0, 0.5])


@functools.cache
def log(kind="bernoulli", masked=False, seed=0):
    """A log of 60 rows of four arms with three features, all of which differ."""
    rng = np.random.default_rng(seed)
    tables, offered = rng.normal(size=(COUNT, ARMS, SIZE)), rng.random((COUNT, ARMS)) < 0.6
    arms = rng.integers(ARMS, size=COUNT)
    offered[np.arange(COUNT), arms] = True
    scores = tables[np.arange(COUNT), arms] @ TRUE
    rewards = rng.random(COUNT) < 1 / (1 + np.exp(-scores)) if kind == "bernoulli" else scores + rng.normal(size=COUNT)
    return LoggedData(
        arms=arms,
        rewards=rewards.astype(float),
        features=GivenFeatures(tables),
        names=range(ARMS),
        offered=offered if masked else None,
    )


@functools.partial(jax.jit, static_argnames="offer")
def offers(offer, instance, key):
    return jax.vmap(offer, (None, None, 0))(key, instance, jnp.arange(ROUNDS))


def rounds(environment, key=KEY):
    return jax.tree.map(np.asarray, offers(environment.offer, environment.draw(KEY), key))


def rows_of(arms, tables):
    """The row of the log that each round shows; its features tell, and must be exactly those."""
    matches = np.all(arms[:, None] == tables.astype(np.float32), axis=(2, 3))
    np.testing.assert_array_equal(matches.sum(axis=1), 1)
    return np.argmax(matches, axis=1)


def chosen(data):
    return data.features.chosen(np.arange(len(data)), data.arms)


# The model


def test_means_are_those_of_a_logistic_regression_with_that_ridge():
    data, ridge = log(), 0.7
    environment = from_log(data=data, ridge=ridge, intercept=False)
    assert (environment.name, environment.family, environment.n_features) == ("from_log", "bernoulli", SIZE)
    # statsmodels divides the likelihood, but not the penalty, by the number of rows; it stops when 1e-4 is reached.
    model = sm.GLM(data.rewards, chosen(data), family=sm.families.Binomial())
    theta = model.fit_regularized(alpha=ridge / COUNT, L1_wt=0.0, cnvrg_tol=1e-12, maxiter=1000).params
    instance = environment.draw(KEY)
    table = data.features.table(np.arange(COUNT))
    np.testing.assert_allclose(instance.scores, table @ theta, rtol=0, atol=1e-4)
    # And the derivative of the penalized likelihood vanishes, as exactly as float32 scores can tell.
    found = np.linalg.lstsq(table.reshape(-1, SIZE), np.asarray(instance.scores, float).ravel())[0]
    residual = data.rewards - 1 / (1 + np.exp(-chosen(data) @ found))
    np.testing.assert_allclose(chosen(data).T @ residual, ridge * found, rtol=0, atol=1e-5)
    offer = environment.offer(KEY, instance, 5)
    np.testing.assert_allclose(offer.means, 1 / (1 + np.exp(-np.asarray(offer.scores, float))), rtol=1e-5)


def test_rewards_of_other_numbers_are_gaussian_around_a_ridge_regression():
    data, ridge = log("gaussian"), 2.0
    environment, rows = from_log(data=data, ridge=ridge, intercept=False), chosen(data)
    assert environment.family == "gaussian"
    theta = np.linalg.solve(rows.T @ rows + ridge * np.eye(SIZE), rows.T @ data.rewards)
    offer = environment.offer(KEY, environment.draw(KEY), 2)
    np.testing.assert_allclose(environment.draw(KEY).scores, data.features.table(np.arange(COUNT)) @ theta, atol=1e-5)
    np.testing.assert_array_equal(offer.means, offer.scores)
    deviation = np.sqrt(np.mean((data.rewards - rows @ theta) ** 2))
    draws = jax.vmap(environment.reward, (0, None, None))(jax.random.split(KEY, ROUNDS), offer, 1)
    standard = (np.asarray(draws, float) - float(offer.means[1])) / deviation
    assert stats.kstest(standard, "norm").pvalue > FALSE_ALARM


def test_rewards_of_zero_and_one_are_drawn_with_the_mean():
    environment = from_log(data=log())
    offer = environment.offer(KEY, environment.draw(KEY), 2)
    draws = np.asarray(jax.vmap(environment.reward, (0, None, None))(jax.random.split(KEY, ROUNDS), offer, 3))
    assert set(draws) == {0.0, 1.0}
    assert stats.binomtest(int(draws.sum()), ROUNDS, float(offer.means[3])).pvalue > FALSE_ALARM


def test_the_model_sees_all_rows_whatever_is_drawn_from():
    whole, part = from_log(data=log()), from_log(data=log(), rows=7)
    places = [row * COUNT // 7 for row in range(7)]
    np.testing.assert_array_equal(part.draw(KEY).arms, whole.draw(KEY).arms[np.array(places)])
    np.testing.assert_allclose(part.draw(KEY).scores, whole.draw(KEY).scores[np.array(places)], rtol=1e-6)


# What is on offer


def test_rows_are_uniform_and_independent():
    shown = rounds(from_log(data=log(), intercept=False))
    drawn = rows_of(shown.arms, log().features.tables)
    assert stats.chisquare(np.bincount(drawn, minlength=COUNT)).pvalue > FALSE_ALARM / 2
    table = np.zeros((COUNT // 4, COUNT // 4))
    np.add.at(table, (drawn[:-1] // 4, drawn[1:] // 4), 1)
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM / 2


def test_one_key_serves_all_rounds_and_another_shows_other_rows():
    environment = from_log(data=log())
    first, again, other = (rounds(environment, key).scores for key in (KEY, KEY, jax.random.key(4)))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first[17], environment.offer(KEY, environment.draw(KEY), 17).scores, rtol=1e-6)
    same = int(np.sum(np.all(first == other, axis=1)))  # as often as independent rows
    assert stats.binomtest(same, ROUNDS, 1 / COUNT).pvalue > FALSE_ALARM


def test_arms_that_were_not_on_offer_are_not_shown():
    data = log(masked=True)
    arms, tables = (
        np.asarray(from_log(data=data, intercept=False).draw(KEY).arms),
        data.features.tables.astype(np.float32),
    )
    for row in range(COUNT):
        allowed = np.flatnonzero(data.offered[row])
        wanted = [tables[row, allowed[place % len(allowed)]] for place in range(ARMS)]
        np.testing.assert_array_equal(arms[row], wanted)
    with pytest.raises(AssertionError):  # and some rows do lack arms
        np.testing.assert_array_equal(arms, tables)


@pytest.mark.parametrize(
    ("features", "contexts", "size"),
    [
        (FixedFeatures(np.eye(3)[:, :2]), None, 2),
        (ContextFeatures([[1.0], [2.0]], np.eye(3)), None, 8),
        (JoinedFeatures([[1.0], [2.0]], np.eye(3), np.ones((2, 3))), None, 5),
        (None, None, 3),
        (None, np.array([[1.0, 0.0], [2.0, 1.0]]), 12),
    ],
)
def test_features_of_every_kind(features, contexts, size):
    data = LoggedData(np.array([0, 2]), np.array([1, 0]), features, ["a", "b", "c"], contexts=contexts)
    arms = logged.offered_arms(data, logged.described(data), np.arange(2))
    assert arms.shape == (2, 3, size)
    assert from_log(data=data, intercept=False).n_features == size
    if features is not None:
        np.testing.assert_array_equal(arms, features.table(np.arange(2)))
    elif contexts is None:
        np.testing.assert_array_equal(arms, np.broadcast_to(np.eye(3), (2, 3, 3)))
    else:
        np.testing.assert_array_equal(arms, ContextFeatures(contexts, np.eye(3)).table(np.arange(2)))


@pytest.mark.parametrize(
    ("features", "added"),
    [
        (FixedFeatures(np.eye(3)), False),  # ones add up to 1
        (FixedFeatures(np.eye(3)[:, :2]), True),
        (FixedFeatures([[2.0], [2.0], [2.0]]), False),
        (JoinedFeatures([[1.0], [2.0]], np.eye(3), np.ones((2, 3))), False),
        (GivenFeatures(np.arange(6.0).reshape(2, 3, 1)), True),
        (None, False),
    ],
)
def test_arms_get_a_constant_if_they_need_one(features, added):
    data = LoggedData(np.array([0, 2]), np.array([1, 0]), features, ["a", "b", "c"])
    plain, own, forced = (from_log(data=data, intercept=wish).n_features for wish in (False, None, True))
    assert (own, forced) == (plain + added, plain + 1)


def test_a_constant_is_the_last_feature_and_part_of_the_model():
    data, ridge = log("gaussian"), 0.5
    instance = from_log(data=data, ridge=ridge).draw(KEY)
    table = np.concatenate([data.features.tables, np.ones((COUNT, ARMS, 1))], axis=2)
    np.testing.assert_array_equal(instance.arms, table.astype(np.float32))
    rows = table[np.arange(COUNT), data.arms]
    theta = np.linalg.solve(rows.T @ rows + ridge * np.eye(SIZE + 1), rows.T @ data.rewards)
    np.testing.assert_allclose(instance.scores, table @ theta, atol=1e-5)


# Who plays


def test_policies_learn_it():
    data = LoggedData(  # 400 pulls of arms that pay 1 and 9 times in ten
        arms=np.arange(400) % 2,
        rewards=np.tile([1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1], 20).astype(float),
        features=None,
        names=["bad", "good"],
    )
    environment = from_log(data=data)
    mean = 1 / (1 + np.exp(-np.asarray(environment.draw(KEY).scores[0])))
    np.testing.assert_allclose(mean, [0.1, 0.9], atol=0.02)
    uniform = explorax.simulate(explorax.uniform(), environment, rounds=200, instances=4)
    greedy = explorax.simulate(explorax.greedy(memory="constant"), environment, rounds=200, instances=4)
    assert greedy.regret[:, -1].max() < uniform.regret[:, -1].min() / 2
    assert len(np.unique(uniform.regret[:, -1])) == 4  # instances have luck of their own


def test_a_policy_in_plain_python_plays_it():
    class First:
        def act(self, arms, t):
            return 0

        def update(self, arm, x, reward):
            assert reward in (0.0, 1.0)

    environment = from_log(data=log())
    records = explorax.simulate(lambda arms, rng: First(), environment, rounds=6, instances=2)
    with pytest.raises(InvalidArgument, match="poisson"):
        explorax.simulate(explorax.glm_tsl(family="poisson"), environment, rounds=6)
    assert records.regret.shape == (2, 6)


def test_the_log_of_an_agent_is_read_from_its_file_and_from_its_export(tmp_path):
    features = {"red": [1.0, 0.2], "blue": [0.3, 1.0], "green": [0.9, -0.4]}
    agent = explorax.Agent(explorax.uniform(), arms=features, log=tmp_path / "shop.db")
    decisions = agent.choose_many(40)
    for decision in decisions[:30]:  # of the others nobody knows the rewards
        agent.learn(decision.id, float(decision.arm == "red"))
    agent.close()
    explorax.export_log(tmp_path / "shop.db", tmp_path / "shop.parquet")
    own, export = (from_log(data=str(tmp_path / name), intercept=False) for name in ("shop.db", "shop.parquet"))
    np.testing.assert_allclose(own.draw(KEY).arms, np.broadcast_to(list(features.values()), (30, 3, 2)), rtol=1e-6)
    names = reading.read_log(tmp_path / "shop.parquet").names
    np.testing.assert_array_equal(export.draw(KEY).arms, np.broadcast_to(np.eye(3), (30, 3, 3)))
    assert names[int(np.argmax(export.offer(KEY, export.draw(KEY), 0).means))] == "red"


@pytest.mark.usefixtures("on_the_cpu")
def test_the_arena_plays_the_log_of_an_agent(tmp_path):
    agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]}, log=tmp_path / "shop.db")
    for decision in agent.choose_many(30):
        agent.learn(decision.id, float(decision.arm == "red"))
    agent.close()
    given = {"log": tmp_path / "shop.db", "problems": ["log"], "policy_names": ["uniform"], "rounds": 6}
    games = tournament.tournament(**given, tuning=1, instances=3)
    found = tournament.run(games, tmp_path / "arena", on=local_processes(1), stream=io.StringIO())
    (row,) = found.rows
    environment = from_log(data=tmp_path / "shop.db")
    records = explorax.simulate(explorax.uniform(), environment, rounds=6, instances=3, first=1)
    np.testing.assert_allclose(row.final, records.regret[:, -1], rtol=1e-5)
    assert "| Uniform |" in (tmp_path / "arena" / "standings.md").read_text()


@pytest.fixture
def path(monkeypatch, tmp_path):
    """A file that is read as a log."""
    file = tmp_path / "shop.parquet"
    file.write_bytes(b"a log")
    logs = {"shop.parquet": log(), "sales.parquet": log("gaussian")}
    (tmp_path / "sales.parquet").write_bytes(b"another log")
    monkeypatch.setattr(reading, "read_log", lambda path: logs[path.rsplit("/")[-1]])
    return file


def test_the_arena_plays_it_as_one_more_problem(path):
    games = tournament.tournament(log=path, policy_names=["uniform", "glm_tsl", "deep_fl", "glm_fpl"], rounds=9)
    assert [game.problem.name for game in games.rounds][-2:] == ["adult", "log"]
    last = games.rounds[-1]
    assert (last.problem.title, last.problem.family, last.problem.rounds) == ("shop.parquet", "bernoulli", 1000)
    assert [one.policy for one in last.playing] == ["uniform", "glm_tsl", "deep_fl", "glm_fpl"]
    assert last.playing[1].settings["memory"] == "constant"
    assert last.study.environment_arguments(last.study.panels[0]) == {"data": str(path)}
    alone = tournament.tournament(log=path, problems=["log"], policy_names=["uniform"])
    assert [game.problem.name for game in alone.rounds] == ["log"]


def test_rewards_decide_on_the_family_of_a_study(path):
    assert environments.family_of("from_log", {"data": str(path)}) == "bernoulli"
    other = str(path.with_name("sales.parquet"))
    assert environments.family_of("from_log", {"data": other}) == "gaussian"
    assert environments.arms_change("from_log", {"data": other})
    curves = [{"policy": "glm_tsl", "settings": {"memory": "constant"}}]
    settings = {"environment": "from_log", "rounds": 5, "curves": curves}
    panels = [{"label": name, "environment_settings": {"data": name}} for name in (str(path), other)]
    study = from_settings(settings | {"panels": panels[1:]})
    assert study.make(study.curves[0], study.panels[0]).families == ("gaussian",)
    with pytest.raises(InvalidArgument, match="panels must have rewards of one family, got bernoulli and gaussian"):
        from_settings(settings | {"panels": panels})


# What is refused


def test_bad_input_is_refused(tmp_path):
    empty = log().some(slice(0, 0))
    bad = LoggedData(np.array([0, 1]), np.array([1, 0]), GivenFeatures([[[1.0], [2.0]], [[3.0], [np.nan]]]), "ab")
    huge = LoggedData(np.array([0, 1]), np.array([1, 0]), FixedFeatures([[1e300], [1.0]]), "ab")
    for settings, error, words in (
        ({}, InvalidArgument, r"data must be a log, got None\. Give a LoggedData, or the path of a log\."),
        ({"data": [1]}, InvalidArgument, r"data must be a log, got \[1\]"),
        ({"data": empty}, InvalidArgument, "data must hold at least one decision, got an empty log"),
        ({"data": bad}, InvalidFeatures, "features of data must be finite in float32, got NaN or infinity in row 1"),
        ({"data": huge}, InvalidFeatures, "features of data must be finite in float32"),
        ({"data": log(), "ridge": 0}, InvalidArgument, "ridge must be a finite number above 0, got 0"),
        ({"data": log(), "intercept": 1}, InvalidArgument, "intercept must be True, False or None, got 1"),
        ({"data": log(), "rows": 61}, InvalidArgument, "rows must be a whole number from 1 to 60, got 61"),
        ({"data": log(), "rows": 0}, InvalidArgument, "rows must be a whole number of at least 1, got 0"),
    ):
        with pytest.raises(error, match=words):
            from_log(**settings)
    with pytest.raises(UnknownName, match="setting of from_log must be one of data, intercept, ridge, rows"):
        environments.make("from_log", log=log())


def test_a_log_that_is_too_large_is_refused_with_the_rows_that_fit(monkeypatch):
    monkeypatch.setattr(logged, "MOST_NUMBERS", 50 * ARMS * SIZE)
    with pytest.raises(
        InvalidArgument, match=r"rows must be at most 50, because each has 4 arms .* got 60\. Give rows"
    ):
        from_log(data=log())
    assert from_log(data=log(), rows=50, intercept=False).draw(KEY).arms.shape == (50, ARMS, SIZE)


def test_a_problem_without_its_log_is_refused(path):
    for given, words in (
        ({"problems": ["log"]}, r"log must be the path of a log to play the problem 'log', got None\. Name it with"),
        ({"problems": ["digits"], "log": path}, "log must be left out unless the problem 'log' is played, got '/"),
        ({"log": path.parent / "none.db"}, r"log must be the path of a log, got .*none\.db"),
        ({"log": 3}, r"log must be the path of a log, got 3\."),
    ):
        with pytest.raises(InvalidArgument, match=words):
            tournament.tournament(policy_names=["uniform"], **given)
