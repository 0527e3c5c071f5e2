"""Articles for readers, with clicks that come late; and what other rules would have earned, from the log alone.

    python examples/articles.py [--rounds 4000] [--seed 0]

An article has a topic and an age, a reader a device and an age group, and has not read some of the articles yet.  That
a reader clicked, or left without, is known after up to 200 later decisions.  Of some who leave nothing is ever heard:
after 200 decisions that counts as 0.

The log answers questions that were not asked at the time.  What would another rule have earned?  By inverse propensity
weighting, the average of weight × reward, where the weight is 1/propensity if the rule would have shown the same
article, else 0.  Weights average to about 1 where the log has enough of what the rule does ("covered").  A rule that is
much worse than the agent is not covered: soon nobody was shown what it would show, and its estimate is too low.  All
decisions must have been random for this: with warmup="none" no article is forced at the start.
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
FAVOURITES = {"under 30": "tech", "30 to 60": "sports", "over 60": "politics"}
READERS = [{"device": device, "group": group} for device in ("mobile", "desktop") for group in FAVOURITES]
UNREAD = 4  # of the articles, at a time
LATEST, SILENT = 200, 0.2  # decisions that one waits for an answer; and how many of those who leave give none


def click_rate(name: str, reader: dict[str, str]) -> float:
    """The truth, which the agent does not see: each group has a favourite topic, and interest fades."""
    topic, hours = ARTICLES[name].values()
    mobile_sports = topic == "sports" and reader["device"] == "mobile"
    score = -1.8 - 0.03 * float(hours) + 1.2 * (topic == FAVOURITES[reader["group"]]) + 0.5 * mobile_sports
    return 1 / (1 + math.exp(-score))


def newest(reader: dict[str, str], unread: list[str]) -> str:
    """The newest article: a rule that the log is asked about."""
    return min(unread, key=lambda name: ARTICLES[name]["hours"])


def editors(reader: dict[str, str], unread: list[str]) -> str:
    """Another one: the favourite topic of the group first, and the newest about it."""
    about = [name for name in unread if ARTICLES[name]["topic"] == FAVOURITES[reader["group"]]]
    return newest(reader, about or unread)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    sample = [{**article, **reader} for article in ARTICLES.values() for reader in READERS]
    encoder = Encoder.fit(sample, interactions=[("topic", "group"), ("topic", "device")])
    policy = glm_tsl(memory="constant", warmup="none")
    agent = Agent(policy, arms=ARTICLES, encoder=encoder, seed=options.seed)
    log: list[Any] = []  # (reader, unread articles, the one shown, its propensity) of each decision
    rewards = np.zeros(options.rounds)
    coming: list[tuple[int, int, float]] = []  # when, for which decision, and what; the soonest first
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
    agents = np.mean([click_rate(shown, reader) for reader, _, shown, _ in log])
    random, best = rates.mean(), rates.max(axis=1).mean()
    print(f"clicks per reader: {agents:.3f} with the agent, {random:.3f} at random, {best:.3f} at best\n")
    print(f"{'rule':10s} {'estimate':>9s} {'s.e.':>6s} {'covered':>8s} {'truth':>6s}")
    for rule in (editors, newest):
        weights = np.array([(shown == rule(reader, unread)) / chance for reader, unread, shown, chance in log])
        estimate, error = np.mean(weights * rewards), np.std(weights * rewards) / math.sqrt(options.rounds)
        truth = np.mean([click_rate(rule(reader, unread), reader) for reader, unread, _, _ in log])
        print(f"{rule.__name__:10s} {estimate:9.3f} {error:6.3f} {weights.mean():8.2f} {truth:6.3f}")


if __name__ == "__main__":
    main()
