"""The arms that every policy pulls, as digests, here and in another revision: has a change of the code changed them?

    python benchmarks/digests.py [--against REV] [--policies glm_tsl lin_ts …] [--rounds 150] [--instances 3]

Every policy plays with fixed arms and with arms that change; some (`THOROUGH`) in every family that they model and with
each kind of memory, forgetting and design.  Agents decide and learn with late rewards.  A digest is a hash of all arms
pulled, on a CPU with fixed seeds.  Last bits differ between processors and versions of JAX, and after enough rounds
arms do too.  So digests are no constants to be kept: with `--against` both revisions play here, one after the other,
and the exit status is 1 if a case that both know has changed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = {"bernoulli": "logistic", "gaussian": "gaussian", "poisson": "poisson"}
# What makes networks small and programs quick to compile; given to policies that take it.
SMALL = {"hidden": (5,), "batch": 4, "capacity": 1000, "when_full": "forget"}
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "constant": {"memory": "constant"},
    "refitted": {"memory": "refitted"},
    "discount": {"discount": 0.98},
    "window": {"window": 40},
    "theory": {"design": "theory"},
}
THOROUGH = ("glm_tsl", "glm_fpl", "ucb_glm", "lin_ts")
# Compiling is what takes time here.
QUICK = "--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"
SEED = 7


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REV", help="a revision to compare with, such as HEAD~1")
    parser.add_argument("--policies", nargs="+", help="all unless given")
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print a JSON object in place of a table")
    options = parser.parse_args()
    found = dict(digests(options))
    if options.against is None:
        print(json.dumps(found) if options.json else "\n".join(f"{case:<50} {one}" for case, one in found.items()))
        return 0
    return compared(found, elsewhere(options.against, sys.argv[1:]))


def digests(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the digest of each case by its name."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    from explorax import devices, registry

    os.environ["XLA_FLAGS"] = devices.with_flags(*QUICK) if hasattr(devices, "with_flags") else " ".join(QUICK)
    for entry in registry.ENTRIES:
        if options.policies is None or entry.name in options.policies:
            print(entry.name, file=sys.stderr, flush=True)
            thorough = entry.name in THOROUGH
            for family in entry.families if thorough else entry.families[:1]:
                for arms_change in (False, True):
                    for variant in VARIANTS if thorough and family == entry.families[0] else ("",):
                        name = "/".join(filter(None, (entry.name, family, ("fixed", "change")[arms_change], variant)))
                        if (digest := played(entry, family, arms_change, variant, options)) is not None:
                            yield name, digest
            yield f"{entry.name}/agent", agent(entry)


def settings_of(entry: Any, family: str, variant: str, rounds: int) -> dict[str, Any] | None:
    """Return the settings of a policy, or None where it does not take the variant."""
    from explorax.builders import setting_names

    taken = setting_names(entry.builder())
    wanted = VARIANTS[variant]
    if any(name not in taken for name in wanted) or wanted.get("design", "informal") not in (
        "informal",
        *entry.designs,
    ):
        return None
    more = {"horizon": rounds} if "design" in wanted or entry.name == "rep_glm_fpl" else {}
    return {name: value for name, value in (SMALL | {"family": family} | more).items() if name in taken} | wanted


def played(entry: Any, family: str, arms_change: bool, variant: str, options: argparse.Namespace) -> str | None:
    """Return the digest of the arms that a policy pulls in a simulation."""
    import explorax
    from explorax import environments, errors

    settings = settings_of(entry, family, variant, options.rounds)
    if settings is None:
        return None
    world = environments.make(ENVIRONMENTS[family], n_features=3, n_arms=10, arms_change=arms_change)
    try:
        records = explorax.simulate(
            explorax.make(entry.name, **settings),
            world,
            rounds=options.rounds,
            instances=options.instances,
            seed=SEED,
            checkpoints=1,
        )
    except errors.InvalidArgument as error:  # such as a theory that does not cover the family
        return f"refused: {type(error).__name__}"
    return "-".join(f"{one:08x}" for one in records.digest)


def agent(entry: Any) -> str:
    """Return the digest of an agent's decisions, each paid three decisions later."""
    import hashlib

    import numpy as np

    import explorax

    settings = settings_of(entry, entry.families[0], "", 60) or {}
    arms = np.random.default_rng(SEED).uniform(-1, 1, (6, 3))
    shell = explorax.Agent(explorax.make(entry.name, **settings), arms=arms, seed=SEED, draws=0)
    made: list[Any] = []
    for t in range(60):
        made.append(shell.choose())
        if t >= 3:
            shell.learn(made[t - 3].id, float((made[t - 3].row + t) % 2))
    return hashlib.sha256(bytes(one.row for one in made)).hexdigest()[:16]


def elsewhere(revision: str, arguments: list[str]) -> dict[str, str]:
    """Return the digests of another revision, played by its own copy of this program where it has one."""
    at = arguments.index("--against")
    arguments = [*arguments[:at], *arguments[at + 2 :], "--json"]
    with tempfile.TemporaryDirectory() as folder:
        extract(revision, folder)
        own = Path(folder) / "benchmarks" / Path(__file__).name
        program = own if own.exists() else Path(__file__)
        environment = os.environ | {"PYTHONPATH": str(Path(folder) / "src")}
        command = [sys.executable, str(program), *arguments]
        run = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, str] = json.loads(run.stdout)
    return found


def extract(revision: str, folder: str) -> None:
    """Write the files of a revision into a folder."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)


def compared(here: dict[str, str], there: dict[str, str]) -> int:
    """Print what has changed and return the exit status."""
    both = [case for case in here if case in there]
    changed = [case for case in both if here[case] != there[case]]
    for case in changed:
        print(f"{case:<50} {there[case]} -> {here[case]}")
    for title, only in (("only here", here.keys() - there.keys()), ("only there", there.keys() - here.keys())):
        if only:
            print(f"{title}: {', '.join(sorted(only))}")
    print(f"{len(both)} cases in both, {len(changed)} changed")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
