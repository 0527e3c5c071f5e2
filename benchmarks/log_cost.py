"""What a log costs: one `choose` and one `learn` of an agent with a log, next to the same without one, in one run.

    python benchmarks/log_cost.py [--repeats 9] [--rounds 1000] [--folder DIR]

An agent without a log and one for each durability play the same rounds in turn, `--repeats` times `--rounds` of them,
with K = 100 fixed arms and d = 20 features on one core; agents decide ahead by then, which is the fastest that they
can.  The table has medians over the repeats of the time by the clock and of processor time, in microseconds, and the
ratio of both to the agent without a log in the same repeat: its median, least and most.  The last line is the time of
writing two such rows, a decision and its reward, without an agent.  `--folder` is where the logs are written, by
default a temporary one: what durability "power" costs by the clock is a matter of its disk.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

ARMS, FEATURES, WARMUP = 100, 20, 6000  # rounds before those that count: agents decide ahead after 5000
POLICIES = ("lin_ts", "glm_tsl", "glm_fpl")
LOGS = {"no log": None, "process": "process", "power": "power"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"{'choose + learn':15} {'log':10} {'clock':>9}  ratio to no log      {'processor':>9}  ratio to no log")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for policy in POLICIES:
            compare(policy, Path(folder), options.repeats, options.rounds)
        rows_alone(Path(folder), options.repeats, options.rounds)


def compare(policy: str, folder: Path, repeats: int, rounds: int) -> None:
    """Let agents of one policy play in turn, and print their times."""
    from explorax import Agent, devices, make

    devices.decide_inline()
    rng = np.random.default_rng(0)
    table, rewards = rng.uniform(-1, 1, (ARMS, FEATURES)), rng.integers(0, 2, WARMUP + rounds).astype(float).tolist()

    def agent_with(durability: str | None) -> Agent:
        if durability is None:
            return Agent(make(policy), arms=table, draws=0)
        return Agent(make(policy), arms=table, draws=0, log=folder / f"{policy}-{durability}.db", durability=durability)

    def play(agent: Agent, count: int) -> tuple[float, float]:
        began, used = time.perf_counter(), time.process_time()
        for reward in rewards[:count]:
            agent.learn(agent.choose().id, reward)
        return (time.perf_counter() - began) / count * 1e6, (time.process_time() - used) / count * 1e6

    agents = {name: agent_with(durability) for name, durability in LOGS.items()}
    for agent in agents.values():
        play(agent, WARMUP)
    time.sleep(5)  # a thread compiles the program that decides ahead
    for agent in agents.values():
        play(agent, rounds)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in agents}
    for _ in range(repeats):
        for name, agent in agents.items():
            found[name].append(play(agent, rounds))
    for name, times in found.items():
        columns = []
        for own, plain in zip(np.transpose(times), np.transpose(found["no log"]), strict=True):
            ratios = own / plain
            spread = f"{np.median(ratios):.2f} ({ratios.min():.2f}-{ratios.max():.2f})"
            columns.append(f"{np.median(own):9.1f}  {spread:20}")
        print(f"{policy:15} {name:10} {' '.join(columns)}", flush=True)
    for agent in agents.values():
        agent.close()


def rows_alone(folder: Path, repeats: int, rounds: int) -> None:
    """Print the time of writing a decision and its reward."""
    from explorax.log import writer

    features, times = np.random.default_rng(0).uniform(-1, 1, FEATURES).tobytes(), []
    rest = (features, None, None, False, True, False, None, None, None, None)
    to = writer.create(folder / "rows.db", {}, 0.0, b"", "process")
    for repeat in range(repeats):
        began = time.perf_counter()
        for i in range(repeat * rounds, (repeat + 1) * rounds):
            decided, rewarded, moment = 2 * i + 1, 2 * i + 2, 0.1 * i
            decision = (i, decided, moment, i, i, 2 * i, i % ARMS, i % ARMS, *rest)
            to.write([(writer.DECISION, [decision])], decided)
            to.write([(writer.REWARD, [(i, rewarded, moment, rewarded, 1.0, 0)])], rewarded)
        times.append((time.perf_counter() - began) / rounds * 1e6)
    to.close()
    print(f"both rows alone, durability process: {np.median(times):.1f} ({min(times):.1f}-{max(times):.1f})")


if __name__ == "__main__":
    main()
