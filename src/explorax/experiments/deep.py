"""The deep bandit of the paper's Figure 2: settings as data, claims as functions of the results.

Each round shows K = 10 random images of MNIST or Fashion-MNIST.  An image of the target label, which the policy does
not know, pays 1 with probability 0.75, any other image with probability 0.25.  A run has n = 10 000 rounds; there are
500 instances, 50 for each label.  The models are networks with a hidden layer of ReLU or tanh units: DeepFPL, the
same without perturbation (DeepFL), and GLM-FPL on the hidden layer of a network that is trained on random arms in the
first m percent of the rounds (repGLM-FPL).

The measure is the average reward per round.  `Figure2.claims` checks what the paper says about the figure, with "beats"
as `explorax.summarize` defines it.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.2.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from explorax.claims import DIGITS, Claim, Evidence, Finding, Question, beat, evaluate, in_every_panel
from explorax.datasets import as_path, known_name, load
from explorax.environments.labelled import optimum as best_reward
from explorax.errors import ExploraxError
from explorax.experiments.study import Curve, Panel, Study, curve, each_policy_once, taken
from explorax.record import Result
from explorax.registry import entry_of
from explorax.summarize import mean_and_stderr, measured
from explorax.text import with_error

POLICIES = ("deep_fpl", "deep_fl", "rep_glm_fpl")
TITLES = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "digits": "Digits", "relu": "ReLU"}
ARMS = 10
HIGH_REWARD = 0.5  # the average reward that the paper says DeepFPL reaches
PRINTED_OPTIMUM, ROUNDING = 0.576, 0.005


class Figure2(Study):
    """The study of the paper's Figure 2, or a variation on it, judged by the paper's claims."""

    title = "Average reward in deep bandits (Figure 2)"
    stem = "figure2"
    paper_rounds = 10_000
    purpose = (
        "A reproduction of Figure 2 of Kveton et al., Randomized Exploration in Generalized Linear Bandits (AISTATS "
        "2020): exploration with neural networks, on images of which one label pays more than the others."
    )

    @classmethod
    def covers(cls, name: str, environment: str, measure: str) -> bool:
        """Return whether a study with this name, environment and measure is this experiment."""
        return (name, environment, measure) == ("deep", "classification", "reward")

    @cached_property
    def optima(self) -> dict[str, float]:
        """The largest possible average reward in each panel whose data can still be read."""
        found = {}
        for panel in self.panels:
            settings = self.environment_arguments(panel)
            settings.pop("intercept", None)  # which changes no reward
            if settings.keys() <= {"data", "n_arms", "label"}:
                with contextlib.suppress(ExploraxError, OSError, ImportError):
                    found[panel.label] = optimum(**settings)
        return found

    def claims(self, results: Sequence[Result]) -> list[Claim]:
        """Judge the paper's claims: each one for all panels together, then for each panel."""
        return claims(results, self.optima)


def study(
    *,
    datasets: Sequence[str] = ("mnist", "fashion"),
    activations: Sequence[str] = ("relu", "tanh"),
    label: str | None = None,
    rounds: int = Figure2.paper_rounds,
    instances: int = 500,
    percents: Sequence[float] = (1, 5, 10, 20),
    replay: str = "recent",
    scale: float = 1.0,
    policies: Iterable[str] | None = None,
    seed: int = 0,
    checkpoints: int | None = None,
) -> Figure2:
    """Return the study of Figure 2, or a variation on it.

    Args:
        datasets: Names of data sets ("mnist", "fashion", "digits") or paths of CSV or Parquet files. Default: MNIST and
            Fashion-MNIST.
        activations: Activations of the hidden units, "relu" or "tanh". The figure has one panel for each pair of a data
            set and an activation. Default: both.
        label: The column of a file that holds its labels. Default: "label".
        rounds: Length n of a run. Default: 10 000.
        instances: Number of random problems that every curve plays. Default: 500.
        percents: Training lengths m of repGLM-FPL, in percent of the rounds. Default: 1, 5, 10 and 20.
        replay: Examples of a training step, "recent" or "uniform". Default: "recent".
        scale: Scale of DeepFPL's perturbation. Default: 1.
        policies: Names of policies in the registry. Default: DeepFPL, DeepFL and repGLM-FPL, as in the paper.
        seed: Seed of the random problems and of the policies. Default: 0.
        checkpoints: How many times the reward is recorded in a run. Default: 100, or every round of a shorter run.

    Returns:
        A study to pass to `explorax.runner.run`.
    """
    chosen = POLICIES if policies is None else each_policy_once(policies)
    trained = any(taken(policy, {"activation": None}) for policy in chosen)
    return Figure2(
        name="deep",
        environment="classification",
        environment_settings={"n_arms": ARMS},
        panels=tuple(_panel(data, activation, label, trained) for data in datasets for activation in activations),
        measure="reward",
        rounds=rounds,
        instances=instances,
        seed=seed,
        checkpoints=checkpoints,
        curves=tuple(one for policy in chosen for one in _curves(policy, rounds, percents, replay, scale)),
    )


