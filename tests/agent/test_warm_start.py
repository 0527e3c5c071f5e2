"""What an agent knows before its first decision: a prior, and rewards that have weights."""

import numpy as np
import pytest

import explorax
from explorax import Agent, LoggedData, Prior, errors
from explorax.log.features import FixedFeatures, GivenFeatures

RNG = np.random.default_rng(1)
ARMS = {name: RNG.normal(size=3) for name in "abcd"}
MATRIX = np.stack(list(ARMS.values()))
MEAN = np.array([0.3, -0.7, 1.1])
ROOT = RNG.normal(size=(3, 3))
PRECISION = ROOT @ ROOT.T + 2.0 * np.eye(3)
PRIOR = Prior(MEAN, PRECISION)
PULLED = np.array([0, 0, 1, 2, 3, 1])
REWARDS = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
LOG = LoggedData(PULLED, REWARDS, FixedFeatures(MATRIX), list("abcd"))
GIVEN = LoggedData(PULLED, REWARDS, GivenFeatures(np.broadcast_to(MATRIX, (6, 4, 3))), list("abcd"))


@pytest.mark.parametrize("name", ["glm_tsl", "glm_fpl", "glm_ucb", "lin_ts", "lin_ucb", "pg_ts"])
@pytest.mark.parametrize("made", [{"arms": ARMS}, {"n_features": 3}])
def test_an_agent_begins_with_the_estimate_of_its_prior(name, made):
    agent = Agent(explorax.make(name), draws=0, prior=PRIOR, **made)
    np.testing.assert_allclose(agent.state.theta_hat, MEAN, atol=1e-9)
    decision = agent.choose(None if "arms" in made else ARMS)
    assert decision.converged
    agent.learn(decision.id, 1.0)
    assert agent.arms == (dict.fromkeys(ARMS, True) if "arms" in made else {})


def test_a_linear_agent_has_the_gaussian_posterior():
    agent = Agent(explorax.lin_ts(), arms=ARMS, prior=PRIOR)
    agent.learn_from(LOG)
    x = MATRIX[PULLED]
    precision = PRECISION + x.T @ x
    np.testing.assert_allclose(
        agent.state.theta_hat, np.linalg.solve(precision, PRECISION @ MEAN + x.T @ REWARDS), rtol=1e-9
    )
    inverse = np.asarray(agent.state.regression.inverse)
    np.testing.assert_allclose(inverse.T @ inverse, np.linalg.inv(precision), rtol=1e-8, atol=1e-12)


def test_arms_may_come_and_go_after_a_prior(tmp_path):
    agent = Agent(explorax.glm_tsl(warmup="none"), arms=ARMS, prior=PRIOR, log=tmp_path / "log.db")
    agent.retire_arm("b")
    agent.add_arm("e", [1.0, 2.0, 3.0])
    assert {agent.choose().arm for _ in range(20)} <= set("acde")
    agent.save(tmp_path / "agent.npz")
    agent.close()
    for again in (Agent.load(tmp_path / "agent.npz", same_ids=True), Agent.recover(tmp_path / "log.db")):
        np.testing.assert_array_equal(again.state.theta_hat, agent.state.theta_hat)
        assert again.choose().id == 20
        again.close()


@pytest.mark.parametrize("name", ["glm_tsl", "lin_ts"])
@pytest.mark.parametrize("log", [LOG, GIVEN])
def test_weights_of_one_are_no_weights_and_whole_ones_are_repetitions(name, log):
    made = {"arms": ARMS} if log is LOG else {"n_features": 3}

    def after(weights, log=log):
        agent = Agent(explorax.make(name), draws=0, **made)
        agent.learn_from(log, weights)
        return np.asarray(agent.state.theta_hat)

    np.testing.assert_allclose(after(np.ones(6)), after(None), atol=1e-6)
    twice = np.repeat(np.arange(6), [1, 2, 3, 1, 1, 2])
    np.testing.assert_allclose(after([1, 2, 3, 1, 1, 2]), after(None, log.some(twice)), atol=1e-6)


def test_a_weighted_warm_start_is_on_record(tmp_path):
    agent = Agent(explorax.glm_tsl(), arms=ARMS, log=tmp_path / "log.db")
    agent.learn_from(LOG, [0.5, 2.0, 1.0, 1.0, 0.1, 3.0])
    agent.learn_from(LOG)
    agent.close()
    again = Agent.recover(tmp_path / "log.db")
    np.testing.assert_array_equal(again.state.memory.past.counts, agent.state.memory.past.counts)
    np.testing.assert_array_equal(again.state.theta_hat, agent.state.theta_hat)
    again.close()


@pytest.mark.parametrize(
    ("weights", "error", "words"),
    [
        ([1.0] * 5, errors.InvalidShape, r"weights must have shape \(6,\), .* got \(5,\)"),
        (
            [1, 1, 1, 1, 1, 0],
            errors.InvalidArgument,
            "weights must be finite numbers above 0, got 0.0. Leave such rows",
        ),
        ([1, 1, np.nan, 1, 1, 1], errors.InvalidArgument, "weights must be finite numbers above 0, got nan"),
    ],
)
def test_weights_that_cannot_be_used(weights, error, words):
    agent = Agent(explorax.glm_tsl(), arms=ARMS)
    before = np.asarray(agent.state.memory.past.counts)
    with pytest.raises(error, match=words):
        agent.learn_from(LOG, weights)
    np.testing.assert_array_equal(agent.state.memory.past.counts, before)


@pytest.mark.parametrize(
    ("policy", "prior", "words"),
    [
        (explorax.uniform(), PRIOR, "prior must be None for a policy that takes none"),
        (explorax.glm_tsl(), Prior(MEAN[:2], np.eye(2)), "prior must be a Prior with a mean of 3 numbers"),
        (explorax.glm_tsl(), (MEAN, PRECISION), "prior must be a Prior with a mean"),
        (explorax.glm_tsl(ridge=9.0), Prior(MEAN, np.eye(3)), "precision must be larger than the ridge 9"),
    ],
)
def test_priors_that_cannot_be_used(policy, prior, words):
    with pytest.raises(errors.InvalidArgument, match=words):
        Agent(policy, arms=ARMS, prior=prior)


def test_a_policy_that_takes_no_weights_says_so():
    agent = Agent(explorax.ecolog_ts(), n_features=3)
    with pytest.raises(
        errors.InvalidArgument, match="weights must be None for a policy that learns rewards one by one"
    ):
        agent.learn_from(GIVEN, np.ones(6))


def test_a_covariance_is_the_inverse_of_a_precision():
    found = Prior.from_covariance(MEAN, np.linalg.inv(PRECISION))
    np.testing.assert_allclose(found.precision, PRECISION)
    with pytest.raises(errors.InvalidArgument, match="covariance must be a matrix that has an inverse"):
        Prior.from_covariance(MEAN, np.zeros((3, 3)))
