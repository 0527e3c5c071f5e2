"""What an agent saves and goes on from, with checks of everything that is read.

`take` collects all that an agent is and knows, `save` writes it, and `resume` goes on from what `load` reads.  A file
may have been damaged or edited, so types, ranges and shapes are checked, and that the parts of a snapshot agree.
"""

import contextlib
import os
import reprlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agent import archive, arm_sets, former
from explorax.agent.archive import DTYPES, FORMAT, check_array
from explorax.agent.arm_tables import checked_names
from explorax.agent.decider import Decider, Live, checked_policy
from explorax.agent.encoding import Encoder
from explorax.agent.log import MOST, Ledger, Span
from explorax.agent.own_arms import Arms, places_of
from explorax.agent.pulled import Pulled
from explorax.agent.sources import KINDS, ArmSource
from explorax.checks import check_whole
from explorax.errors import InvalidArgument, InvalidSnapshot, NotFinite, UnknownName
from explorax.policies.adoption import adopt
from explorax.policies.base import Policy, State
from explorax.registry import make

LEAST = {"seed": 0, "draws": 0, "max_pending": 1, "features": 1, "decisions": 0, "dropped": 0, "unsure": 0}
SETTINGS = ("seed", "dtype", "draws", "explore_floor", "max_pending")
Arrays = dict[str, np.ndarray]


class Saved(NamedTuple):
    """All that an agent is and knows, at one moment."""

    policy: Policy
    seed: int
    dtype: str
    draws: int
    explore_floor: float
    max_pending: int
    source: ArmSource
    arms: Arms  # the agent's own
    ledger: Ledger
    described: list[list[Any]]  # the arrays of the state: names, shapes, dtypes
    arrays: Arrays
    format: int = FORMAT  # of the snapshot
    former: Policy | None = None  # the policy that was saved, if another one goes on

    def settings(
        self, draws: int | None, explore_floor: float | None, max_pending: int | None
    ) -> tuple[int, float, int]:
        """Return the draws, the floor and the limit of pending decisions: those given, or else those saved."""
        return (
            self.draws if draws is None else draws,
            self.explore_floor if explore_floor is None else explore_floor,
            self.max_pending if max_pending is None else max_pending,
        )

    def state(self, nothing_seen: Callable[[Policy], State], path: object) -> State:
        """Return the state to go on with, given a function that makes the state from which a policy starts."""
        saved, described, arrays = self.former or self.policy, self.described, self.arrays
        like = nothing_seen(saved)
        if self.format < FORMAT:
            described, arrays = former.arrays_today(*flatten(like), described, arrays, self.format)
        state = unflatten(like, described, arrays, path)
        if self.format < FORMAT and saved.complete is not None:
            state = saved.complete(state)
        for i, (name, _, dtype) in enumerate(described):
            if self.policy.recipe and "int" in dtype and np.any(arrays[f"state_{i}"] < 0):
                least = np.min(arrays[f"state_{i}"])
                raise InvalidArgument(
                    f"{name} of the state must be at least 0, since it counts something, got {least}."
                )
        return state if self.former is None else adopt(self.policy, state, nothing_seen(self.policy))


def take(live: Live) -> Saved:
    """Return all that an agent is and knows now."""
    decider, known = live.decider, live.decider.known
    with live.lock:
        now, ledger = live.now, live.waiting().ledger()
    with decider.precision():
        described, arrays = flatten(now.packed.state())
    settings = (decider.policy, decider.seed, decider.source.dtype, known.draws, known.floor, live.pending.limit)
    return Saved(*settings, decider.source, now.arms, ledger, described, arrays)


def resume(
    path: str | os.PathLike[str],
    policy: Policy | None,
    draws: int | None,
    explore_floor: float | None,
    max_pending: int | None,
    same_ids: bool,
) -> Live:
    """Return a decider with the state and the pending decisions of a snapshot.

    Args:
        path: The file that `save` wrote.
        policy: The policy to go on with, or None for the saved one.
        draws: The number of repetitions for propensities, or None for the saved one.
        explore_floor: The probability of uniform exploration, or None for the saved one.
        max_pending: The number of decisions that may wait, or None for the saved one.
        same_ids: Whether to go on with the ids that the saved agent would have given out.

    Returns:
        The decider, with what it needs to go on.
    """
    with understood(path):
        saved = load(path, policy)
        draws, floor, limit = saved.settings(draws, explore_floor, max_pending)
        with jax.enable_x64(saved.dtype == "float64"):
            decider = Decider(saved.policy, saved.source, saved.seed, draws, floor)
            own = saved.arms.on_device()
            state = saved.state(lambda policy: decider.nothing_seen(policy, own), path)
            live = Live(decider, state, own, limit)
        live.pending.resume(saved.ledger, same_ids)
    return live