def quick(
    *,
    datasets: Sequence[str] = ("digits",),
    rounds: int = 2_000,
    instances: int = 50,
    percents: Sequence[float] = (5, 20),
    **others: Any,
) -> Figure2:
    """Return a small version of Figure 2, on the small digits of scikit-learn.

    Args:
        datasets: Names of data sets or paths of files. Default: "digits".
        rounds: Length n of a run. Default: 2 000.
        instances: Number of random problems that every curve plays. Default: 50.
        percents: Training lengths m of repGLM-FPL, in percent of the rounds. Default: 5 and 20.
        **others: Further arguments of `study`.

    Returns:
        A study to pass to `explorax.runner.run`.
    """
    return study(datasets=datasets, rounds=rounds, instances=instances, percents=percents, **others)


def _panel(data: str, activation: str, column: str | None, trained: bool) -> Panel:
    """Return the panel of a data set, with an activation for the curves if any of them trains a network."""
    path = as_path(data)
    name = known_name(data) if path is None else path.name.partition(".")[0]
    label = f"{TITLES.get(name, name)}, {TITLES.get(activation, activation)}"
    settings = {"data": data if path else name} | ({"label": column} if path and column else {})
    tags: dict[str, str | int] = {"dataset": name, "activation": activation}
    return Panel(label, settings, {"activation": activation} if trained else {}, tags)


def _curves(policy: str, rounds: int, percents: Sequence[float], replay: str, scale: float) -> list[Curve]:
    """Return the curve of a policy, or one curve for each training length of repGLM-FPL."""
    entry = entry_of(policy)
    if entry.name == "deep_fpl":
        return [curve(policy, settings={"scale": scale, "replay": replay})]
    if entry.name == "rep_glm_fpl":
        shared = {"horizon": rounds, "replay": replay}
        labels = {f"{entry.title}, m = {percent:g} %": percent for percent in percents}
        return [curve(policy, None, label, {"percent": percent} | shared) for label, percent in labels.items()]
    return [curve(policy, settings=taken(policy, {"replay": replay}))]


def optimum(data: str, n_arms: int = ARMS, label: str | None = None) -> float:
    """Return the largest possible average reward on a data set, over as many instances of each label.

    Args:
        data: Name of a data set or path of a file. A data set that is not on this machine is not downloaded.
        n_arms: Number of examples that a round shows. Default: 10.
        label: The column of a file that holds its labels. Default: "label".

    Returns:
        The expected reward per round of a policy that knows the target label.
    """
    return best_reward(load(data, label=label, download=False), n_arms)


def claims(results: Sequence[Result], optima: Mapping[str, float]) -> list[Claim]:
    """Judge the paper's claims, given the optimum of each panel whose data can be read."""
    variants = tuple(dict.fromkeys(one.curve for one in results if one.policy == "rep_glm_fpl")) or ("repGLM-FPL",)
    questions = (
        Question("deep_fpl_is_high", f"DeepFPL's average reward is at least {HIGH_REWARD}.", ("DeepFPL",), _high),
        Question(
            "deep_fpl_beats_deep_fl",
            "DeepFPL beats DeepFL.",
            ("DeepFPL", "DeepFL"),
            partial(beat, [("DeepFPL", "DeepFL")], "reward"),
        ),
        Question(
            "deep_fpl_beats_rep_glm_fpl",
            "DeepFPL beats every variant of repGLM-FPL.",
            ("DeepFPL", *variants),
            partial(beat, [("DeepFPL", variant) for variant in variants], "reward"),
        ),
    )
    return [*evaluate(questions, results), *_optimum_is_as_printed(results, optima)]


def _high(found: Mapping[str, Result]) -> Finding:
    """Judge whether the average reward of DeepFPL is as high as the paper says."""
    means, errors = mean_and_stderr(measured(found["DeepFPL"].records, "reward")[:, -1])
    mean, stderr = float(means), None if errors is None else float(errors)
    sentence = f"The average reward of DeepFPL is {with_error(mean, stderr, DIGITS['reward'])}."
    return Finding({"DeepFPL": {"mean": mean, "stderr": stderr}}, (Evidence(sentence, mean >= HIGH_REWARD),))


def _optimum_is_as_printed(results: Sequence[Result], optima: Mapping[str, float]) -> list[Claim]:
    """Judge whether the largest possible average reward of each panel is the one that the paper prints."""
    name, statement = "optimum_is_as_printed", f"The best possible average reward is about {PRINTED_OPTIMUM}."
    each = []
    for panel in dict.fromkeys(one.panel for one in results):
        if panel in optima:
            holds = abs(optima[panel] - PRINTED_OPTIMUM) <= ROUNDING
            evidence = (Evidence(f"The best possible average reward is {optima[panel]:.4f}.", holds),)
            each.append(Claim(name, statement, holds, {"optimum": {"mean": optima[panel]}}, "", panel, evidence))
        else:
            each.append(Claim(name, statement, None, {}, "The labels of the data cannot be read.", panel))
    return [in_every_panel(name, statement, each), *each]
