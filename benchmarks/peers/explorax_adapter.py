"""explorax: `Agent` on the arms' features, with the same rounds as the other adapters of this folder.

    glm_tsl               Thompson sampling in a logistic model with a memory of constant size
    glm_tsl propensity    the same, with the probability of every decision estimated by 100 draws
    lin_ts, lin_ucb       linear models, as contextualbandits and mabwiser have them

Each decision gets a matrix of arms that it has not seen before, as the shared shape wants.  XLA runs small programs in
the calling thread if told so before JAX starts (`explorax.devices.decide_inline`).
"""

import argparse
import sys
from typing import ClassVar

from common import Adapter, Floats, Shape, main

from explorax import Agent, devices, make

POLICIES = {
    "glm_tsl": ({"memory": "constant"}, 0),
    "glm_tsl propensity": ({"memory": "constant"}, 100),
    "lin_ts": ({}, 0),
    "lin_ucb": ({}, 0),
}


class Deciding(Adapter):
    """An agent of explorax."""

    shape: ClassVar[Shape] = "shared"
    algorithm = "glm_tsl"

    def __init__(self, arms: int, features: int, seed: int) -> None:
        settings, draws = POLICIES[self.algorithm]
        policy = make(self.algorithm.split()[0], **settings)
        self.agent = Agent(policy, features=features, seed=seed, draws=draws)
        self.waiting = 0

    def choose(self, context: Floats) -> tuple[int, float | None]:
        """An arm, and its probability where it was asked for."""
        decision = self.agent.choose(context)
        self.waiting = decision.id
        return decision.row, decision.propensity

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """The reward of that decision."""
        self.agent.learn(self.waiting, reward)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--policy", choices=list(POLICIES), default="glm_tsl")
    chosen, others = parser.parse_known_args()
    devices.decide_inline()
    Deciding.algorithm = chosen.policy
    sys.argv[1:] = others
    main("explorax", [Deciding])
