"""The parts of a snapshot: the source of arms, the arms, the ledger and the policy, each checked and made again.

Nothing is read on trust: types, ranges and shapes are checked, and that the parts agree.
"""

import reprlib
from typing import Any

import numpy as np

from explorax.agent import archive, arm_sets
from explorax.agent.archive import Arrays, check_array
from explorax.agent.arm_tables import checked_names
from explorax.agent.decider import checked_policy
from explorax.agent.encoding import Encoder
from explorax.agent.ids import MOST, Span
from explorax.agent.kinds import KINDS
from explorax.agent.own_arms import Arms, places_of
from explorax.agent.pending import Ledger
from explorax.agent.pulled import Pulled
from explorax.agent.sources import ArmSource
from explorax.checks import check_whole
from explorax.errors import InvalidArgument, InvalidSnapshot, UnknownName
from explorax.policies.base import Policy
from explorax.registry import make

WINDOWED = (  # arrays of the decisions that wait, if there is a reward window
    ("times", "float64", "times"),
    ("told", "float64", "rewards"),
    ("came", "bool", "rewards that came"),
    ("deferred", "bool", "shows"),
)


def source_of(schema: dict[str, Any], arrays: Arrays) -> ArmSource:
    """Return the source of an agent's arms, as a snapshot describes it."""
    features, kind, encoder, arm_set = schema["features"], schema["kind"], None, None
    if kind not in KINDS:
        raise UnknownName("kind of arms", kind, KINDS)
    if "encoder" in arrays:
        encoder = Encoder.loads(check_array("encoder", arrays, (None,), "uint8", "the encoder").tobytes())
        if encoder.n_features != features:
            raise InvalidArgument(f"features must be {encoder.n_features}, as the encoder makes, got {features}.")
    if (schema["names"] is not None) != KINDS[kind].named or (schema["set"] is not None) != (kind == "set"):
        named = ", ".join(name for name, each in KINDS.items() if each.named)
        raise InvalidArgument(f"kind must fit the arms, of which only {named} ones have names, got {kind!r}.")
    if schema["set"] is not None:
        parameters = {name[4:]: value for name, value in arrays.items() if name.startswith("set_")}
        arm_set = arm_sets.make(schema["set"], parameters)
        if arm_set.n_features != features:
            raise InvalidArgument(f"features must be {arm_set.n_features}, as the set of arms has, got {features}.")
    return KINDS[kind](features, schema["dtype"], encoder, arm_set)


def arms_of(schema: dict[str, Any], arrays: Arrays, encoder: Encoder | None) -> Arms:
    """Return an agent's own arms, as a snapshot describes them."""
    in_context = schema["kind"] == "context"
    columns, dtype = (0, "float64") if in_context else (schema["features"], schema["dtype"])
    names, attributes, rowless = tuple(schema["names"]), tuple(schema["attributes"]), schema["rowless"]
    checked_names([*(name for name in names if name is not None), *rowless])
    rows = check_array("arms", arrays, (None, columns), dtype, "the table of arms")
    active = check_array("active", arrays, (len(rows),), "bool", "the array of arms on offer")
    if not 1 <= len(names) <= len(rows) or active[len(names) :].any():
        raise InvalidArgument(f"names must fit the table of {len(rows)} arms, got {len(names)} names.")
    if any(name is None and (on or in_context) for name, on in zip(names, active, strict=False)):
        raise InvalidArgument("Every arm on offer must have a name.")
    if len(attributes) != (len(names) if in_context else 0):
        raise InvalidArgument(f"attributes must fit the {len(names)} names of arms, got {len(attributes)} of them.")
    for name, own in zip(names, attributes, strict=False):
        if not (isinstance(own, dict) and all(archive.plain(value) for value in own.values())):
            shown = reprlib.repr(own)
            raise InvalidArgument(f"Attributes of arm {name!r} must be text, numbers, True or False, got {shown}.")
    if in_context:
        assert encoder is not None
        known = encoder.part(attributes)
        rows = np.concatenate([known, np.zeros((len(rows) - len(known), known.shape[1]))])
    grown, apart = len(names) < len(rows), {}
    if rowless:
        shape = (len(rowless), 0 if in_context else schema["features"])
        features = check_array("rowless", arrays, shape, dtype, "the table of arms without a row")
        apart = dict(zip(rowless, features, strict=True))
    return Arms(names, places_of(names), active, rows, None, attributes, grown=grown, rowless=apart)


