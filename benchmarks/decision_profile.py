"""Where the time of one `choose` and one `learn` goes: in compiled programs, and in the Python around them.

    python benchmarks/decision_profile.py [--rounds 1000] [--sizes 10x5 100x20 1000x20]

The first table is the price of calling a compiled program that does next to nothing.  The second has medians in
microseconds for each policy, with fixed arms and with arms that come as a table with every decision: the whole call,
and how much of it is spent in compiled programs, until their results are there.  The rest is Python.  Timing a program
adds half a microsecond or so to it.  With fixed arms `learn` makes the next decision, too, since the two take turns.
"""

import argparse
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from explorax import Agent, devices, make
from explorax.agent import compiled
from explorax.agent.ahead import PATIENCE
from explorax.policies.base import Policy

POLICIES = ("lin_ucb", "lin_ts", "glm_tsl", "glm_fpl")
# GLM policies remember the rows of a table unless their memory is constant; `agent_speed.py` plays them with that.
SHAPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("fixed arms", {}),
    ("a table", {}),
    ("a table", {"memory": "constant"}),
)
PROGRAMS = ("decision", "one_update", "update_and_decision")  # what `choose` and `learn` call
FIRST = 100  # rounds that compile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--sizes", nargs="+", default=["10x5", "100x20", "1000x20"], metavar="KxD")
    given = parser.parse_args()
    devices.decide_inline()
    print_calls(given.rounds)
    watch = Watch()
    print(f"\n{'microseconds':44s}{'choose':>8s}{'program':>9s}{'learn':>8s}{'program':>9s}{'Python in both':>16s}")
    for size in given.sizes:
        arms, features = map(int, size.split("x"))
        for shape, memory in SHAPES:
            for name in POLICIES:
                if memory and name.startswith("lin"):
                    continue  # linear policies have one memory
                policy = make(name, warmup="none", **memory)
                fixed = shape == "fixed arms"
                choose, its, learn, own = profile(policy, arms, features, fixed, given.rounds, watch)
                case = f"{name}, {arms} x {features}, {', '.join([shape, *memory.values()])}"
                print(f"{case:44s}{choose:8.1f}{its:9.1f}{learn:8.1f}{own:9.1f}{choose - its + learn - own:16.1f}")


class Watch:
    """Counts the seconds that agents spend in compiled programs."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for name in PROGRAMS:
            setattr(compiled, name, self.watched(getattr(compiled, name)))

    def watched(self, find: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that finds programs, whose calls are counted."""

        def found(*what: Any) -> Callable[..., Any]:
            program = find(*what)

            def timed(*arrays: Any) -> Any:
                start = time.perf_counter()
                result = jax.block_until_ready(program(*arrays))
                self.seconds += time.perf_counter() - start
                return result

            return timed

        return found

    def of(self, call: Callable[[], Any]) -> tuple[Any, float, float]:
        """Return the result of a call, its microseconds, and those that it spent in compiled programs."""
        self.seconds, start = 0.0, time.perf_counter()
        result = call()
        return result, 1e6 * (time.perf_counter() - start), 1e6 * self.seconds


def profile(policy: Policy, arms: int, features: int, fixed: bool, rounds: int, watch: Watch) -> np.ndarray:
    """Return medians for a policy: of `choose`, of its program, of `learn`, and of its program."""
    random = np.random.default_rng(0)
    table = random.uniform(-1, 1, (arms, features)) / np.sqrt(features)
    agent = Agent(policy, arms=table, draws=0) if fixed else Agent(policy, n_features=features, draws=0)
    offered = () if fixed else (table,)
    times, first = [], PATIENCE + FIRST if fixed else FIRST  # with fixed arms, until decisions are made ahead
    for number, reward in enumerate(random.integers(0, 2, first + rounds).tolist()):
        if number == first:
            for thread in threading.enumerate():
                if thread is not threading.current_thread():
                    thread.join()  # it compiles the program of decisions that are made ahead
        decision, choose, its = watch.of(partial(agent.choose, *offered))
        _, learn, own = watch.of(partial(agent.learn, decision.id, reward))
        times.append((choose, its, learn, own))
    return np.median(times[first:], axis=0)


def print_calls(rounds: int) -> None:
    """Print what calling a program costs that adds numbers of its arguments."""
    arrays = [jax.numpy.arange(5.0) + i for i in range(4)]
    cases: dict[str, list[Any]] = {
        "one array": arrays[:1],
        "four arrays": arrays,
        "one array and a whole number": [arrays[0], 3],
        "one array and a table of NumPy, 10 x 5": [arrays[0], np.ones((10, 5))],
    }
    print(f"{'calling a program with':44s}{'median':>8s}")
    for name, given in cases.items():
        program = jax.jit(lambda *each: sum(jax.numpy.ravel(one)[0] for one in each))
        times = []
        for _ in range(rounds + 100):
            start = time.perf_counter()
            program(*given).block_until_ready()
            times.append(1e6 * (time.perf_counter() - start))
        print(f"{name:44s}{np.median(times[100:]):8.1f}")


if __name__ == "__main__":
    main()
