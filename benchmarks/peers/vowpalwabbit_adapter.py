"""Vowpal Wabbit: SquareCB on the arms' features, `--cb_explore_adf --squarecb`.

The shared shape is the one that Vowpal Wabbit documents for arms with features.  Of its explorations SquareCB is the
one documented to be optimal at about the cost of ε-greedy.  `gamma_scale` is how fast it turns greedy: Vowpal
Wabbit's own 10 explores for very long here, and of 10, 100 and 1000 the last earned most.  All other settings are its
own.  Vowpal Wabbit learns costs, so a reward r is a cost −r; it predicts the probability of every arm, and the arm is
drawn here.

A round has to become examples first, one for each arm, which takes several times as long as predicting and learning
together.  Text is the fastest of the documented ways: one format string for the whole round and one `parse` take less
time than a dictionary and an `Example` for each arm.  %g writes 6 digits; Vowpal Wabbit computes in float32.  The
examples of `choose` are kept for a `learn` from the same array, which is then spared the conversion.
"""

from random import Random
from typing import Any

from common import Adapter, Floats, main
from vowpalwabbit import LabelType, Workspace  # type: ignore[import-not-found]


class SquareCB(Adapter):
    """Inverse gap weighting over an online linear regression on the arms' features."""

    shape = "shared"
    algorithm = "SquareCB"

    def __init__(self, arms: int, features: int, seed: int, gamma_scale: float = 1000.0) -> None:
        self.workspace = Workspace(
            f"--cb_explore_adf --squarecb --gamma_scale {gamma_scale} --quiet --random_seed {seed}"
        )
        self.text = "\n".join(["|x " + " ".join(f"{feature}:%g" for feature in range(features))] * arms)
        self.arms = range(arms)
        self.random = Random(seed)
        self.context: Floats | None = None  # what the examples show
        self.examples: list[Any] = []

    def show(self, context: Floats) -> None:
        """Gives the examples back to Vowpal Wabbit, as it asks for, and makes new ones of this round."""
        if self.examples:
            self.workspace.finish_example(self.examples)
        self.examples = self.workspace.parse(self.text % tuple(context.ravel().tolist()), LabelType.CONTEXTUAL_BANDIT)
        self.context = context

    def choose(self, context: Floats) -> tuple[int, float]:
        """An arm drawn from the probabilities that Vowpal Wabbit predicts, and its probability."""
        self.show(context)
        probabilities = self.workspace.predict(self.examples)
        arm = self.random.choices(self.arms, probabilities)[0]
        return arm, probabilities[arm]

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """An update from the round with the cost and the probability on the example of its arm."""
        if context is not self.context:
            self.show(context)
        self.examples[arm].set_label_string(f"0:{-reward}:{propensity}")
        self.workspace.learn(self.examples)
        self.context = None  # an example takes one label only


if __name__ == "__main__":
    main("vowpalwabbit", [SquareCB])
