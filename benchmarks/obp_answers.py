"""Questions that the Open Bandit Pipeline answers, in its own environment (`obp_environment.py`).

    python obp_answers.py QUESTION SETTINGS GIVEN.npz FOUND.npz

SETTINGS are JSON.  The questions are the functions of `QUESTIONS`, from arrays to arrays.
"""

import json
import sys
from typing import Any

import numpy as np
from obp_without_torch import BernoulliTS, estimators, ope
from sklearn.linear_model import LogisticRegression

Given = dict[str, Any]
Answers = dict[str, Any]


def bts(given: Given, campaign: str, n_sim: int, seed: int) -> Answers:
    """The chance of each item in each of three places, for Bernoulli TS as the shop started it: `chances` (K, 3)."""
    count = {"all": 80, "men": 34, "women": 46}[campaign]
    policy = BernoulliTS(n_actions=count, len_list=3, is_zozotown_prior=True, campaign=campaign, random_state=seed)
    return {"chances": policy.compute_batch_action_dist(n_rounds=1, n_sim=n_sim)[0]}


def values(given: Given, tau: float, lambda_: float) -> Answers:
    """All estimates, with a reward model that is given: the arguments of obp's estimators, by their names there."""
    return {name: one.estimate_policy_value(**given) for name, one in estimators(tau, lambda_).items()}


def fitted(given: Given, tau: float, lambda_: float, seed: int, samples: int) -> Answers:
    """The same with obp's own cross-fitted logistic regression, and bootstrap intervals: (value, low, high) of each."""
    context, items = given["context"], given["action_context"]
    given = {name: array for name, array in given.items() if name not in ("context", "action_context")}
    model = ope.RegressionModel(
        n_actions=len(items),
        len_list=given["action_dist"].shape[2],
        base_model=LogisticRegression(C=1.0, max_iter=1000),
        action_context=items,
    )
    given["estimated_rewards_by_reg_model"] = model.fit_predict(
        context=context,
        action=given["action"],
        reward=given["reward"],
        pscore=given["pscore"],
        position=given["position"],
        action_dist=given["action_dist"],
        n_folds=3,
        random_state=seed,
    )
    found = {}
    for name, one in estimators(tau, lambda_).items():
        between = one.estimate_interval(**given, n_bootstrap_samples=samples, random_state=seed)
        low, high = (value for bound, value in between.items() if "CI" in bound)
        found[name] = np.array([one.estimate_policy_value(**given), low, high])
    return found


QUESTIONS = {one.__name__: one for one in (bts, values, fitted)}

if __name__ == "__main__":
    question, settings, source, target = sys.argv[1:]
    with np.load(source) as arrays:
        given = dict(arrays)
    np.savez(target, **QUESTIONS[question](given, **json.loads(settings)))