def ledger_of(schema: dict[str, Any], arrays: Arrays, rows: int) -> Ledger:
    """Return the ids and the pending decisions of a snapshot whose table of arms has this number of rows."""
    count, offset, end = schema["decisions"], schema["offset"], 0
    check_whole("offset", offset, -count)
    spans = sorted((Span(*span) for span in schema["spans"]), key=lambda span: span.first)
    for span in spans:
        for value in span:
            check_whole("spans", value, -count)
        if not (
            end <= span.first < span.end <= count and 0 <= span.offset + span.first < span.offset + span.end < MOST
        ):
            raise InvalidArgument(
                f"spans of decisions must follow each other up to decision {count}, got {list(span)}."
            )
        end = span.end
    for name in ("dropped", "unsure"):
        if schema[name] > count:
            raise InvalidArgument(f"{name} must be at most {count}, the number of decisions, got {schema[name]}.")
    waiting = check_array("pending_ids", arrays, (None,), "int64", "the array of ids of decisions that wait")
    pulled = check_array("pending_rows", arrays, waiting.shape, "int64", "the array of arms of decisions that wait")
    shape = (len(waiting), schema["features"])
    features = check_array(
        "pending_features", arrays, shape, schema["dtype"], "the array of features of decisions that wait"
    )
    known = np.zeros(len(waiting), bool)
    for span in spans:
        known |= (waiting >= span.offset + span.first) & (waiting < span.offset + span.end)
    if not known.all():
        raise InvalidArgument(f"Decision {waiting[~known][0]} waits for a reward, but was never made.")
    if len(set(waiting.tolist())) < len(waiting):
        raise InvalidArgument("A decision waits twice for its reward.")
    if not np.all((pulled >= 0) & (pulled < rows)):
        shown = reprlib.repr(pulled.tolist())
        raise InvalidArgument(f"Arms of decisions that wait must be rows from 0 to {rows - 1}, got {shown}.")
    told_of = (count, offset, spans, schema["dropped"], schema["unsure"], waiting, Pulled.of(pulled, features))
    if schema["reward_window"] is None:
        return Ledger(*told_of)
    times, told, came, deferred = (
        check_array(f"pending_{name}", arrays, waiting.shape, dtype, f"the array of {what} of decisions that wait")
        for name, dtype, what in WINDOWED
    )
    return Ledger(*told_of, times, np.where(came, told, np.nan), deferred)


def policy_of(schema: dict[str, Any], given: Policy | None, path: object) -> tuple[Policy, Policy | None]:
    """Return the policy that goes on, and the one that was saved if it had other settings, else None."""
    name, settings = schema["policy"], schema["settings"]
    if settings is not None:
        settings = {key: tupled(value) for key, value in settings.items()}
    if given is None:
        if name is None or settings is None:
            raise InvalidSnapshot(
                f"{path} was saved with a policy that cannot be made from text, such as one with a network of your "
                f"own. Give the policy: Agent.load(path, policy=make({name or '…'!r}, …))."
            )
        return make(name, **settings), None
    recipe = checked_policy(given).recipe
    if recipe is not None and name not in (None, recipe.name):
        raise InvalidSnapshot(
            f"{path} was saved with the policy {name!r}, not {recipe.name!r}. Give that policy, or leave it out."
        )
    if recipe is None or settings is None:
        return given, None
    wanted = {key: tupled(value) for key, value in recipe.settings.items()}
    other = {key for key in {**settings, **wanted} if settings.get(key) != wanted.get(key)}
    if given.adopt is None:  # what a policy does with its settings is its own affair, but for the room it has
        other -= {"capacity", "when_full"}
    else:  # it judges itself what can be changed, but a state does not tell its family
        other = set() if family(settings) == family(wanted) else {"family"}
    if other:
        raise InvalidSnapshot(
            f"{path} was saved with the settings {settings}, and {recipe.name} cannot go on with {wanted}. "
            f"Leave {', '.join(sorted(other))} as it was."
        )
    return given, None if settings == wanted else make(name, **settings)


def family(settings: dict[str, Any]) -> str:
    """Return the name of the family in a policy's settings, where it stands as a name or as a `Family`."""
    given = settings.get("family", "bernoulli")
    return str(getattr(given, "name", given))


def tupled(value: Any) -> Any:
    """Return a value with tuples in place of lists, as settings have them."""
    return tuple(map(tupled, value)) if isinstance(value, list | tuple) else value
