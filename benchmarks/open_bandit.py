"""The Open Bandit Dataset: the value of each policy of the shop from the log of the other, next to its own log.

    python benchmarks/open_bandit.py DATA [--obp DIR] [--page docs/open-bandit.md] [--figure docs/open-bandit.png]

DATA is the archive, or a directory with it, as `explorax.datasets.open_bandit` reads them.  In each campaign

    random           is evaluated on the log of bts
    bts, at first    is evaluated on the log of random: Bernoulli TS with the parameters with which the shop started it,
                     whose chances obp estimates from 100 000 draws
    bts, on average  the same with the share that each item had in each place in the log of bts, while it learned

and compared with the mean reward in the log of its own.  explorax fits a GLM, to the rows before each row of the log of
bts, which learned, and crosswise to that of random; settings of estimators are chosen from the data.  obp answers in an
environment of its own (`obp_environment.py`, made in --obp) about the same arrays, with these settings, twice: with
explorax's reward model, where the estimates must agree, and with its own, a logistic regression fitted crosswise.
Numbers are clicks for 1000 recommendations.
"""

import argparse
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import obp_environment
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import explorax
from explorax.evaluation.estimators import ESTIMATORS
from explorax.evaluation.intervals import interval
from explorax.evaluation.preparing import prepared
from explorax.evaluation.reward_models import predictions
from explorax.evaluation.scoring import scores_of_logging
from explorax.files import write_atomically
from explorax.log.features import JoinedFeatures
from explorax.looks import BLUE, GREY, ORANGE, STYLE
from explorax.open_bandit import CAMPAIGNS, POSITIONS
from explorax.plot import save

NAMES = ("ips", "snips", "dm", "dr", "sndr", "switch_dr", "dr_shrinkage")
BOUNDED = ("ips", "dr")  # that have intervals at any time
RANDOM, FIRST, AVERAGE = "random", "bts, at first", "bts, on average"
LOG_OF = {RANDOM: "bts", FIRST: "random", AVERAGE: "random"}  # which log a policy is evaluated on
OWN = {RANDOM: "random", FIRST: "bts", AVERAGE: "bts"}
FITTED = {"random": "cross", "bts": "past"}  # the reward model of each log
DRAWS, SAMPLES = 100_000, 2_000  # of obp's Bernoulli TS, and of its bootstrap
BEGIN, END = "<!-- written by open_bandit.py: begin -->", "<!-- written by open_bandit.py: end -->"
THOUSAND, RANGE = 1000, (0.0, 1.0)
LEAST, LARGEST = 1e-15, 1e24  # of a setting, instead of 0 and infinity, with which obp divides by zero


