"""The deep bandit of the paper's Figure 2: settings as data, claims as functions of the results.

Each round shows K = 10 random images of MNIST or Fashion-MNIST; one of a label that the policy is not told pays 1 with
probability 0.75, any other with 0.25.  n = 10 000 rounds, 500 instances, 50 for each label.  The models are networks
with a hidden layer of ReLU or tanh units: DeepFPL, the same without perturbation (DeepFL), and GLM-FPL on the hidden
layer of a network that is learned from random arms in the first m percent of the rounds (repGLM-FPL).

What is measured is the average reward per round.  What the paper says of the figure is checked by `claims`, with
"beats" as `explorax.summarize` defines it.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.2.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from explorax.builders import setting_names
from explorax.datasets import as_path, known_name, load
from explorax.environments.labelled import optimum as best_reward
from explorax.errors import ExploraxError
from explorax.experiments.study import Curve, Panel, Study, curve, each_policy_once
from explorax.record import Result
from explorax.registry import entry_of
from explorax.summarize import Claim, Numbers, Question, beat, evaluate, in_every_panel, mean_and_stderr, measured

POLICIES = ("deep_fpl", "deep_fl", "rep_glm_fpl")
TITLES = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "digits": "Digits", "relu": "ReLU"}
ARMS = 10
HIGH_REWARD = 0.5  # that DeepFPL is said to reach
PRINTED_OPTIMUM, ROUNDING = 0.576, 0.005


def study(
    *,
    datasets: Sequence[str] = ("mnist", "fashion"),
    activations: Sequence[str] = ("relu", "tanh"),
    label: str | None = None,
    rounds: int = 10_000,
    instances: int = 500,
    percents: Sequence[float] = (1, 5, 10, 20),
    replay: str = "recent",
    scale: float = 1.0,
    policies: Iterable[str] | None = None,
    seed: int = 0,
    checkpoints: int | None = None,
) -> Study:
    """Figure 2, or a variation on it; `policies` are all three unless given, and may be others of the registry.

    `datasets` may be files too; `label` is then the column that holds their labels.
    """
    return Study(
        name="deep",
        environment="classification",
        environment_settings={"n_arms": ARMS},
        panels=tuple(_panel(data, activation, label) for data in datasets for activation in activations),
        measure="reward",
        rounds=rounds,
        instances=instances,
        seed=seed,
        checkpoints=checkpoints,
        curves=tuple(
            one
            for policy in (POLICIES if policies is None else each_policy_once(policies))
            for one in _curves(policy, rounds, percents, replay, scale)
        ),
    )


def quick(
    *,
    datasets: Sequence[str] = ("digits",),
    rounds: int = 2_000,
    instances: int = 50,
    percents: Sequence[float] = (5, 20),
    **others: Any,
) -> Study:
    """Figure 2 in small, on small images; takes what `study` takes."""
    return study(datasets=datasets, rounds=rounds, instances=instances, percents=percents, **others)


def _panel(data: str, activation: str, column: str | None) -> Panel:
    path = as_path(data)
    name = known_name(data) if path is None else path.name.partition(".")[0]
    label = f"{TITLES.get(name, name)}, {TITLES.get(activation, activation)}"
    settings = {"data": data if path else name} | ({"label": column} if path and column else {})
    return Panel(label, settings, {"activation": activation}, {"dataset": name, "activation": activation})


def _curves(policy: str, rounds: int, percents: Sequence[float], replay: str, scale: float) -> list[Curve]:
    """The curves of a policy: one, or one for each length of training."""
    entry = entry_of(policy)
    if entry.name == "deep_fpl":
        return [curve(policy, settings={"scale": scale, "replay": replay})]
    if entry.name == "rep_glm_fpl":
        shared = {"horizon": rounds, "replay": replay}
        labels = {f"{entry.title}, m = {percent:g} %": percent for percent in percents}
        return [curve(policy, None, label, {"percent": percent} | shared) for label, percent in labels.items()]
    known = setting_names(entry.builder())
    return [curve(policy, settings={"replay": replay} if "replay" in known else {})]


def optimum(data: str, n_arms: int = ARMS, label: str | None = None) -> float:
    """The best possible average reward, with as many instances of each label; nothing is downloaded for it."""
    return best_reward(load(data, label=label, download=False), n_arms)


def optima(study: Study) -> dict[str, float]:
    """The optimum of each panel whose data can still be read."""
    found = {}
    for panel in study.panels:
        settings = study.environment_arguments(panel)
        settings.pop("intercept", None)  # which changes no reward
        if settings.keys() <= {"data", "n_arms", "label"}:
            with contextlib.suppress(ExploraxError, OSError, ImportError):
                found[panel.label] = optimum(**settings)
    return found


def claims(results: Sequence[Result], optima: Mapping[str, float]) -> list[Claim]:
    """What the paper says, with the optimum of each panel where it is known: in every panel, then in each."""
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


def _high(found: Mapping[str, Result]) -> tuple[bool, Numbers]:
    mean, stderr = mean_and_stderr(measured(found["DeepFPL"].records, "reward")[:, -1])
    numbers: Numbers = {"DeepFPL": {"mean": float(mean), "stderr": None if stderr is None else float(stderr)}}
    return bool(mean >= HIGH_REWARD), numbers


def _optimum_is_as_printed(results: Sequence[Result], optima: Mapping[str, float]) -> list[Claim]:
    name, statement = "optimum_is_as_printed", f"The best possible average reward is about {PRINTED_OPTIMUM}."
    each = []
    for panel in dict.fromkeys(one.panel for one in results):
        if panel in optima:
            holds = abs(optima[panel] - PRINTED_OPTIMUM) <= ROUNDING
            each.append(Claim(name, statement, holds, {"optimum": {"mean": optima[panel]}}, "", panel))
        else:
            each.append(Claim(name, statement, None, {}, f"{panel}: the labels of the data cannot be read", panel))
    return [in_every_panel(name, statement, each), *each]
