"""Processes that are killed while they decide and learn: is all in the log that they had answered?

    python benchmarks/log_kills.py [--kills 100] [--lives 10] [--most 400] [--seed 0]

Each time a new process recovers the log (or begins it) and checks it.  Then three threads choose and learn as fast as
they can, and print every decision when `choose` has returned it, and every reward when `learn` has returned.  After a
number of these lines that is drawn at random the process is killed (SIGKILL), in the middle of whatever it does.  The
next one checks:

    decisions   each that was printed is there, once, and those that come next have ids that nobody has had
    rewards     each that was printed is there, once, with this value
    order       the rows are numbered from 1 on, without gaps
    state       it is a fold of the policy's update over the rewards in the log, to the bit

Half of the logs are of agents with a reward window and a default reward, a quarter of agents whose arms come with the
decision, and few decisions may wait.  After `--lives` kills another log is begun.  At the end there is a line of
counts; the exit status is 1 if anything was wrong.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

KINDS = (("glm_tsl", False, False), ("glm_tsl", False, True), ("lin_ts", False, False), ("lin_ts", True, True))
ROWS = np.random.default_rng(0).uniform(-1, 1, (8, 3))
Counts = dict[str, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lives", type=int, default=10, help="kills in a row with the same log")
    parser.add_argument("--most", type=int, default=400, help="lines after which a process is killed, at most")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", f"{folder}/programs")  # compiled once for all processes
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
        counts, wrong = kill_all(Path(folder), options.kills, options.lives, options.most, options.seed)
    print(", ".join(f"{count} {what}" for what, count in counts.items()) + f"; {len(wrong)} wrong", flush=True)
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


def kill_all(folder: Path, kills: int, lives: int, most: int, seed: int) -> tuple[Counts, list[str]]:
    """Kill that many processes; return counts, and a line for each thing that was wrong."""
    drawn, wrong = random.Random(seed), list[str]()
    counts = dict.fromkeys(("kills", "logs", "decisions", "rewards", "decisions not returned", "rewards not told"), 0)
    for log in range(-(-kills // lives)):
        path, kind = folder / f"{log}.db", log % len(KINDS)
        decided, learned = list[int](), dict[int, float]()
        killed = min(lives, kills - log * lives)
        for life in range(killed + 1):  # the last one only checks
            lines = kill(path, kind, drawn.randint(1, most) if life < killed else 0)
            wrong += [f"log {log}, life {life}: {each}" for each in lines[0][1]]
            decided += [each for what, each, *_ in lines if what == "decided"]
            learned |= {each: reward for what, each, reward in (line for line in lines if line[0] == "learned")}
            wrong += [f"log {log}, life {life}: {each}" for each in missing(path, decided, learned)]
        there = (count(path, "decisions"), count(path, "rewards WHERE NOT by_default"))
        new = (killed, 1, len(decided), len(learned), there[0] - len(decided), there[1] - len(learned))
        counts = {what: known + more for (what, known), more in zip(counts.items(), new, strict=True)}
    return counts, wrong


def kill(path: Path, kind: int, after: int) -> list[list[Any]]:
    """Let a process check a log and play, and kill it after some lines about that; return all that it has printed."""
    command = [sys.executable, __file__, "play", str(path), str(kind)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1 + after)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()  # what it had told before it ended
    if process.returncode != -signal.SIGKILL:
        raise SystemExit(f"A process ended by itself, with exit status {process.returncode}.")
    return [json.loads(line) for line in lines if line.endswith("\n")]


def missing(path: Path, decided: list[int], learned: dict[int, float]) -> list[str]:
    """Return what was told, and is not in the log as it was told."""
    there = {each for (each,) in read(path, "SELECT id FROM decisions")}
    found = dict(read(path, "SELECT decision, reward FROM rewards WHERE NOT by_default"))
    lines = [f"decision {each} was returned and is not in the log" for each in set(decided) - there]
    lines += [] if len(set(decided)) == len(decided) else ["an id was given out twice"]
    differing = [(each, reward) for each, reward in learned.items() if found.get(each) != reward]
    return lines + [
        f"reward {reward} of {each} was learned, and the log has {found.get(each)}" for each, reward in differing
    ]


def read(path: Path, what: str) -> list[Any]:
    """Return what a reader finds in a log."""
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(what).fetchall()


def count(path: Path, what: str) -> int:
    """Return the number of rows of a table."""
    return int(read(path, f"SELECT count(*) FROM {what}")[0][0])


# In the processes


def agent_of(path: Path, kind: int) -> Any:
    """Return the agent of a log, which is begun if it is not there."""
    from explorax import Agent, make
    from explorax.agent import recording

    recording.SNAPSHOT_EVERY = 100
    policy, changing, window = KINDS[kind]
    if path.exists():
        return Agent.recover(path)
    own: dict[str, Any] = {"n_features": 3} if changing else {"arms": ROWS}
    timed: dict[str, Any] = {"reward_window": 0.02, "default_reward": 0.0} if window else {}
    return Agent(make(policy), **own, **timed, draws=2, max_pending=12, log=path)


def play(path: Path, kind: int) -> None:
    """Choose and learn in three threads, and tell of it, until the process is killed."""
    from explorax import errors

    given = ROWS if KINDS[kind][1] else None
    agent, wrong = checked(path, kind)

    def tell(*values: Any) -> None:
        os.write(1, (json.dumps(values) + "\n").encode())  # at once, and whole

    tell("checked", wrong)

    def one(number: int) -> None:
        drawn = random.Random(number)
        while True:
            if drawn.random() < 0.2:
                ids = agent.choose_many(2 if given is None else [given] * 2).ids
            else:
                ids = [agent.choose(given).id]
            for each in ids:
                tell("decided", each)
            wanted = [each for each in drawn.sample(agent.pending, min(len(agent.pending), 2)) if drawn.random() < 0.7]
            rewards = [float(drawn.randrange(2)) for _ in wanted]
            try:
                agent.learn(wanted, rewards)
            except errors.UnknownDecision:  # dropped, late, or another thread was faster
                continue
            for each, reward in zip(wanted, rewards, strict=True):
                tell("learned", each, reward)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def checked(path: Path, kind: int) -> tuple[Any, list[str]]:
    """Return the agent of a log, and what is wrong there: the state must be a fold of the log's rows."""
    new = not path.exists()
    agent, wrong = agent_of(path, kind), []
    tables = () if new else ("decisions", "rewards", "events")
    numbers = [each for table in tables for (each,) in read(path, f"SELECT seq FROM {table}")]
    if sorted(numbers) != list(range(1, len(numbers) + 1)):
        wrong.append("rows are not numbered from 1 on")
    if not same(agent.state, folded(agent, path, KINDS[kind])):
        wrong.append("the state is not a fold of the rewards")
    return agent, wrong


