"""What the runs gave, kept as lines of JSON, and what follows from them."""

import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from asking import Answer
from common import Floats, Task
from contenders import REGRET_OF, TIME_OF, Contender, Kind, Setting, Size, contenders
from scipy import stats


class Outcome(NamedTuple):
    """What is kept of a run."""

    regret: float
    uniform_regret: float  # of uniform choices
    microseconds: float  # of the processor for one choose and one learn, median over the rounds


class Journal:
    """Finished runs, in a file that only grows; a line that was cut off counts for nothing."""

    def __init__(self, path: Path, versions: dict[str, str]) -> None:
        self.path, self.versions = path, versions
        self.lock = threading.Lock()
        self.outcomes: dict[tuple[str, Task], Outcome] = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                run = json.loads(line)
            except json.JSONDecodeError:
                continue
            if run["answer"]["version"] == versions[run["library"]]:
                self.remember(run["library"], Task(**run["task"]), run["answer"])

    def remember(self, library: str, task: Task, answer: Answer) -> None:
        """Takes in an answer."""
        time = answer["processor_us"]["median"]
        self.outcomes[library, task] = Outcome(answer["regret"], answer["uniform_regret"], time)

    def add(self, library: str, task: Task, answer: Answer) -> None:
        """Takes in an answer and writes it down."""
        if answer["version"] != self.versions[library]:
            raise SystemExit(
                f"{library} is version {answer['version']}, where {self.versions[library]} is pinned: "
                "make the environments again with environments.py"
            )
        line = json.dumps({"library": library, "task": task._asdict(), "answer": answer}, ensure_ascii=False)
        with self.lock:
            self.remember(library, task, answer)
            with self.path.open("a") as file:
                file.write(f"\n{line}")  # a line of its own, also after one that was cut off

    def of(self, contender: Contender, size: Size, setting: Setting, seeds: Iterable[int]) -> list[Outcome]:
        """The runs of a contender with this setting on these instances."""
        return [self.outcomes[contender.library, contender.task(size, setting, seed)] for seed in seeds]


def tuned(journal: Journal, contender: Contender, size: Size) -> Setting:
    """The setting with the least regret on the held-out instances."""

    def regret(setting: Setting) -> float:
        return float(np.mean([each.regret for each in journal.of(contender, size, setting, size.held_out)]))

    return min(contender.settings, key=regret)


class Estimate(NamedTuple):
    """A mean over instances, and its 95 % interval by Student's t."""

    mean: float
    low: float
    high: float


def estimate(values: Floats) -> Estimate:
    """The mean of independent values."""
    mean, count = float(np.mean(values)), len(values)
    half = float(stats.t.ppf(0.975, count - 1) * np.std(values, ddof=1) / count**0.5) if count > 1 else float("inf")
    return Estimate(mean, mean - half, mean + half)


class Spread(NamedTuple):
    """A median over instances, and the least and the most."""

    median: float
    least: float
    most: float


def spread(values: Floats) -> Spread:
    """The median of these values."""
    return Spread(float(np.median(values)), float(np.min(values)), float(np.max(values)))


class Row(NamedTuple):
    """A contender, tuned, on the instances that it was not tuned on."""

    contender: Contender
    setting: Setting
    regret: Estimate
    more: Estimate | None  # regret than explorax's reference, instance by instance; None: it is the reference
    microseconds: Spread
    ratio: Spread  # of the time to that of explorax's glm_tsl, instance by instance

    @property
    def at_the_end(self) -> bool:
        """Whether the scale is the least or the largest that was tried."""
        return self.setting.scale in (self.contender.scales[0], self.contender.scales[-1])

    @property
    def verdict(self) -> str:
        """Whether its regret is lower or higher than the reference's, or the interval of the difference has 0 in it."""
        if self.more is None:
            return "reference"
        return "lower" if self.more.high < 0 else "higher" if self.more.low > 0 else "alike"


class Table(NamedTuple):
    """All contenders on one kind of problem, by regret."""

    kind: Kind
    rows: list[Row]
    uniform: Estimate  # regret of uniform choices


def table(journal: Journal, kind: Kind, size: Size) -> Table:
    """The results on one kind of problem."""
    players = contenders(kind)
    settings = {player: tuned(journal, player, size) for player in players}
    outcomes = {player: journal.of(player, size, settings[player], size.tested) for player in players}
    regrets = {player: np.array([each.regret for each in outcomes[player]]) for player in players}
    times = {player: np.array([each.microseconds for each in outcomes[player]]) for player in players}
    ours = {player.algorithm: player for player in players if player.library == "explorax"}
    reference, clock = ours[REGRET_OF[kind.rewards]], ours[TIME_OF]
    rows = [
        Row(
            player,
            settings[player],
            estimate(regrets[player]),
            None if player is reference else estimate(regrets[player] - regrets[reference]),
            spread(times[player]),
            spread(times[player] / times[clock]),
        )
        for player in players
    ]
    uniform = estimate(np.array([each.uniform_regret for each in outcomes[reference]]))
    return Table(kind, sorted(rows, key=lambda row: row.regret.mean), uniform)
