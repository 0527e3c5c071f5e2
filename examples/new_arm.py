"""Arms that come and go: one is added, retired, and returned.

    python examples/new_arm.py [--rounds 1200] [--seed 0]

The arms are banners, and their features say what is on them, so that all share what is learned.  A banner with both a
picture and a discount is new.  Each was seen before, though never together, so the model has an opinion of the new
banner before it was ever shown, and it is shown often from the start.  When it is retired and returned, all that was
learned about it is still there.
"""

import argparse
from collections import Counter

import numpy as np

from explorax import Agent, glm_tsl

BANNERS = {  # a constant, picture, discount, long text
    "plain": [1.0, 0.0, 0.0, 0.0],
    "wordy": [1.0, 0.0, 0.0, 1.0],
    "picture": [1.0, 1.0, 0.0, 0.0],
    "discount": [1.0, 0.0, 1.0, 0.0],
}
BOTH = [1.0, 1.0, 1.0, 0.0]
FIRST = 20  # decisions after each change that are looked at


def click_rate(features: list[float]) -> float:
    """The truth, which the agent does not see."""
    return float(1 / (1 + np.exp(-np.dot(features, [-2.5, 1.0, 1.5, -0.8]))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rates = {name: click_rate(row) for name, row in {**BANNERS, "both": BOTH}.items()}
    agent = Agent(glm_tsl(), arms=BANNERS, seed=options.seed)
    changes = {
        "at first": lambda: None,
        "added": lambda: agent.add_arm("both", BOTH),
        "retired": lambda: agent.retire_arm("both"),
        "returned": lambda: agent.restore_arm("both"),
    }
    print("share of decisions")
    print(f"{'both is':8s} " + " ".join(f"{name:>8s}" for name in rates) + f"   both in the first {FIRST}")
    expected = []  # click rates of what was shown, of all that was on offer, and of the best
    for title, change in changes.items():
        change()
        shown = []
        for _ in range(options.rounds // len(changes)):
            decision = agent.choose()
            agent.learn(decision.id, float(rng.random() < rates[decision.arm]))
            shown.append(decision.arm)
            offered = [rates[str(name)] for name, on_offer in agent.arms.items() if on_offer]
            expected.append((rates[decision.arm], float(np.mean(offered)), max(offered)))
        counts = Counter(shown)
        shares = " ".join(f"{counts[name] / len(shown):8.0%}" for name in rates)
        print(f"{title:8s} {shares}   {shown[:FIRST].count('both'):4d}")
    agents, random, best = np.mean(expected, axis=0)
    print(f"\nclicks per banner: {agents:.3f} with the agent, {random:.3f} at random, {best:.3f} at best")


if __name__ == "__main__":
    main()
