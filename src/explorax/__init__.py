"""explorax: exploration in generalized linear bandits.

policy = explorax.make("glm_tsl")          # or "glm_fpl", "ucb_glm", …: see explorax.policies()
state = policy.init(arms)
action = policy.act(key, state, arms, t)
state = policy.update(state, action.arm, arms[action.arm], reward)

records = explorax.simulate(policy, explorax.environments.logistic(features=5), rounds=1000)

agent = explorax.Agent(policy, arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
decision = agent.choose()
agent.learn(decision.id, reward)
"""

from explorax import datasets, environments, errors, networks, theory
from explorax.agent import Agent, Decision, Encoder, sets
from explorax.glm import families
from explorax.glm.fit import Fit, fit
from explorax.policies.base import Action, Policy
from explorax.record import Records
from explorax.registry import make, policies
from explorax.simulate import simulate

__version__ = "0.1.0"

__all__ = [
    "Action",
    "Agent",
    "Decision",
    "Encoder",
    "Fit",
    "Policy",
    "Records",
    "datasets",
    "environments",
    "errors",
    "families",
    "fit",
    "make",
    "networks",
    "policies",
    "sets",
    "simulate",
    "theory",
]
