"""Vowpal Wabbit: two of its explorations over an online linear regression, `--cb_explore_adf`.

    SquareCB    `--squarecb`, documented to be optimal at about the cost of ε-greedy; `scale` is `--gamma_scale`, how
                fast it turns greedy
    RegCB       `--regcb --regcbopt`, optimism; the best overall in the contextual bandit bake-off of its authors
                (Bietti, Agarwal & Langford, 2021); `scale` is `--mellowness`

    shared      an example for each arm with its features
    disjoint    a shared example with the context, an example for each arm with its name, and their products,
                `--quadratic ca`, which is how Vowpal Wabbit documents it

There is no constant, as the problems have none.  The learning rate is tuned too.  All other settings are Vowpal
Wabbit's own.  It learns costs, so a reward r is a cost −r; RegCB is told the range of costs.  It predicts the
probability of every arm, and the arm is drawn here.

Its default exploration, ε-greedy, is not played.  An arm that was explored with probability p counts 1/p times in the
regression, which is K/ε of them at once; that undoes what was learned, and no ε above 0 came near the other two.

A round has to become examples first, which takes several times as long as predicting and learning together.  Text is
the fastest of the documented ways: one format string for the whole round and one `parse` take less time than a
dictionary and an `Example` for each arm.  %g writes 6 digits; Vowpal Wabbit computes in float32.  The examples of
`choose` are kept for the `learn` that follows.
"""

from random import Random
from typing import Any

from common import Adapter, Floats, Task, serve
from vowpalwabbit import LabelType, Workspace  # type: ignore[import-not-found]

EXPLORATIONS = {
    "SquareCB": "--squarecb --gamma_scale {scale}",
    "RegCB": "--regcb --regcbopt --mellowness {scale} --cb_min_cost {lowest} --cb_max_cost {highest}",
}
COSTS = {"logistic": (-0.5, 0.5), "linear": (-4.0, 4.0)}  # rewards, less their center, are hardly ever outside


class Exploring(Adapter):
    """An exploration of Vowpal Wabbit."""

    def __init__(self, task: Task) -> None:
        lowest, highest = COSTS[task.rewards]
        exploration = EXPLORATIONS[task.algorithm].format(scale=task.scale, lowest=lowest, highest=highest)
        numbers = " ".join(f"{feature}:%g" for feature in range(task.features))
        if task.shape != "disjoint":
            features, lines = "", [f"|x {numbers}"] * task.arms
        else:
            features = "--quadratic ca --ignore_linear c --ignore_linear a"
            lines = [f"shared |c {numbers}", *(f"|a arm{arm}" for arm in range(task.arms))]
        self.workspace = Workspace(
            f"--cb_explore_adf {exploration} {features} --learning_rate {task.rate} --noconstant --quiet "
            f"--random_seed {task.seed}"
        )
        self.text = "\n".join(lines)
        self.first = len(lines) - task.arms  # the example of the first arm
        self.arms = range(task.arms)
        self.random = Random(task.seed)
        self.examples: list[Any] = []

    def choose(self, context: Floats) -> tuple[int, float]:
        """An arm drawn from the probabilities that Vowpal Wabbit predicts, and its probability."""
        self.examples = self.workspace.parse(self.text % tuple(context.ravel().tolist()), LabelType.CONTEXTUAL_BANDIT)
        probabilities = self.workspace.predict(self.examples)
        arm = self.random.choices(self.arms, probabilities)[0]
        return arm, probabilities[arm]

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """An update with the cost and the probability on the example of the arm; then the examples are given back."""
        self.examples[self.first + arm].set_label_string(f"0:{-reward}:{propensity}")
        self.workspace.learn(self.examples)
        self.workspace.finish_example(self.examples)


if __name__ == "__main__":
    serve("vowpalwabbit", dict.fromkeys(EXPLORATIONS, Exploring))
