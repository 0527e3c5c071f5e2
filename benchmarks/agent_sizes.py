"""What agents cost at other sizes: in contexts, with arms that come and go, with many arms, and many agents.

    python benchmarks/agent_sizes.py [--against REV] [--cases contexts changes …]

    contexts    a decision on K named arms in a context, over one on K fixed arms with the same number of features
    changes     `add_arm`, `retire_arm`, `restore_arm` and `update_arm`: processor time and compilations
    retired     a decision among 20 arms after 500 others came and went, over one before
    shapes      compilations for tables, lists and batches of 24 different sizes
    memory      a decision with the default memory of changing arms after 30 rewards, over memory="refitted"
    many        the first decision among 150 000 arms, with its propensity
    agents      300 agents of all policies, alive at once: their compilations, and the memory maps of the process

Each case is a process of its own.  Times are processor times in milliseconds; ratios are those of two agents that take
turns.  With `--against` the cases are also played by another revision, in the next column.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from digests import ROOT, SMALL, extract

Found = Iterator[tuple[str, float]]
TURNS, DECISIONS = 9, 100
COMPILED: list[str] = []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REV", help="a revision to compare with, such as HEAD~1")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES, metavar="CASE")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(dict(measured(options.one))))
        return
    with tempfile.TemporaryDirectory() as folder:
        roots = [ROOT]
        if options.against:
            extract(options.against, folder)
            roots.append(Path(folder))
        print(f"{'':<78} {'here':>10}" + f" {'there':>10}" * (len(roots) - 1))
        for case in options.cases:
            here, *there = (played(root, case) for root in roots)
            for name, value in here.items():
                others = "".join(f" {each.get(name, float('nan')):10.4g}" for each in there)
                print(f"{name:<78} {value:10.4g}{others}", flush=True)


def played(root: Path, case: str) -> dict[str, float]:
    """Return what a process of its own measures with the source in that folder."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, __file__, "--one", case]
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if ended.returncode:
        return {f"{case}: the process ended with status": float(ended.returncode)}
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def measured(case: str) -> Found:
    """Yield what a case measures, in this process."""
    from explorax import devices

    devices.decide_inline()
    import jax

    def hear(event: str, duration_secs: float, **about: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            COMPILED.append(event)

    jax.monitoring.register_event_duration_secs_listener(hear)
    return CASES[case]()


def took(work: Callable[[], object]) -> tuple[float, int]:
    """Return the milliseconds of processor time that some work took, and the number of compilations."""
    compiled, begun = len(COMPILED), time.process_time()
    work()
    return 1e3 * (time.process_time() - begun), len(COMPILED) - compiled


def ratio(one: Callable[[], object], other: Callable[[], object], times: int = DECISIONS) -> tuple[float, float]:
    """Return the milliseconds that `one` takes and their ratio to those of `other`, medians over turns."""

    def repeated(work: Callable[[], object]) -> float:
        return took(lambda: [work() for _ in range(times)])[0] / times

    for work in (one, other):  # compiles
        work()
    found = [(repeated(one), repeated(other)) for _ in range(TURNS)]
    return statistics.median(mine for mine, _ in found), statistics.median(mine / its for mine, its in found)


# Agents that are compared


def sample(count: int) -> tuple[Any, dict[str, dict[str, Any]], dict[str, Any]]:
    """Return an encoder of 20 features, the attributes of `count` arms by name, and a context."""
    from explorax import Encoder

    random = np.random.default_rng(0)
    attributes = {
        f"arm {i}": {"topic": f"topic {i % 6}", "price": float(random.normal()), "new": bool(i % 2)}
        for i in range(count)
    }
    context = {"device": "phone", "age": 40.0, "hour": 7.0}
    rows = [
        {**each, "device": ("phone", "desk", "tablet")[i % 3], "age": 20.0 + i % 50, "hour": float(i % 24)}
        for i, each in enumerate([*attributes.values()] * 3)
    ]
    return Encoder.fit(rows, interactions=[("price", "device"), ("age", "new")]), attributes, context


def in_context(policy: str, count: int) -> tuple[Any, dict[str, Any]]:
    """Return an agent with named arms in a context, and a context."""
    import explorax

    encoder, attributes, context = sample(count)
    return explorax.Agent(explorax.make(policy), arms=attributes, encoder=encoder, draws=0), context


def fixed(policy: str, count: int, features: int = 20) -> Any:
    """Return an agent with fixed arms."""
    import explorax

    arms = np.random.default_rng(0).uniform(-1, 1, (count, features))
    named = {f"arm {i}": row for i, row in enumerate(arms)}
    return explorax.Agent(explorax.make(policy), arms=named, draws=0)


def paid(agent: Any, rewards: int, *given: Any) -> object:
    """Let an agent decide, and pay it, a number of times."""
    for t in range(rewards):
        agent.learn(agent.choose(*given).id, float(t % 2))
    return agent


# Cases


def contexts() -> Found:
    for policy in ("lin_ts", "glm_tsl", "glm_fpl"):
        for count in (20, 200):
            agent, context = in_context(policy, count)
            plain = fixed(policy, count, agent.n_features)
            paid(agent, 30, context)
            paid(plain, 30)
            spent, times = ratio(partial(agent.choose, context), plain.choose)
            yield f"contexts: {policy}, {count} arms, {agent.n_features} features, ms", spent
            yield f"contexts: {policy}, {count} arms, over fixed arms", times


def changes() -> Found:
    for policy in ("lin_ts", "glm_tsl", "ucb_glm"):
        for kind in ("fixed", "context"):
            (_, first), (second, _) = changed(policy, kind), changed(policy, kind)
            for what, compiled in first.items():
                yield f"changes: {policy}, {kind}, {what}, compilations for 200 arms", compiled
            for what, spent in second.items():  # all is compiled by now
                yield f"changes: {policy}, {kind}, {what}, ms each of 200 arms", spent / 200


def changed(policy: str, kind: str) -> tuple[dict[str, float], dict[str, int]]:
    """Return the milliseconds and the compilations of each change of 200 arms of an agent."""
    agent = fixed(policy, 20)
    given: list[Any] = []
    more: dict[str, Any] = {f"new {i}": np.full(20, i / 100) for i in range(200)}
    if kind == "context":
        agent, *given = in_context(policy, 20)
        more = {f"new {name}": each for name, each in sample(200)[1].items()}
    paid(agent, 3, *given)
    agent.add_arm("before", more["new 0" if kind == "fixed" else "new arm 0"])
    found = {
        "add_arm": took(lambda: [agent.add_arm(name, each) for name, each in more.items()]),
        "retire_arm": took(lambda: [agent.retire_arm(name) for name in more]),
        "restore_arm": took(lambda: [agent.restore_arm(name) for name in more]),
        "update_arm": took(lambda: [agent.update_arm(name, each) for name, each in more.items()]),
    }
    return {what: spent for what, (spent, _) in found.items()}, {what: count for what, (_, count) in found.items()}


def retired() -> Found:
    for policy in ("lin_ts", "glm_tsl"):
        for kind in ("fixed", "context"):
            for rewarded in (False, True):
                agent, before = fixed(policy, 20), fixed(policy, 20)
                given: list[Any] = []
                more: dict[str, Any] = {f"arm {i}": np.full(20, i / 500) for i in range(500)}
                if kind == "context":
                    (agent, *given), (before, _), more = in_context(policy, 20), in_context(policy, 20), sample(500)[1]
                for name, each in more.items():
                    agent.add_arm(f"new {name}", each)
                    if rewarded:
                        agent.learn(agent.choose(*given, among=[f"new {name}"]).id, 1.0)
                    agent.retire_arm(f"new {name}")
                _, times = ratio(partial(agent.choose, *given), partial(before.choose, *given))
                told = "each with a reward" if rewarded else "without rewards"
                yield f"retired: {policy}, {kind}, after 500 arms {told}, over before", times


def shapes() -> Found:
    import explorax

    sizes = range(5, 29)
    rows = np.random.default_rng(0).uniform(-1, 1, (64, 28, 5))
    agent = explorax.Agent(explorax.make("lin_ts"), n_features=5)
    tries: dict[str, Callable[[int], Any]] = {
        "choose(table)": lambda size: agent.choose(rows[0, :size]),
        "choose_many(3-D array), numbers of arms": lambda size: agent.choose_many(rows[:16, :size]),
        "choose_many(3-D array), numbers of decisions": lambda size: agent.choose_many(rows[:size]),
        "choose_many(list)": lambda size: agent.choose_many([rows[i, : 5 + i % 2] for i in range(size)]),
        "propensities(table)": lambda size: agent.propensities(rows[0, :size]),
        "learn(list)": lambda size: agent.learn(agent.choose_many(rows[:size]).ids, [1.0] * size),
    }
    own = fixed("lin_ts", 28, 5)
    names = list(own.arms)
    tries |= {
        "choose(among=)": lambda size: own.choose(among=names[:size]),
        "choose_many(number)": lambda size: own.choose_many(size),
    }
    for what, work in tries.items():
        _, compiled = took(partial(list, map(work, sizes)))
        yield f"shapes: {what}, compilations for 24 sizes from 5 to 28", compiled


def memory() -> Found:
    import explorax

    for policy in ("glm_tsl", "glm_fpl", "ucb_glm"):
        for features in (5, 25):
            table = np.random.default_rng(0).uniform(-1, 1, (20, features))
            exact, refitted = (
                explorax.Agent(explorax.make(policy, memory=kind), n_features=features, draws=0)
                for kind in ("exact", "refitted")
            )
            for agent in (exact, refitted):
                paid(agent, 30, table)
            spent, times = ratio(partial(paid, exact, 1, table), partial(paid, refitted, 1, table), times=20)
            yield f"memory: {policy}, {features} features, choose and learn, ms", spent
            yield f"memory: {policy}, {features} features, choose and learn, over refitted", times


def decided(policy: str, settings: dict[str, Any], *given: Any) -> None:
    """Make an agent, and its first decision."""
    import explorax

    explorax.Agent(explorax.make(policy), **settings).choose(*given)


def many() -> Found:
    arms = np.random.default_rng(0).uniform(-1, 1, (150_000, 20))
    for policy in ("lin_ts", "glm_tsl", "glm_fpl"):
        spent, _ = took(partial(decided, policy, {"arms": arms}))
        yield f"many: {policy}, first decision among 150 000 fixed arms, s", spent / 1e3
        spent, _ = took(partial(decided, policy, {"n_features": 20}, arms))
        yield f"many: {policy}, first decision on a table of 150 000 arms, s", spent / 1e3


def agents() -> Found:
    import explorax
    from explorax.builders import setting_names
    from explorax.registry import ENTRIES

    random = np.random.default_rng(0)
    alive: list[tuple[Any, tuple[Any, ...]]] = []

    def make(number: int) -> object:
        entry = ENTRIES[number % len(ENTRIES)]
        settings = {name: value for name, value in SMALL.items() if name in setting_names(entry.builder())}
        settings |= {"horizon": 1000} if "horizon" in setting_names(entry.builder()) else {}
        arms = random.uniform(-1, 1, (10, 3))
        of_its_own: bool = number // len(ENTRIES) % 2 == 1
        kind: dict[str, Any] = {"arms": arms} if of_its_own else {"n_features": 3}
        alive.append(
            (explorax.Agent(explorax.make(entry.name, **settings), **kind, draws=0), () if of_its_own else (arms,))
        )
        return paid(alive[-1][0], 2, *alive[-1][1])

    spent, compiled = took(lambda: [make(number) for number in range(300)])
    yield "agents: 300 agents of all policies, s", spent / 1e3
    yield "agents: compilations", compiled
    _, compiled = took(lambda: [paid(agent, 1, *given) for agent, given in alive])
    yield "agents: compilations when all of them decide again", compiled
    yield "agents: memory maps", Path("/proc/self/maps").read_bytes().count(b"\n")


CASES: dict[str, Callable[[], Found]] = {
    each.__name__: each for each in (contexts, changes, retired, shapes, memory, many, agents)
}

if __name__ == "__main__":
    main()
