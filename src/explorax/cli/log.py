"""The subcommand `explorax log`, which shows, exports and checks the log of an agent."""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorax.cli.commands import DONE, FAILED
from explorax.errors import InvalidArgument, UnknownName
from explorax.log.schema import check_is_log
from explorax.text import grouped, table

if TYPE_CHECKING:
    from explorax.log.summary import Summary

MOST_ARMS = 30  # that are listed
ENDINGS = (".parquet", ".csv", ".vw", ".json", ".db")
ABOUT = """\
Look at the file that an agent logs its decisions and rewards to.  The agent may
write it meanwhile; nothing in it is changed.
"""
SHOW = """\
Print what is in a log: the agent and its policy, how many decisions there are
and what became of them, the period, the share and the mean reward of each arm,
and the newest decisions.

what becomes of a decision:
  known      its reward is known, told or by default, and counts
  open       its reward was told, and counts when the reward window is over
  waiting    its reward may still come
  dropped    too many decisions waited, and nobody waits for its reward
  lost       its reward window was over before a reward came
  withdrawn  it will have no reward, because its arm was not shown
  not shown  it was deferred, and nobody has said that its arm was shown
"""
EXPORT = """\
Write a log to a new file, whose ending tells the format:

  .parquet, .csv  a table of all decisions, with their rewards and features
  .vw             text for `vw --cb_adf`: decisions whose rewards are known
  .json           the dictionary bandit_feedback of the Open Bandit Pipeline: the
                  same decisions
  .db             a copy of the log, in one file that needs no others

`explorax.read_log` reads .parquet, .csv and .db.
"""
CHECK = """\
Look for what is wrong in a log: a damaged file, numbers that are missing or
there twice, rewards without a decision, impossible propensities, ids and
versions, arms that were not on offer.  Then learn all rewards again from the
first snapshot, and compare with the newest snapshot and what came after it.

exit code 1: something is wrong, and a line says what.
"""


def add_show(to: argparse.ArgumentParser) -> None:
    """Add the options of `explorax log show` to its parser."""
    add_file(to)
    to.add_argument("--rows", type=int, default=5, metavar="N", help="newest decisions that are listed (default: 5)")
    to.add_argument("--decision", type=int, metavar="ID", help="print all that is known of one decision instead")
    to.add_argument("--json", action="store_true", help="print JSON")
    to.set_defaults(action=show)


def add_export(to: argparse.ArgumentParser) -> None:
    """Add the options of `explorax log export` to its parser."""
    add_file(to)
    to.add_argument("out", type=Path, metavar="OUT", help="file to write, which must not exist")
    to.set_defaults(action=export)


def add_check(to: argparse.ArgumentParser) -> None:
    """Add the options of `explorax log check` to its parser."""
    add_file(to)
    to.add_argument("--quick", action="store_true", help="do not learn the rewards again, which may take long")
    to.set_defaults(action=check)


def add_file(to: argparse.ArgumentParser) -> None:
    """Add the argument that names a log."""
    to.add_argument("file", type=Path, metavar="FILE", help="file that an agent logs to")


def show(options: argparse.Namespace) -> int:
    """Print what is in a log, or all that is known of one decision; return the exit code."""
    if options.rows < 0:
        raise InvalidArgument(
            f"--rows must be a whole number of at least 0, got {options.rows}. Give how many to list."
        )
    check_is_log(options.file)  # before anything is imported that takes long
    from explorax.log.summary import decision, summary

    if options.decision is not None:
        told = decision(options.file, options.decision)
        if options.json:
            print(json.dumps(told))
        else:
            print(table([[name, as_text(value, name)] for name, value in told.items()], left=2))
        return DONE
    found = summary(options.file, options.rows)
    if options.json:
        print(json.dumps(as_json(found)))
    else:
        print_summary(found)
    return DONE


