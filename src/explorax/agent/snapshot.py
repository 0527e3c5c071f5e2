"""What an agent saves and goes on from, with checks of everything that is read.

`take` collects all that an agent is and knows, `save` writes it, and `resume` goes on from what `load` reads.  A file
may have been damaged or edited, so types, ranges and shapes are checked, and that the parts of a snapshot agree.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agent import archive, former
from explorax.agent.archive import DTYPES, FORMAT, Arrays, check_array
from explorax.agent.decider import Decider
from explorax.agent.live import Live
from explorax.agent.own_arms import Arms
from explorax.agent.pending import Ledger
from explorax.agent.reward_window import Window
from explorax.agent.saved_parts import arms_of, ledger_of, policy_of, source_of
from explorax.agent.sources import ArmSource
from explorax.checks import check_whole
from explorax.errors import InvalidArgument, InvalidSnapshot, NotFinite, UnknownName
from explorax.policies.adoption import adopt
from explorax.policies.base import Policy, State

LEAST = {"seed": 0, "draws": 0, "max_pending": 1, "features": 1, "decisions": 0, "dropped": 0, "unsure": 0}
SETTINGS = ("seed", "dtype", "draws", "explore_floor", "max_pending")


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
    window: Window | None
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
        if self.format < former.STATES:
            described, arrays = former.arrays_today(*flatten(like), described, arrays, self.format)
        state = unflatten(like, described, arrays, path)
        if self.format < former.STATES and saved.complete is not None:
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
    with live.lock:
        live.record.settle()
        return taken(live)


def taken(live: Live) -> Saved:
    """Return all that an agent is and knows, for a caller who holds its lock."""
    decider, known = live.decider, live.decider.known
    now, ledger = live.now, live.waiting().ledger()
    with decider.precision():
        described, arrays = flatten(now.packed.state())
    settings = (decider.policy, decider.seed, decider.source.dtype, known.draws, known.floor, live.pending.limit)
    return Saved(*settings, decider.source, now.arms, ledger, described, arrays, live.window)


def resume(
    content: bytes,
    path: object,
    policy: Policy | None,
    draws: int | None,
    explore_floor: float | None,
    max_pending: int | None,
    same_ids: bool,
    clock: Callable[[], float] | None = None,
) -> Live:
    """Return a decider with the state and the pending decisions of a snapshot.

    Args:
        content: What `dumps` returned.
        path: The file that it was read from.
        policy: The policy to go on with, or None for the saved one.
        draws: The number of repetitions for propensities, or None for the saved one.
        explore_floor: The probability of uniform exploration, or None for the saved one.
        max_pending: The number of decisions that may wait, or None for the saved one.
        same_ids: Whether to go on with the ids that the saved agent would have given out.
        clock: The clock of its reward window.  Default: none.

    Returns:
        The decider, with what it needs to go on.
    """
    with understood(path):
        saved = load(content, policy, path)
        draws, floor, limit = saved.settings(draws, explore_floor, max_pending)
        with jax.enable_x64(saved.dtype == "float64"):
            decider = Decider(saved.policy, saved.source, saved.seed, draws, floor)
            own = saved.arms.on_device()
            state = saved.state(lambda policy: decider.nothing_seen(policy, own), path)
            live = Live(decider, state, own, limit, saved.window, clock)
        live.pending.resume(saved.ledger, same_ids)
    return live


def dumps(saved: Saved) -> bytes:
    """Return a snapshot as bytes; raise if a part of it cannot be saved."""
    source, arms, recipe, ledger = saved.source, saved.arms, saved.policy.recipe, saved.ledger
    arrays = dict(saved.arrays)
    for i, (name, *_) in enumerate(saved.described):
        if not np.isfinite(arrays[f"state_{i}"]).all():
            raise NotFinite(
                f"{name} of the state must be finite to be saved, got NaN or infinity. Load the last snapshot instead."
            )
    arrays |= {"pending_ids": ledger.waiting, "pending_rows": ledger.pulled.rows.astype(np.int64)}
    arrays |= {"pending_features": ledger.pulled.features}
    if ledger.times is not None:
        assert ledger.told is not None
        assert ledger.deferred is not None
        came = ~np.isnan(ledger.told)
        arrays |= {"pending_times": ledger.times, "pending_deferred": ledger.deferred}
        arrays |= {"pending_came": came, "pending_told": np.where(came, ledger.told, 0.0)}
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
        "reward_window": saved.window and saved.window.seconds,
        "default_reward": saved.window and saved.window.default,
        "kind": source.kind,
        "features": source.n_features,
        "set": source.set and source.set.kind,
        "names": list(arms.names) if source.named else None,
        "rowless": list(arms.rowless),
        "attributes": list(arms.attributes),
        "state": saved.described,
    }
    return archive.dumps(schema, arrays)


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


def load(content: bytes, policy: Policy | None, path: object) -> Saved:
    """Read a snapshot and check all of it but the state, which only its policy understands."""
    schema, arrays = archive.loads(content, path)
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
        window=Window.of(schema["reward_window"], schema["default_reward"]),
        format=schema["format"],
        former=before,
    )
