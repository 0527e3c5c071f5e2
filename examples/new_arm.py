"""Add an arm while an agent runs, retire it, and put it back on offer.

    python examples/new_arm.py [--rounds 1200] [--seed 0] [--figure new_arm.png]

The arms are banners, and their features describe what is on them, so all banners share what is learned.  The new banner
has both a picture and a discount.  The agent has seen each of the two before, though never together, so the model has
an opinion of the new banner before it was ever shown, and shows it often from the start.  When the banner is retired
and restored, all that was learned about it is still there.
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
    """Return the true click rate of a banner, which the agent does not see."""
    return float(1 / (1 + np.exp(-np.dot(features, [-2.5, 1.0, 1.5, -0.8]))))


def draw(path: str, shown: list[str], names: list[str], changes: list[str]) -> None:
    """Draw the share of each banner over time, in blocks of decisions, with the changes on top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    rounds = len(shown)
    block = max(1, rounds // len(changes) // 12)
    starts = np.arange(0, rounds - block + 1, block)
    below = np.zeros(len(starts))
    for name, color in zip(names, ["#999999", "#E69F00", "#56B4E9", "#009E73", "#0072B2"], strict=True):
        shares = np.array([shown[start : start + block].count(name) / block for start in starts])
        axes.bar(starts, shares, block, below, align="edge", color=color, label=name)
        below += shares
    for number, change in enumerate(changes):
        start = number * rounds // len(changes)
        axes.axvline(start, color="black", linewidth=1)
        axes.annotate(f"both is {change}", (start, 1.02), annotation_clip=False)
    axes.set(xlabel="decision", ylabel=f"share of {block} decisions", xlim=(0, rounds), ylim=(0, 1))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(title="banner", frameon=False, loc="outside right center", reverse=True)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1200, help="number of decisions (default: 1200)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")
    parser.add_argument("--figure", metavar="FILE", help="also draw the share of each banner into this PNG file")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rates = {name: click_rate(row) for name, row in {**BANNERS, "both": BOTH}.items()}
    agent = Agent(glm_tsl(), arms=BANNERS, seed=options.seed)
    changes = {
        "absent": lambda: None,
        "added": lambda: agent.add_arm("both", BOTH),
        "retired": lambda: agent.retire_arm("both"),
        "restored": lambda: agent.restore_arm("both"),
    }
    print("share of decisions")
    print(f"{'both is':8s} " + " ".join(f"{name:>8s}" for name in rates) + f"   both in the first {FIRST}")
    shown: list[str] = []
    expected = []  # click rates of what was shown, of all that was on offer, and of the best
    for title, change in changes.items():
        change()
        start = len(shown)
        for _ in range(options.rounds // len(changes)):
            decision = agent.choose()
            agent.learn(decision.id, float(rng.random() < rates[decision.arm]))
            shown.append(decision.arm)
            offered = [rates[str(name)] for name, on_offer in agent.arms.items() if on_offer]
            expected.append((rates[decision.arm], float(np.mean(offered)), max(offered)))
        counts = Counter(shown[start:])
        shares = " ".join(f"{counts[name] / counts.total():8.0%}" for name in rates)
        print(f"{title:8s} {shares}   {shown[start : start + FIRST].count('both'):4d}")
    agents, random, best = np.mean(expected, axis=0)
    print(f"\nclicks per banner: {agents:.3f} with the agent, {random:.3f} at random, {best:.3f} at best")
    if options.figure:
        draw(options.figure, shown, list(rates), list(changes))


if __name__ == "__main__":
    main()
