"""Two policies as if they had played: regrets on instances to tune on and on others."""

import numpy as np

from explorax.arena import standings
from explorax.arena.contestants import Contestant
from explorax.arena.problems import problem_of
from explorax.record import Records, Result

TUNING = 4  # instances


def contender(policy, grid=(), **more):
    knob = "scale" if grid else ""
    return Contestant(policy, policy.upper(), {}, knob, grid, **({"misspecified": False} | more))


def result(label, policy, tuned_on, reported):
    """Regrets at the end of the instances to tune on, and of the others; half of that half-way."""
    final = np.array([*tuned_on, *reported], float)
    regret, count = np.stack([final / 2, final], axis=1), len(final)
    zeros = np.zeros(count, np.int64)
    records = Records(np.arange(count), np.array([50, 100]), regret, regret, zeros.astype(np.uint32), zeros)
    return Result(label, policy, "", "logistic", "a panel", records)


A, B = contender("glm_tsl", (0.5, 2.0)), contender("b")
FOUND = [
    result("GLM_TSL", "glm_tsl", [9, 9, 9, 9], [1, 2, 3, 4, 5, 6]),
    result("GLM_TSL, scale = 0.5", "glm_tsl", [9, 1, 1, 1], [5, 5, 5, 5, 5, 6]),
    result("GLM_TSL, scale = 2", "glm_tsl", [2, 4, 4, 4], [0, 0, 0, 0, 0, 0]),
    result("B", "b", [0, 0, 0, 0], [2, 3, 4, 5, 6, 7]),
]
ROWS = standings.standings(problem_of("logistic-5"), [A, B], FOUND, {"B": 2e-6}, TUNING)
