"""explorax: an `Agent`, given a matrix of arms that it has not seen before in every decision, or with fixed arms.

    glm_tsl, glm_fpl      randomized exploration in a GLM of the rewards' own family, with a memory of constant size
    lin_ts, lin_ucb       linear models, as the other libraries have them
    glm_tsl propensity    glm_tsl with the probability of every decision estimated by 100 draws

No rounds of exploration are forced (`warmup="none"`), as the other libraries force none: the prior carries the first
decisions.  XLA runs small programs in the calling thread if told so before JAX starts
(`explorax.devices.decide_inline`).
"""

from functools import cache
from typing import Any

from common import Adapter, Floats, Rewards, Task, blocks, serve

from explorax import Agent, devices, list_policies, make
from explorax.policies.base import Policy

FAMILIES = {"logistic": "bernoulli", "linear": "gaussian"}
PLAYERS = ("glm_tsl", "glm_fpl", "lin_ts", "lin_ucb", "glm_tsl propensity")


@cache  # what is compiled for a policy serves all its agents
def policy(name: str, rewards: Rewards, scale: float, fixed: bool) -> Policy:
    """The policy with this scale or width."""
    settings: dict[str, object] = {list_policies()[name].knob: scale, "warmup": "none"}
    if name.startswith("glm"):
        settings |= {"family": FAMILIES[rewards]} | ({} if fixed else {"memory": "constant"})
    return make(name, **settings)


class Deciding(Adapter):
    """An agent."""

    def __init__(self, task: Task) -> None:
        name, *propensity = task.algorithm.split()
        self.arms = task.arms if task.shape == "disjoint" else None
        self.fixed = task.shape == "fixed"
        self.policy = policy(name, task.rewards, task.scale, self.fixed)
        self.settings: dict[str, Any] = {"seed": task.seed, "draws": 100 if propensity else 0}
        self.agent: Agent | None = None
        if not self.fixed:
            self.agent = Agent(self.policy, n_features=task.features * (self.arms or 1), **self.settings)
        self.waiting = 0

    def choose(self, context: Floats) -> tuple[int, float | None]:
        """An arm, and its probability where it was asked for."""
        if self.agent is None:  # fixed arms show in the first round
            self.agent = Agent(self.policy, arms=context, **self.settings)
        if self.fixed:
            decision = self.agent.choose()
        else:
            decision = self.agent.choose(context if self.arms is None else blocks(context, self.arms))
        self.waiting = decision.id
        return decision.row, decision.propensity

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """The reward of that decision."""
        assert self.agent is not None
        self.agent.learn(self.waiting, reward)


if __name__ == "__main__":
    devices.decide_inline()
    serve("explorax", dict.fromkeys(PLAYERS, Deciding))
