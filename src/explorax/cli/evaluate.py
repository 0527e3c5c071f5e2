"""The subcommand `explorax evaluate`, which tells what other policies would have earned, from a log."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorax.cli.arena import add_caching
from explorax.cli.commands import DONE, check_policies, prepare, print_files
from explorax.errors import InvalidArgument

if TYPE_CHECKING:
    from explorax.log.data import LoggedData

ABOUT = """\
Tell what other policies would have earned, from the log of the policy that
decided.  Each value comes with an interval, and is compared with what the policy
of the log earned.  The first lines say whether the log can answer at all.
"""
AROUND = """\
policies: a name from `explorax policies`, with settings after a colon, such as
glm_tsl or glm_ucb:width=0.15,ridge=2.  Policies that model a reward family get
the one that the rewards suggest, unless it is given: family=poisson.

learning: with `replay` a policy is played over the log, and learns from the rows
in which it agrees with the log; its value is that of learning from scratch.  With
`trained` it learns from the first half and is evaluated on the second half.

examples:
  explorax evaluate decisions.db --policy glm_tsl
  explorax evaluate decisions.db --policy glm_tsl --policy greedy --learning trained
  explorax evaluate decisions.db --policy glm_tsl --rank --out results/evaluation

files in the output directory: index.html (all of it on one page that loads no
other files), table.csv, results.json, forest.png and forest.pdf; with --rank also
ranking.json.

"""


def add_evaluate(to: argparse.ArgumentParser) -> None:
    """Add the options of `explorax evaluate` to its parser."""
    to.add_argument("file", type=Path, metavar="FILE", help="log of decisions and rewards")
    to.add_argument(
        "--policy", action="append", required=True, metavar="NAME[:K=V,…]", help="policy to evaluate; may be repeated"
    )
    to.add_argument(
        "--estimator", action="append", metavar="E", help="estimator; may be repeated (default: dr, snips and dm)"
    )
    to.add_argument("--interval", metavar="I", help="anytime, bernstein, betting or asymptotic (default: what fits)")
    to.add_argument("--level", type=float, metavar="P", help="probability with which an interval holds (default: 0.95)")
    to.add_argument(
        "--reward-range",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="least and largest reward that can ever be (default: 0 1 if all rewards are 0 or 1)",
    )
    to.add_argument(
        "--least-propensity", type=float, metavar="C", help="number that no propensity is below (default: unknown)"
    )
    to.add_argument(
        "--estimate-propensities", action="store_true", help="estimate the propensities of a log that has none"
    )
    to.add_argument(
        "--learning", choices=("replay", "trained"), help="how policies learn (default: replay; with --rank trained)"
    )
    to.add_argument(
        "--rank", action="store_true", help="rank the policies and their usual amounts of exploration, by one estimator"
    )
    to.add_argument("--seed", type=int, metavar="S", help="seed of all random numbers (default: 0)")
    to.add_argument("--out", type=Path, metavar="DIR", help="output directory (default: no files)")
    to.add_argument("--json", action="store_true", help="print JSON")
    add_caching(to)
    to.set_defaults(action=evaluate)


def evaluate(options: argparse.Namespace) -> int:
    """Evaluate policies on a log, and print what was found; return the exit code."""
    asked = [parsed(text) for text in options.policy]
    check_policies(name for name, _ in asked)
    if not options.file.is_file():
        raise InvalidArgument(
            f"FILE must be the file of a log, got {options.file}. Give the path that an agent logs to."
        )
    if options.rank and len(options.estimator or ()) > 1:
        raise InvalidArgument(
            f"--estimator must be given at most once with --rank, got {' and '.join(options.estimator)}. Rank by one."
        )
    prepare(options)
    import explorax
    from explorax.evaluation.preparing import opened

    log = opened(options.file)
    given = {name: getattr(options, name) for name in ("interval", "level", "least_propensity", "learning", "seed")}
    given["reward_range"] = options.reward_range and tuple(options.reward_range)
    given["propensities"] = "estimate" if options.estimate_propensities else None
    given["estimator"] = options.estimator and (options.estimator[0] if options.rank else tuple(options.estimator))
    given = {name: value for name, value in given.items() if value is not None}
    policies = policies_of(asked, options.policy, log, options.rank)
    found = (
        explorax.rank_policies(log, policies, **given) if options.rank else explorax.evaluate(log, policies, **given)
    )
    print(found.to_json() if options.json else found)
    files = [] if options.out is None else found.write(options.out)
    if files and not options.json:
        print_files(files)
    return DONE


def parsed(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of a policy that was named on the command line.

    Args:
        text: The name, with settings after a colon: "glm_ucb:width=0.15,ridge=2".

    Returns:
        The name, and the settings as numbers, bools or texts.

    Raises:
        InvalidArgument: If a setting has no value, or is given twice.
    """
    name, _, rest = text.partition(":")
    settings: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        setting, equals, value = part.partition("=")
        if not equals or not setting or setting in settings:
            raise InvalidArgument(
                f"--policy must be NAME or NAME:SETTING=VALUE,…, with each setting once, got {text!r}. Write, for "
                "example, glm_tsl:scale=0.5."
            )
        settings[setting] = as_value(value)
    return name, settings


def as_value(text: str) -> Any:
    """Return a setting as the number, bool or None that it spells, or else as text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def policies_of(
    asked: list[tuple[str, dict[str, Any]]], texts: list[str], log: "LoggedData", every: bool
) -> dict[str, Any]:
    """Return the policies that were asked for by name, with those that differ in their exploration if `every`."""
    from explorax.evaluation.ranking import candidates
    from explorax.evaluation.reward_models import suitable_family
    from explorax.registry import entry_of

    found: dict[str, Any] = {}
    for (name, settings), text in zip(asked, texts, strict=True):
        entry = entry_of(name)
        family = {} if "family" in settings else entry.for_family(suitable_family(log.rewards))
        made = candidates(name, **family, **settings)
        for label, policy in made.items() if every else [(text, made[entry.name])]:
            label = label if label != entry.name else text
            if label in found:
                raise InvalidArgument(f"--policy must name different policies, got {label} twice. Name each once.")
            found[label] = policy
    return found