def folded(agent: Any, path: Path, kind: tuple[str, bool, bool]) -> Any:
    """Return the state after the rewards in a log, learned one after the other by the program that agents use.

    Another program of the same function may round otherwise, as with JAX 0.9 it does.
    """
    import jax

    from explorax import make
    from explorax.agent import compiled
    from explorax.agent.packing import Packed
    from explorax.agent.pulled import Pulled

    name, _, windowed = kind
    rows = {each: (row, features) for each, row, features in read(path, "SELECT id, row, features FROM decisions")}
    order = read(path, "SELECT decision, reward FROM rewards ORDER BY seq")
    if windowed:  # they are learned in the order of the decisions, when their windows are closed or they are dropped
        values = dict(order)
        ends = read(path, "SELECT decision FROM events WHERE kind = 'closed' ORDER BY seq DESC LIMIT 1")
        last = ends[0][0] if ends else -1
        until = dict(read(path, "SELECT id, seq FROM decisions"))
        dropped = {each for (each,) in read(path, "SELECT decision FROM events WHERE kind = 'dropped'")}
        over = [each for each in values if each not in dropped and until[each] <= until.get(last, -1)]
        order = [(each, values[each]) for each in sorted(over, key=lambda each: until[each])]
    with jax.enable_x64(True):
        policy = make(name)
        packed = Packed.of(agent._live.decider.nothing_seen(policy, agent._live.now.arms))
        for decision, reward in order:
            row, features = rows[decision]
            pulled = Pulled.of(np.array([row]), np.frombuffer(features)[None])
            packed = compiled.learn(policy.update, packed, pulled.paid(reward))
        return packed.state()


def same(one: Any, other: Any) -> bool:
    """Tell whether two states are equal to the bit."""
    import jax

    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


if __name__ == "__main__":
    if sys.argv[1:2] == ["play"]:
        play(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
