"""What the deep policies share: a network, the examples from which it learns, and training steps after each reward.

Let η(x) be the network's score of x.  A training step is a step of the optimizer on a mini-batch of B examples, with
the loss

    (1/B) Σ_l [b(η(X_l)) − (Y_l + Z_l) η(X_l)],    Z_l ~ N(0, a²) fresh in every step

where b is the cumulant of the family: softplus for rewards in [0, 1].  `RoundTrainer` draws Z_l once for all steps
after a reward.  The mini-batch is the B most `recent` examples, as in the paper, or B draws from all examples that are
kept (`uniform`).  If there are fewer than B examples, the batch is smaller.

The noise of training is drawn in `update`, which has no key: the noise comes from the key that `init` was given and
from the number of rewards so far.  Given the state, a decision is therefore not random.
"""

import reprlib
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from explorax.batching import only_where
from explorax.builders import filled
from explorax.checks import check_positive, check_whole, is_known
from explorax.errors import InvalidArgument, UnknownName
from explorax.extras import optional
from explorax.glm import families
from explorax.glm.families import Family
from explorax.glm.history import Rows
from explorax.networks import Network, Params, check_network, mlp
from explorax.policies.checked import Expected, size_and_dtype
from explorax.policies.settings import DeepSettings, Loss

REPLAYS = ("recent", "uniform")


class DeepState(NamedTuple):
    """A network in training, and the examples on which it is trained.

    Attributes:
        params: The weights of the network.
        optimizer: The state of the optimizer.
        history: The examples.
        key: The (2,) key data from which the noise of training is drawn.
        scale: The scale a of the noise, of shape ().
        before: The weights and the optimizer before the last training, if the noise of that training may be redrawn.
    """

    params: Params
    optimizer: Any
    history: Rows
    key: Array
    scale: Array
    before: tuple[Params, Any] | None = None