class Value(NamedTuple):
    """An estimate with an interval of 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        value, low, high = (f"{THOUSAND * each:.1f}" for each in self)
        return f"{value} ({low} to {high})".replace("-", "−")


class Found(NamedTuple):
    """What the log of one policy says of another one in a campaign."""

    campaign: str
    target: str
    own: Value  # from the target's own log
    ours: dict[str, Value]  # by estimator
    anytime: dict[str, Value]
    obp: dict[str, Value]
    answers: str  # whether the log can tell, by its diagnosis
    effective: float  # rows
    largest: float  # weight
    apart: float  # the largest difference between obp's estimates and ours with one reward model


def evaluated(campaign: str, target: str, chances: np.ndarray, data: str, python: Path) -> Found:
    """Evaluate one policy, given the chance of each item in each place."""
    log, own = (explorax.datasets.open_bandit(campaign, of[target], data) for of in (LOG_OF, OWN))
    assert log.propensities is not None
    assert isinstance(log.features, JoinedFeatures)
    places = places_of(log)
    probabilities = chances.T[places]
    model = predictions(log, "glm", FITTED[LOG_OF[target]], RANGE)
    assert model is not None
    table = model.at(np.arange(len(log)))
    asked: dict[str, Any] = {
        "log": log,
        "policies": {target: probabilities},
        "reward_model": table,
        "reward_range": RANGE,
    }
    evaluation = explorax.evaluate(**asked, estimator=NAMES, interval="asymptotic")
    ours = {row.estimator: Value(row.value, row.low, row.high) for row in evaluation.rows[1:]}
    diagnosis = evaluation.diagnostics[target]
    scores = prepared(**asked, estimators=NAMES).targets[target]
    always = {name: interval("anytime", name, scores) for name in BOUNDED}
    chosen = [ESTIMATORS[name].estimate(scores).setting for name in ("switch_dr", "dr_shrinkage")]
    tau, lambda_ = (min(max(float(each), LEAST), LARGEST) for each in chosen if each is not None)
    arrays = {"reward": log.rewards, "action": log.arms, "pscore": log.propensities}
    rows = {"action_dist": probabilities[:, :, None], "estimated_rewards_by_reg_model": table[:, :, None]}
    same = obp_environment.ask(python, "values", arrays | rows, tau=tau, lambda_=lambda_)
    known = {
        "position": places,
        "action_dist": np.broadcast_to(chances, (len(log), *chances.shape)),
        "context": log.features.contexts[:, len(POSITIONS) :],
        "action_context": log.features.arms,
    }
    theirs = obp_environment.ask(python, "fitted", arrays | known, tau=tau, lambda_=lambda_, seed=0, samples=SAMPLES)
    low, high, _ = interval("asymptotic", "on_policy", scores_of_logging(own.rewards, RANGE))
    return Found(
        campaign,
        target,
        Value(float(own.rewards.mean()), low, high),
        ours,
        {name: Value(ours[name].value, one.low, one.high) for name, one in always.items()},
        {name: Value(*theirs[name]) for name in NAMES},
        diagnosis.verdict,
        diagnosis.effective,
        diagnosis.largest,
        max(abs(float(same[name]) / ours[name].value - 1) for name in NAMES),
    )


def places_of(log: explorax.LoggedData) -> np.ndarray:
    """Return the place of each recommendation on its page, from 0 on."""
    assert log.contexts is not None
    return log.contexts[:, 0].astype(int) - 1


def all_found(data: str, python: Path) -> Iterator[Found]:
    """Yield what each log says, campaign by campaign."""
    for campaign in CAMPAIGNS:
        log = explorax.datasets.open_bandit(campaign, "bts", data)
        counts = np.zeros((log.n_arms, len(POSITIONS)))
        np.add.at(counts, (log.arms, places_of(log)), 1)
        chances = {
            RANDOM: np.full(counts.shape, 1 / log.n_arms),
            FIRST: obp_environment.ask(python, "bts", {}, campaign=campaign, n_sim=DRAWS, seed=0)["chances"],
            AVERAGE: counts / counts.sum(axis=0),
        }
        for target, table in chances.items():
            yield evaluated(campaign, target, table, data, python)
            print(f"{campaign}: {target} is evaluated on the log of {LOG_OF[target]}", flush=True)


def marked(value: Value, own: Value) -> str:
    """Return an estimate as text, with a mark if its interval lies above or below the mean of the policy's own log."""
    mark = " ▲" if value.low > own.value else " ▼" if value.high < own.value else ""
    return f"{value}{mark}"


def counted(found: Sequence[Found]) -> str:
    """Return a table of how many intervals hold the mean of the policy's own log."""
    lines = [["estimator", "explorax", "explorax, at any time", "obp"], ["---"] * 4]
    for name in NAMES:
        kinds = (
            [(getattr(one, kind).get(name), one.own.value) for one in found] for kind in ("ours", "anytime", "obp")
        )
        held = (sum(value.low <= own <= value.high for value, own in pairs if value) for pairs in kinds)
        lines.append([name, *map(str, held)])
        lines[-1][2] = lines[-1][2] if name in BOUNDED else ""
    title = f"### How many of {len(found)} intervals hold the mean of the policy's own log"
    return "\n".join([title, "", *(f"| {' | '.join(line)} |" for line in lines)])


def section(found: Sequence[Found]) -> str:
    """Return the table of one policy: campaigns from left to right, explorax next to obp."""
    campaigns = [f"{one.campaign}{by}" for one in found for by in ("", ", obp")]
    rows = [
        ["**its own log**", *(cell for one in found for cell in (f"**{one.own}**", ""))],
        *(
            [
                name,
                *(cell for one in found for cell in (marked(one.ours[name], one.own), marked(one.obp[name], one.own))),
            ]
            for name in NAMES
        ),
        *(
            [f"{name}, at any time", *(cell for one in found for cell in (marked(one.anytime[name], one.own), ""))]
            for name in BOUNDED
        ),
        ["can the log tell?", *(cell for one in found for cell in (one.answers, ""))],
        ["effective rows", *(cell for one in found for cell in (f"{one.effective:.0f}", ""))],
        ["largest weight", *(cell for one in found for cell in (f"{one.largest:.0f}", ""))],
    ]
    lines = [["estimator", *campaigns], ["---"] * (1 + len(campaigns)), *rows]
    target = found[0].target
    title = f"### The policy {target!r}, from the log of {LOG_OF[target]}".replace("'", "`")
    return "\n".join([title, "", *(f"| {' | '.join(line)} |" for line in lines)])