def as_json(value: Any) -> Any:
    """Return a record, and the records in it, as what JSON can hold."""
    if hasattr(value, "_asdict"):
        return {name: as_json(each) for name, each in value._asdict().items()}
    return [as_json(each) for each in value] if isinstance(value, list) else value


def print_summary(found: "Summary") -> None:
    """Print what is in a log."""
    statuses = ", ".join(f"{grouped(count)} {status}" for status, count in found.statuses.items() if count)
    policy = found.policy or "one of the user's own"
    settings = ", ".join(f"{name}={value!r}" for name, value in (found.settings or {}).items())
    kinds = {"fixed": "fixed", "changing": "given with each decision", "context": "in a context"}
    average = "" if found.mean_reward is None else f", with mean {found.mean_reward:.6g}"
    lines = [
        ["file", f"{found.file}, {grouped(found.bytes)} bytes, begun by explorax {found.version}"],
        ["policy", f"{policy}({settings})"],
        ["arms", f"{kinds.get(found.kind, found.kind)}, {found.n_features} features ({found.dtype})"],
        ["decisions", grouped(found.decisions) + (f": {statuses}" if statuses else "")],
        ["rewards", f"{grouped(found.rewards)}, of them {grouped(found.by_default)} by default{average}"],
        ["period", f"{as_time(found.first)} to {as_time(found.last)}" if found.decisions else "no decisions yet"],
    ]
    if found.reward_window is not None:
        lines.insert(3, ["window", f"{found.reward_window:g} s"])
    if found.retired:
        lines.insert(3, ["retired", ", ".join(map(as_name, found.retired))])
    print(table(lines, left=2))
    if found.arms:
        cells = [
            [
                as_name(arm),
                grouped(count),
                f"{100 * share:.1f} %",
                grouped(rewards),
                "-" if mean is None else f"{mean:.6g}",
            ]
            for arm, count, share, rewards, mean in found.arms[:MOST_ARMS]
        ]
        print("\n" + table([["arm", "decisions", "share", "rewards", "mean reward"], *cells]))
        if len(found.arms) > MOST_ARMS:
            print(f"and {len(found.arms) - MOST_ARMS} more arms (--json lists all)")
    if found.newest:
        header = ["id", "time", "arm", "propensity", "reward", "status"]
        rows = [[as_text(value, name) for name, value in each._asdict().items()] for each in found.newest]
        print("\n" + table([header, *rows], left=3))


def as_text(value: Any, name: str) -> str:
    """Return a value of a decision as text."""
    if value is None:
        return "-"
    if name in ("time", "reward_time"):
        return as_time(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return as_name(value) if isinstance(value, str) else json.dumps(value)


def as_name(name: Any) -> str:
    """Return a name on one line; one with control characters is quoted, which leaves terminals alone."""
    return str(name) if str(name).isprintable() else json.dumps(name)


def as_time(seconds: float | None) -> str:
    """Return a time as a date in UTC, or as the number of a clock of another kind."""
    if seconds is None:
        return "-"
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g}"


def export(options: argparse.Namespace) -> int:
    """Write a log in another format; return the exit code."""
    if options.out.suffix not in ENDINGS:
        raise UnknownName("the ending of OUT", options.out.suffix, ENDINGS)
    check_is_log(options.file)
    from explorax.log.export import export_log

    count = export_log(options.file, options.out)
    print(f"{grouped(count)} decisions written to {options.out}")
    return DONE


def check(options: argparse.Namespace) -> int:
    """Print what is wrong in a log; return the exit code."""
    check_is_log(options.file)
    from explorax.log.checking import can_fold, problems

    found, fold = 0, not options.quick and can_fold(options.file)
    for problem in problems(options.file, fold=fold):
        found += 1
        print(problem)
    if not found:
        print(f"{options.file}: {'nothing is wrong' if fold else 'the rows are in order'}.")
    if not fold and not options.quick:
        print("The state was not compared, because its policy cannot be made from the log.")
    return FAILED if found else DONE