@dataclass(frozen=True)
class Trainer:
    """The parts of a training step that are not numbers; programs are compiled once for each trainer.

    Attributes:
        network: The network.
        optimizer: An optimizer with `init` and `update`, as in optax.
        loss: The function (scores, rewards) -> losses.
        family: The reward family.
        batch: The size B of a mini-batch.
        steps: The number of training steps after each reward.
        replay: "recent" or "uniform".
    """

    network: Network
    optimizer: Any
    loss: Loss
    family: Family
    batch: int
    steps: int
    replay: str

    def init(self, arms: Array | int, key: Array, capacity: int, scale: float, redraws: bool = False) -> DeepState:
        """Return a state with random weights and without examples.

        Args:
            arms: The (K, d) matrix of the arms, or the number d of features.
            key: The key from which the weights and the noise of training are drawn.
            capacity: The number of examples to keep.
            scale: The scale a of the noise.
            redraws: Whether to keep the start of the last training.

        Returns:
            The state.

        Raises:
            InvalidArgument: If the network does not return one score for each row.
        """
        size, dtype = size_and_dtype(arms)
        weights, noise = jax.random.split(key)
        params = jax.tree.map(lambda leaf: as_dtype(leaf, dtype), self.network.init(weights, size))
        history = Rows.of(capacity, size, dtype, forgets=True)
        scores = jax.eval_shape(self.network.apply, params, history.features)
        if getattr(scores, "shape", None) != (capacity,):
            got = f"shape {scores.shape}" if hasattr(scores, "shape") else reprlib.repr(scores)
            raise InvalidArgument(
                f"network.apply must return one score for each of {capacity} rows, got {got}. "
                f"Return an array of shape ({capacity},)."
            )
        begun = jax.tree.map(lambda leaf: as_dtype(leaf, dtype), self.optimizer.init(params))
        before = (params, begun) if redraws else None
        return DeepState(params, begun, history, jax.random.key_data(noise), jnp.asarray(scale, dtype), before)

    def learn(self, state: DeepState, x: Array, reward: Array) -> DeepState:
        """Record one more example, and make the training steps after it."""
        before = None if state.before is None else (state.params, state.optimizer)
        return self.train(state._replace(history=state.history.record(0, x, reward), before=before))

    def redraw(self, key: Array, state: DeepState) -> DeepState:
        """Return the state that other noise in the last training would have led to."""
        assert state.before is not None
        params, optimizer = state.before
        again = self.train(state._replace(params=params, optimizer=optimizer, key=jax.random.key_data(key)))
        trained = state.history.seen > 0
        return jax.tree.map(lambda new, old: jnp.where(trained, new, old), again, state)

    def learn_if(self, really: Array, state: DeepState, x: Array, reward: Array) -> DeepState:
        """Record one more example and train on it if `really` is true; examples are not copied in either case."""
        state = state._replace(history=state.history.record(0, x, reward, really))

        def trained(now: tuple[Params, Any], history: Rows, key: Array, scale: Array) -> tuple[Params, Any]:
            after = self.train(DeepState(*now, history, key, scale))
            return after.params, after.optimizer

        arguments = state.history, state.key, state.scale
        params, optimizer = only_where(really, trained, (state.params, state.optimizer), arguments)
        return state._replace(params=params, optimizer=optimizer)

    def train(self, state: DeepState) -> DeepState:
        """Make the training steps after the latest example."""
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.history.seen)
        if self.steps == 1:
            return self.step(state, key)
        keys = jax.random.split(key, self.steps)
        return lax.fori_loop(0, self.steps, lambda i, now: self.step(now, keys[i]), state)

    def step(self, state: DeepState, key: Array) -> DeepState:
        """Make one training step on a mini-batch."""
        noise_key, choice_key = jax.random.split(key)
        chosen = self.mini_batch(state.history, choice_key)
        rows, rewards, weights = (
            each[chosen] for each in (state.history.features, state.history.sums, state.history.counts)
        )
        noisy = rewards + state.scale * self.noise(noise_key, state, chosen)

        def mean_loss(params: Params) -> Array:
            return jnp.sum(weights * self.loss(self.network.apply(params, rows), noisy)) / jnp.sum(weights)

        gradients = jax.grad(mean_loss)(state.params)
        moves, optimizer = self.optimizer.update(gradients, state.optimizer, state.params)
        params = jax.tree.map(lambda old, move: (old + move).astype(old.dtype), state.params, moves)
        return state._replace(params=params, optimizer=optimizer)

    def mini_batch(self, history: Rows, key: Array) -> Array | slice:
        """Return the places of the examples in a mini-batch; a place without an example has weight 0."""
        if self.replay == "uniform":
            kept = jnp.minimum(history.seen, history.capacity)
            return jax.random.randint(key, (self.batch,), 0, kept)
        if history.capacity == self.batch:
            return slice(None)
        return (history.seen - 1 - jnp.arange(self.batch)) % history.capacity

    def noise(self, key: Array, state: DeepState, chosen: Array | slice) -> Array:
        """Draw a standard normal number for the reward of each chosen example, anew in every step."""
        return jax.random.normal(key, state.history.sums[chosen].shape, state.history.sums.dtype)

    def check(self, rewards: ArrayLike) -> None:
        """Check that rewards are possible in the family, if their values are known."""
        if is_known(rewards):
            families.check_rewards(self.family, rewards)


class RoundTrainer(Trainer):
    """A trainer whose examples keep their noise for all steps of a round."""

    def noise(self, key: Array, state: DeepState, chosen: Array | slice) -> Array:
        """Draw a standard normal number for the reward of each chosen example, the same in all steps of a round."""
        places = jnp.arange(state.history.capacity)[chosen]
        keys = jax.vmap(jax.random.fold_in, (None, 0))(self.noise_key(state), places)
        return jax.vmap(lambda key: jax.random.normal(key, (), state.scale.dtype))(keys)

    def noise_key(self, state: DeepState) -> Array:
        """Return the key from which the noise of a round is drawn, example by example."""
        of_round = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.history.seen)
        return jax.random.fold_in(of_round, self.steps + 1)  # the steps use the smaller numbers