def save(saved: Saved, path: str | os.PathLike[str]) -> None:
    """Write a snapshot to a file; raise if a part of it cannot be saved."""
    source, arms, recipe, ledger = saved.source, saved.arms, saved.policy.recipe, saved.ledger
    arrays = dict(saved.arrays)
    for i, (name, *_) in enumerate(saved.described):
        if not np.isfinite(arrays[f"state_{i}"]).all():
            raise NotFinite(
                f"{name} of the state must be finite to be saved, got NaN or infinity. Load the last snapshot instead."
            )
    arrays |= {"pending_ids": ledger.waiting, "pending_rows": ledger.pulled.rows.astype(np.int64)}
    arrays |= {"pending_features": ledger.pulled.features}
    if source.set is not None:
        arrays |= {f"set_{name}": value for name, value in source.set.parameters.items()}
    if source.named:
        arrays |= {"arms": arms.rows[:, : 0 if arms.attributes else None], "active": arms.active}
        if arms.rowless:
            arrays["rowless"] = np.stack(list(arms.rowless.values()))
        if not archive.plain([list(each.values()) for each in arms.attributes]):
            raise InvalidArgument(
                "Attributes of arms must be text, numbers, True or False to be saved. Change the others by update_arm."
            )
    if source.encoder is not None:
        arrays["encoder"] = np.frombuffer(source.encoder.dumps(), np.uint8)
    schema = {name: getattr(saved, name) for name in SETTINGS}
    schema |= {name: getattr(ledger, name) for name in ("decisions", "offset", "spans", "dropped", "unsure")}
    schema |= {
        "policy": recipe and recipe.name,
        "settings": recipe.settings if recipe and archive.plain(list(recipe.settings.values())) else None,
        "kind": source.kind,
        "features": source.n_features,
        "set": source.set and source.set.kind,
        "names": list(arms.names) if source.named else None,
        "rowless": list(arms.rowless),
        "attributes": list(arms.attributes),
        "state": saved.described,
    }
    archive.write(path, schema, arrays)


def flatten(state: State) -> tuple[list[list[Any]], Arrays]:
    """Return the name, shape and dtype of each array in a state, and the arrays by the names `state_0` and so on."""
    described, arrays = [], {}
    for i, (path, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(state)[0]):
        array = np.asarray(leaf)
        if array.dtype.hasobject or array.dtype.kind not in DTYPES:
            raise InvalidArgument(
                f"{jax.tree_util.keystr(path)} of the state must hold numbers or bools to be saved, got dtype "
                f"{array.dtype}."
            )
        described.append([jax.tree_util.keystr(path), list(array.shape), str(array.dtype)])
        arrays[f"state_{i}"] = array
    return described, arrays


def unflatten(like: State, described: list[list[Any]], arrays: Arrays, source: object) -> State:
    """Return the state that was saved; raise unless it has the arrays of the state `like`, and is finite."""
    expected, _ = flatten(like)
    if expected != described:
        differing = [f"{was} instead of {now}" for was, now in zip(described, expected, strict=False) if was != now]
        differing.append(f"{len(described)} arrays instead of {len(expected)}")
        raise InvalidSnapshot(
            f"{source} holds a state of another kind: {differing[0]}. It was saved by another policy, with other "
            "settings, or by another version of explorax. Load it with those."
        )
    for i, (name, shape, dtype) in enumerate(described):
        check_array(f"state_{i}", arrays, tuple(shape), dtype, f"{name} of the state")
    leaves = [jnp.asarray(arrays[f"state_{i}"]) for i in range(len(described))]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


@contextlib.contextmanager
def understood(path: object) -> Iterator[None]:
    """Turn errors that come from the content of a snapshot into `InvalidSnapshot`."""
    try:
        yield
    except InvalidSnapshot:
        raise
    except InvalidArgument as error:
        raise InvalidSnapshot(f"{path} cannot be used: {error}") from error
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InvalidSnapshot(f"{path} lacks something, or has it in another form: {error!r}") from error


def load(path: str | os.PathLike[str], policy: Policy | None) -> Saved:
    """Read a snapshot and check all of it but the state, which only its policy understands."""
    schema, arrays = archive.read(path)
    schema = former.schema_today(schema)
    for name, least in LEAST.items():
        check_whole(name, schema[name], least)
    if schema["dtype"] not in ("float32", "float64"):
        raise UnknownName("dtype", schema["dtype"], ("float32", "float64"))
    source = source_of(schema, arrays)
    arms = arms_of(schema, arrays, source.encoder) if source.named else Arms.none()
    ledger = ledger_of(schema, arrays, len(arms.names) if source.named else 2**31)
    if source.named and not arms.attributes:
        arms = replace(arms, reused=not np.array_equal(arms.rows[ledger.pulled.rows], ledger.pulled.features))
    going_on, before = policy_of(schema, policy, path)
    return Saved(
        going_on,
        **{name: schema[name] for name in SETTINGS},
        source=source,
        arms=arms,
        ledger=ledger,
        described=schema["state"],
        arrays=arrays,
        format=schema["format"],
        former=before,
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
    return Ledger(count, offset, spans, schema["dropped"], schema["unsure"], waiting, Pulled.of(pulled, features))


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
