"""Find the best price of a product from the units that are sold each hour and the profit that they bring.

    python examples/prices.py [--rounds 1000] [--seed 0] [--figure prices.png]

An agent maximizes the mean of its rewards, here the profit of an hour, margin × units sold, which is not a count.  The
Poisson family can be used all the same.  Its mean is e^{xᵀθ}, and if sales fall exponentially with the price p,

    profit = (p − cost) · units,    log E[profit] = log(p − cost) + a − b p,

which is linear in the features 1, p and log(p − cost).  A Poisson fit needs no more: it finds the mean of any rewards
that are 0 or more, if the mean has this form.  The Poisson family is for counts and refuses other rewards, so the
example makes a family of its own that accepts them.  The agent's uncertainty is right if the variance of a reward is
about its mean.  This holds for units, so profits are divided by the margin of a middle price, which makes them units of
that price.

Reference: Gourieroux, Monfort & Trognon, Pseudo maximum likelihood methods: applications to Poisson models, 1984.
"""

import argparse
from collections import Counter

import numpy as np

from explorax import Agent, families, glm_tsl

COST = 2.00
PRICES = [2.50, 3.00, 3.50, 4.00, 4.50, 5.00, 5.50, 6.00, 6.50, 7.00, 7.50, 8.00]
MIDDLE = 5.00
PROFITS = families.poisson._replace(name="quasi-poisson", rewards="0 or more", valid=lambda reward: reward >= 0)


def features(price: float) -> list[float]:
    """Return 1, p and log(p − cost), measured from the middle price."""
    return [1.0, price - MIDDLE, float(np.log((price - COST) / (MIDDLE - COST)))]


def expected_sales(price: float) -> float:
    """Return the true mean of units sold in an hour, which the agent does not see."""
    return 20 * float(np.exp(-0.5 * price))


def draw(path: str, hours: list[int], profits: list[float], estimates: np.ndarray) -> None:
    """Draw the profit of each price, as it is and as the agent estimates it, above the hours at each price."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    top, bottom = figure.subplots(2, sharex=True)
    top.plot(PRICES, profits, color="#666666", linewidth=1.5, label="true mean")
    top.plot(PRICES, estimates, "o", color="#0072B2", label="agent's estimate")
    top.set(ylabel="profit per hour", ylim=(0, None))
    top.legend(frameon=False, loc="lower right")
    bottom.bar(PRICES, hours, width=0.35, color="#0072B2")
    bottom.set(xlabel="price", ylabel="hours at this price", xticks=PRICES)
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000, help="number of hours (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")
    parser.add_argument("--figure", metavar="FILE", help="also draw profits and hours by price into this PNG file")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    arms = np.array([features(price) for price in PRICES])  # without names: an arm is the number of its row
    agent = Agent(glm_tsl(family=PROFITS), arms=arms, seed=options.seed)
    hours: Counter[int] = Counter()
    for _ in range(options.rounds):
        decision = agent.choose()
        price = PRICES[decision.arm]
        units = rng.poisson(expected_sales(price))
        agent.learn(decision.id, units * (price - COST) / (MIDDLE - COST))
        hours[decision.arm] += 1

    profits = [(price - COST) * expected_sales(price) for price in PRICES]
    estimates = (MIDDLE - COST) * np.exp(arms @ np.asarray(agent.state.theta_hat))
    print(f"{'price':>5s} {'hours':>6s} {'profit':>7s} {'estimate':>9s}")
    for arm, price in enumerate(PRICES):
        print(f"{price:5.2f} {hours[arm]:6d} {profits[arm]:7.2f} {estimates[arm]:9.2f}")
    earned = sum(profits[arm] * count for arm, count in hours.items()) / options.rounds
    random, best = np.mean(profits), max(profits)
    print(f"\nprofit per hour: {earned:.3f} with the agent, {random:.3f} at random, {best:.3f} at best")
    if options.figure:
        draw(options.figure, [hours[arm] for arm in range(len(PRICES))], profits, estimates)


if __name__ == "__main__":
    main()
