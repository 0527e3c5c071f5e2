"""The regret and the time of explorax and five other libraries on the same bandits, in one run.

    python benchmarks/peers/environments.py DIR     # once: makes the environments of the other libraries
    python benchmarks/peers/compare.py DIR [--out results/peers] [--page docs/peers.md] [--quick]

Every contender (`contenders.py`) is tuned on held-out instances and then plays others with the setting that had the
least regret.  All meet the same instances, contexts and luck (`common.py`).  Tuning uses all cores.  The runs that
count are on one core, one at a time: each instance is played by all contenders in turn before the next one, so that
what else a machine does hits all alike.  A time is that of the processor for one choose and one learn, the median over
the rounds of a run.  Times have medians and extremes over instances, regrets have means with 95 % intervals.

Runs are kept in OUT/runs.jsonl, and another call goes on from there.  Tables and figure are written to OUT, and with
--page also into a page and next to it.
"""

import argparse
import os
import sys
from importlib.metadata import version
from pathlib import Path

from asking import Answer, Work, play_all
from common import Task
from contenders import FULL, KINDS, QUICK, Size, contenders
from environments import PEERS, REQUIREMENTS, python_of
from picture import picture
from results import Journal, table, tuned
from tables import inserted, markdown

from explorax.files import write_atomically
from explorax.plot import save


def pinned_versions() -> dict[str, str]:
    """Return the versions of explorax and of the packages in the environments of the others."""
    found = {"explorax": version("explorax")}
    for peer in PEERS:
        pins = dict(line.split("==") for line in (REQUIREMENTS / f"{peer}.txt").read_text().split())
        found[peer] = pins[peer]
    return found


def do(what: str, works: list[Work], cores: list[int], environments: Path, journal: Journal) -> None:
    """Does what is not done yet, and says how far it is."""
    left = [(library, task) for library, task in works if (library, task) not in journal.outcomes]
    print(f"{what}: {len(left)} of {len(works)} runs to do, on {len(cores)} cores", flush=True)
    count = 0

    def done(library: str, task: Task, answer: Answer) -> None:
        nonlocal count
        journal.add(library, task, answer)
        count += 1
        if count % 100 == 0:
            print(f"{what}: {count} of {len(left)}", flush=True)

    play_all(left, cores, environments, journal.path.parent, done)


def measure(size: Size, environments: Path, journal: Journal) -> None:
    """Tunes all contenders, then lets them play what counts."""
    cores = sorted(os.sched_getaffinity(0))
    players = [player for kind in KINDS for player in contenders(kind)]
    tuning = [
        (player.library, player.task(size, setting, seed))
        for player in players
        for setting in player.settings
        for seed in size.held_out
    ]
    do("tuning", tuning, cores, environments, journal)
    settings = {player: tuned(journal, player, size) for player in players}
    tests = [(player.library, player.task(size, settings[player], seed)) for seed in size.tested for player in players]
    do("playing", tests, cores[-1:], environments, journal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="environments of the other libraries")
    parser.add_argument("--out", type=Path, default=Path("results/peers"), help="where runs, tables and figure go")
    parser.add_argument("--page", type=Path, help="a page to write the tables into, and the figure next to it")
    parser.add_argument("--quick", action="store_true", help="small problems, to see whether everything works")
    options = parser.parse_args()
    environments = options.directory.resolve()
    if missing := [peer for peer in PEERS if not python_of(environments, peer).exists()]:
        parser.error(f"{environments} has no environment of {', '.join(missing)}: make it with environments.py")
    size = QUICK if options.quick else FULL
    options.out.mkdir(parents=True, exist_ok=True)
    journal = Journal(options.out / "runs.jsonl", pinned_versions())
    measure(size, environments, journal)

    tables = [table(journal, kind, size) for kind in KINDS]
    command = "python benchmarks/peers/compare.py DIR" + (" --quick" if options.quick else "")
    text = markdown(tables, size, journal.versions, command)
    figure = picture(tables)
    write_atomically(options.out / "tables.md", f"{text}\n".encode())
    save(figure, options.out / "peers.png")
    if options.page is not None:
        write_atomically(options.page, inserted(options.page.read_text(), text).encode())
        save(figure, options.page.with_suffix(".png"))
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
