"""What a snapshot of an agent holds."""

import os
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from explorax.agent import sets, snapshot
from explorax.agent.arms import Arms
from explorax.agent.encoding import Encoder
from explorax.agent.pending import Pulled
from explorax.agent.sets import ArmSet
from explorax.errors import InvalidArgument, InvalidSnapshot
from explorax.policies.base import Policy, State
from explorax.registry import make


class Saved(NamedTuple):
    """All that an agent is and knows."""

    policy: Policy
    seed: int
    dtype: str
    draws: int
    max_pending: int
    features: int
    kind: str  # of its arms: "fixed", "changing", "context" or "set"
    set: ArmSet | None
    encoder: Encoder | None
    arms: Arms | None
    decisions: int
    dropped: int
    waiting: np.ndarray  # ids
    pulled: Pulled  # and what they were
    described: list[list[Any]]  # the arrays of the state: names, shapes, dtypes
    arrays: dict[str, np.ndarray]
    explore_floor: float = 0.0

    def state(self, like: State, path: object) -> State:
        """The state of the policy; `like` is one that the policy makes."""
        return snapshot.unflatten(like, self.described, self.arrays, path)


def save(saved: Saved, path: str | os.PathLike[str]) -> None:
    """Write a snapshot."""
    arms, recipe, arrays = saved.arms, saved.policy.recipe, dict(saved.arrays)
    arrays |= {"pending_ids": saved.waiting, "pending_rows": saved.pulled.indices}
    arrays |= {"pending_features": saved.pulled.features}
    if saved.set is not None:
        arrays |= {f"set_{name}": value for name, value in saved.set.parameters.items()}
    if arms is not None:
        arrays |= {"arms": arms.rows, "active": arms.active}
        if not snapshot.plain([list(each.values()) for each in arms.attributes]):
            raise InvalidArgument("attributes of arms must be text, numbers, True or False to be saved")
    if saved.encoder is not None:
        arrays["encoder"] = np.frombuffer(saved.encoder.dumps(), np.uint8)
    schema = {name: getattr(saved, name) for name in ("seed", "dtype", "draws", "max_pending", "features", "kind")}
    schema |= {
        "policy": recipe and recipe.name,
        "settings": recipe.settings if recipe and snapshot.plain(list(recipe.settings.values())) else None,
        "set": saved.set and saved.set.kind,
        "explore_floor": saved.explore_floor,
        "decisions": saved.decisions,
        "dropped": saved.dropped,
        "names": None if arms is None else list(arms.names),
        "attributes": [] if arms is None else list(arms.attributes),
        "state": saved.described,
    }
    snapshot.write(path, schema, arrays)


def load(path: str | os.PathLike[str], policy: Policy | None) -> Saved:
    """Read a snapshot; to be called in the precision that the arrays are wanted in."""
    schema, arrays = snapshot.read(path)
    try:
        kept = {name: schema[name] for name in ("seed", "dtype", "draws", "max_pending", "features", "kind")}
        arms, arm_set = None, None
        if schema["names"] is not None:
            rows = arrays["arms"]
            arms = Arms(tuple(schema["names"]), arrays["active"], rows, jnp.asarray(rows), tuple(schema["attributes"]))
        if schema["set"] is not None:
            parameters = {name[4:]: value for name, value in arrays.items() if name.startswith("set_")}
            arm_set = sets.make(schema["set"], parameters)
        return Saved(
            policy=policy_of(schema, policy, path),
            **kept,
            set=arm_set,
            encoder=Encoder.loads(arrays["encoder"].tobytes()) if "encoder" in arrays else None,
            arms=arms,
            decisions=schema["decisions"],
            dropped=schema["dropped"],
            waiting=arrays["pending_ids"],
            pulled=Pulled(arrays["pending_rows"], arrays["pending_features"]),
            described=schema["state"],
            arrays=arrays,
            explore_floor=schema.get("explore_floor", 0.0),
        )
    except (KeyError, TypeError) as error:
        raise InvalidSnapshot(f"{path} lacks something, or has it in another form: {error!r}") from error


def policy_of(schema: dict[str, Any], given: Policy | None, path: object) -> Policy:
    """The policy that was saved, made again; or the one given, if it can be that one."""
    name, settings = schema["policy"], schema["settings"]
    if given is None:
        if name is None or settings is None:
            raise InvalidSnapshot(
                f"{path} was saved with a policy that cannot be made from text, such as one with a network of your "
                f"own: give it, Agent.load(path, policy=make({name or '…'!r}, …))"
            )
        return make(name, **{key: tupled(value) for key, value in settings.items()})
    recipe = given.recipe
    if recipe is not None and name not in (None, recipe.name):
        raise InvalidSnapshot(f"{path} was saved with the policy {name!r}, not {recipe.name!r}: give that one, or none")
    if recipe is not None and settings is not None:
        ours = {key: tupled(value) for key, value in recipe.settings.items()}
        if ours != {key: tupled(value) for key, value in settings.items()}:
            raise InvalidSnapshot(f"{path} was saved with the settings {settings}, not {recipe.settings}: give these")
    return given


def tupled(value: Any) -> Any:
    """Lists as tuples, which is what settings are made of."""
    return tuple(map(tupled, value)) if isinstance(value, list | tuple) else value