def described(data: str) -> str:
    """Return a table of the logs: their sizes, and whether their propensities are calibrated."""
    lines = [
        ["campaign", "log", "items", "rows", "clicks", "least propensity", "mean weight of uniform choices"],
        ["---"] * 7,
    ]
    for campaign in CAMPAIGNS:
        for policy in ("random", "bts"):
            log = explorax.datasets.open_bandit(campaign, policy, data)
            assert log.propensities is not None
            weights: np.ndarray = 1 / log.n_arms / log.propensities
            error = weights.std() / len(log) ** 0.5
            sizes = (log.n_arms, len(log), log.rewards.sum(), log.propensities.min())
            lines.append([campaign, policy, *(f"{each:.4g}" if each < 1 else f"{each:.0f}" for each in sizes)])
            lines[-1].append(f"{weights.mean():.2f} ± {1.96 * error:.2f}")
    return "\n".join(["### The logs", "", *(f"| {' | '.join(line)} |" for line in lines)])


def markdown(found: Sequence[Found], logs: str) -> str:
    """Return all tables, and how far obp and explorax are apart where they do the same."""
    apart = max(one.apart for one in found)
    about = (
        "Clicks for 1000 recommendations, with 95 % intervals; ▲ and ▼ mark intervals above and below the mean of the "
        "policy's own log. With the reward model of explorax, the estimates of obp differ from those of explorax by at "
        f"most {apart:.0e} of their size."
    )
    wrapped = textwrap.fill(about, 100, break_long_words=False, break_on_hyphens=False)
    tables = (section([one for one in found if one.target == target]) for target in LOG_OF)
    return "\n\n".join([wrapped, counted(found), *tables, logs])


def inserted(page: str, text: str) -> str:
    """Return the page with this text between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"the page has no place for the tables: it needs the lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def draw(found: Sequence[Found]) -> Figure:
    """Draw a row of panels for each policy, and a column for each campaign."""
    with style.context(["default", STYLE]):
        drawn = Figure(figsize=(8.6, 7.6), layout="constrained")
        FigureCanvasAgg(drawn)
        panels = drawn.subplots(len(LOG_OF), len(CAMPAIGNS), sharey=True, squeeze=False)
        for one in found:
            panel(panels[list(LOG_OF).index(one.target)][CAMPAIGNS.index(one.campaign)], one)
        for axes in panels[-1]:
            axes.set_xlabel("clicks for 1000 recommendations")
        drawn.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return drawn


def panel(axes: Axes, one: Found) -> None:
    """Draw the estimates of one policy in one campaign, over the mean of its own log."""
    axes.axvspan(THOUSAND * one.own.low, THOUSAND * one.own.high, color=GREY, alpha=0.2, linewidth=0, label="own log")
    axes.axvline(THOUSAND * one.own.value, color=GREY, linewidth=1)
    rows = np.arange(len(NAMES))
    looks = (("explorax", one.ours, BLUE, "o", -0.15), ("obp", one.obp, ORANGE, "s", 0.15))
    for label, estimates, color, marker, shift in looks:
        value, low, high = THOUSAND * np.array([estimates[name] for name in NAMES]).T
        axes.hlines(rows + shift, low, high, color=color, linewidth=1.2)
        axes.plot(value, rows + shift, marker, color=color, markersize=4, label=label)
    axes.set_yticks(rows, NAMES)
    axes.set_ylim(len(NAMES) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_title(f"{one.target}: {one.campaign}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="the archive, or its directory")
    parser.add_argument(
        "--obp", type=Path, default=Path("results/obp"), help="obp's environment (default: results/obp)"
    )
    parser.add_argument("--page", type=Path, help="a page that gets the tables")
    parser.add_argument("--figure", type=Path, help="where to draw the figure")
    options = parser.parse_args()
    found = list(all_found(options.data, obp_environment.make(options.obp)))
    text = markdown(found, described(options.data))
    print(f"\n{text}")
    if options.page:
        write_atomically(options.page, inserted(options.page.read_text(), text).encode())
    if options.figure:
        save(draw(found), options.figure)


if __name__ == "__main__":
    main()