class DeepModel:
    """The settings of a deep policy, checked.

    Args:
        **settings: The settings that all deep policies take (`DeepSettings`).

    Raises:
        InvalidArgument: If a setting is out of its range or contradicts another setting.
        UnknownName: If a setting, or the name that is given for one, is unknown.
    """

    def __init__(self, **settings: Unpack[DeepSettings]) -> None:
        self.given = filled(DeepSettings, settings)
        families.get(self.given["family"])
        if self.given["network"] is not None:
            check_network(self.given["network"])
        mlp(self.given["hidden"], self.given["activation"])  # raises for these settings even if they are not used
        for name in ("batch", "steps", "capacity"):
            check_whole(name, self.given[name], 1)
        if self.given["replay"] not in REPLAYS:
            raise UnknownName("replay", self.given["replay"], REPLAYS)
        if self.given["replay"] == "uniform" and self.given["capacity"] < self.given["batch"]:
            raise InvalidArgument(
                f"capacity must be at least the batch of {self.given['batch']}, got {self.given['capacity']}. "
                "Keep at least one batch for uniform replay."
            )
        if self.given["loss"] is not None and not callable(self.given["loss"]):
            raise InvalidArgument(
                f"loss must be a function (scores, rewards) -> losses, got {reprlib.repr(self.given['loss'])}."
            )
        if self.given["learning_rate"] is not None:
            check_positive("learning_rate", self.given["learning_rate"])
        if self.given["optimizer"] is not None:
            if self.given["learning_rate"] is not None:
                raise InvalidArgument(
                    f"learning_rate must be left out with an optimizer, which has its own, got "
                    f"{self.given['learning_rate']!r}. Leave out the learning rate or the optimizer."
                )
            if not all(callable(getattr(self.given["optimizer"], name, None)) for name in ("init", "update")):
                raise InvalidArgument(
                    f"optimizer must be an optimizer of optax, got {reprlib.repr(self.given['optimizer'])}. "
                    "Give optax.sgd(0.1), for example."
                )

    def trainer(self, kind: type[Trainer] = Trainer) -> Trainer:
        """Return the trainer for which programs are compiled; equal settings and kinds give equal trainers."""
        family = families.get(self.given["family"])
        return kind(
            mlp(self.given["hidden"], self.given["activation"])
            if self.given["network"] is None
            else self.given["network"],
            adam(self.given["learning_rate"] or 0.001) if self.given["optimizer"] is None else self.given["optimizer"],
            family_loss(family) if self.given["loss"] is None else self.given["loss"],
            family,
            self.given["batch"],
            self.given["steps"],
            self.given["replay"],
        )

    @property
    def kept(self) -> int:
        """The number of examples to keep if the policy needs them for training alone."""
        return self.given["capacity"] if self.given["replay"] == "uniform" else self.given["batch"]


@cache
def adam(learning_rate: float) -> Any:
    """Return Adam with the defaults of Keras, which the paper used."""
    optax = optional("optax", "a deep policy", "deep")
    return optax.adam(learning_rate, eps=1e-7)


@cache
def family_loss(family: Family) -> Loss:
    """Return the function that computes the losses b(η) − y η of a family."""
    return lambda scores, rewards: family.cumulant(scores) - rewards * scores


def as_dtype(leaf: ArrayLike, dtype: jnp.dtype) -> Array:
    """Convert an array of floating-point numbers to a dtype, and return any other array unchanged."""
    array = jnp.asarray(leaf)
    return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array


def expected_arrays(state: DeepState) -> Expected:
    """Return the number of features and the dtype that go with a state."""
    return Expected(None, state.history.features.shape[-1], state.history.features.dtype)
