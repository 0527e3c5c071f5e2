"""Show articles to readers whose clicks come late, then estimate from the log what other rules would have earned.

    python examples/articles.py [--rounds 4000] [--seed 0] [--figure articles.png]

An article has a topic and an age, a reader a device and an age group, and has not read some of the articles yet.
Whether a reader clicked is known after up to 200 later decisions.  Some readers leave without any sign: after 200
decisions that counts as 0.

The log answers questions that were not asked at the time: what would another rule have earned?  Inverse propensity
weighting estimates it by the average of weight × reward, where the weight is 1/propensity if the rule would have shown
the same article, else 0.  Weights average to about 1 if the log has enough of what the rule does ("covered").  A rule
that is much worse than the agent is not covered: soon nobody was shown what the rule would show, and its estimate is
too low.  All decisions must have been random for this: with warmup="none" no article is forced at the start.
"""

import argparse
import heapq
import math
from typing import Any

import numpy as np

from explorax import Agent, Encoder, glm_tsl

ARTICLES: dict[str, dict[str, str | float]] = {
    "election night": {"topic": "politics", "hours": 2.0},
    "budget talks": {"topic": "politics", "hours": 30.0},
    "cup final": {"topic": "sports", "hours": 5.0},
    "transfer news": {"topic": "sports", "hours": 20.0},
    "new phone": {"topic": "tech", "hours": 10.0},
    "chip shortage": {"topic": "tech", "hours": 48.0},
}
FAVORITES = {"under 30": "tech", "30 to 60": "sports", "over 60": "politics"}
READERS = [{"device": device, "group": group} for device in ("mobile", "desktop") for group in FAVORITES]
UNREAD = 4  # articles that a reader has not read yet
LATEST, SILENT = 200, 0.2  # decisions until no click counts as 0; share of readers without a click who give no sign


def click_rate(name: str, reader: dict[str, str]) -> float:
    """Return the true click rate, which the agent does not see: groups have a favorite topic, and interest fades."""
    topic, hours = ARTICLES[name].values()
    mobile_sports = topic == "sports" and reader["device"] == "mobile"
    score = -1.8 - 0.03 * float(hours) + 1.2 * (topic == FAVORITES[reader["group"]]) + 0.5 * mobile_sports
    return 1 / (1 + math.exp(-score))


def newest(reader: dict[str, str], unread: list[str]) -> str:
    """Choose the newest article: a rule that the log is asked about."""
    return min(unread, key=lambda name: ARTICLES[name]["hours"])


def editors(reader: dict[str, str], unread: list[str]) -> str:
    """Choose the newest article about the favorite topic of the group: another rule that the log is asked about."""
    about = [name for name in unread if ARTICLES[name]["topic"] == FAVORITES[reader["group"]]]
    return newest(reader, about or unread)


def draw(path: str, curves: dict[str, np.ndarray]) -> None:
    """Draw click rates over time, each averaged over the readers just before."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    rounds = len(curves["agent"])
    window = max(1, rounds // 20)
    for (label, rates), color in zip(curves.items(), ["#0072B2", "#666666", "#009E73"], strict=True):
        smooth = np.convolve(rates, np.full(window, 1 / window), "valid")
        axes.plot(np.arange(window, rounds + 1), smooth, color=color, linewidth=2, label=label)
    axes.set(xlabel="reader", ylabel=f"click rate, mean of {window} readers", xlim=(0, rounds), ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside upper center", ncols=3)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4000, help="number of readers (default: 4000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")
    parser.add_argument("--figure", metavar="FILE", help="also draw the click rate over time into this PNG file")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    sample = [{**article, **reader} for article in ARTICLES.values() for reader in READERS]
    encoder = Encoder.fit(sample, interactions=[("topic", "group"), ("topic", "device")])
    policy = glm_tsl(memory="constant", warmup="none")
    agent = Agent(policy, arms=ARTICLES, encoder=encoder, seed=options.seed)
    log: list[Any] = []  # (reader, unread articles, the one shown, its propensity) of each decision
    rewards = np.zeros(options.rounds)
    coming: list[tuple[int, int, float]] = []  # rewards to come: when, for which decision, and how much
    for t in range(options.rounds + LATEST):
        while coming and coming[0][0] <= t:
            _, decision_id, reward = heapq.heappop(coming)
            agent.learn(decision_id, reward)
            rewards[decision_id] = reward
        if t < options.rounds:  # afterwards the last clicks come in
            reader = READERS[rng.integers(len(READERS))]
            unread = rng.choice(list(ARTICLES), UNREAD, replace=False).tolist()
            decision = agent.choose(reader, among=unread)
            log.append((reader, unread, decision.arm, decision.propensity))
            clicked = rng.random() < click_rate(decision.arm, reader)
            silent = not clicked and rng.random() < SILENT
            delay = LATEST if silent else int(rng.integers(1, LATEST))
            heapq.heappush(coming, (t + delay, decision.id, float(clicked)))

    rates = np.array([[click_rate(name, reader) for name in unread] for reader, unread, _, _ in log])
    shown_rates = np.array([click_rate(shown, reader) for reader, _, shown, _ in log])
    random, best = rates.mean(axis=1), rates.max(axis=1)
    averages = (shown_rates.mean(), random.mean(), best.mean())
    print("clicks per reader: {:.3f} with the agent, {:.3f} at random, {:.3f} at best\n".format(*averages))
    print(f"{'rule':10s} {'estimate':>9s} {'s.e.':>6s} {'covered':>8s} {'truth':>6s}")
    for rule in (editors, newest):
        weights = np.array([(shown == rule(reader, unread)) / chance for reader, unread, shown, chance in log])
        estimate, error = np.mean(weights * rewards), np.std(weights * rewards) / math.sqrt(options.rounds)
        truth = np.mean([click_rate(rule(reader, unread), reader) for reader, unread, _, _ in log])
        print(f"{rule.__name__:10s} {estimate:9.3f} {error:6.3f} {weights.mean():8.2f} {truth:6.3f}")
    if options.figure:
        draw(options.figure, {"agent": shown_rates, "at random": random, "best possible": best})


if __name__ == "__main__":
    main()
