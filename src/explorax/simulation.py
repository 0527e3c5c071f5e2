"""Play policies against environments: environment → act → reward → update, compiled, for many instances in lockstep.

    records = simulate(explorax.glm_tsl(), environments.logistic(features=5), rounds=10_000, instances=100, seed=0)
    records.regret                                       # (instances, checkpoints)

**Speed.**  One `lax.scan` over rounds, `vmap` over instances.  A program is compiled once for each kind of policy and
shape, however many designs, seeds and instances it then plays.

**Memory.**  Rounds are played in chunks.  A chunk hands each round's regret to the host, which adds it up in float64
and keeps what the checkpoints need: memory does not grow with the number of rounds.

**The same arms, whatever the split.**  Every random number is a function of seed, instance and round: instance i draws
its problem, its arms, its rewards and its policy's noise from keys of its own.  All policies therefore meet the same
instances, and the same luck in the same arm.  On a CPU, instance i is always computed at place i mod 50 of block
i div 50, next to the same neighbours, because the last bits of a result may depend on its batch; a chunk or a process
more or less changes nothing.  (A GPU plays all instances in one batch; its last bits differ from a CPU's, and in the
end arms do too.)

**Policies in plain Python** run too: any callable `make(arms, rng)` that returns an object with `act(arms, t)` and
`update(arm, x, reward)`.  It is called once for each instance, with the fixed arms (or the number of features, where
arms change) and a NumPy generator of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from explorax.checks import MOST_CHECKPOINTS, MOST_FIRST, MOST_INSTANCES, MOST_ROUNDS, MOST_SEED, check_whole
from explorax.environments.base import Environment, Offer
from explorax.errors import HistoryFull, InvalidArgument, UnknownName
from explorax.glm.history import limited_rows
from explorax.policies.base import Policy, State
from explorax.programs import bounded_jit
from explorax.record import Records, concatenate
from explorax.registry import check_family

BLOCK = 50  # instances in lockstep on a CPU
CHUNK, CHUNK_ELSEWHERE = 500, 2500  # rounds between two reports to the host, on a CPU and on other devices
FNV_OFFSET, FNV_PRIME = 2166136261, 16777619  # the hash of the arms pulled: 32-bit FNV-1a over their indices
DRAW, ARMS, REWARD, POLICY, INIT, REPEAT, FLOOR = range(7)  # what keys are for; the last two are an agent's

Progress = Callable[[int], None]


class PlainPolicy(Protocol):
    """A policy in plain Python, for one instance."""

    def act(self, arms: np.ndarray, t: int) -> int:
        """Return the arm to pull, a row of `arms`, in round `t`, counted from 0."""

    def update(self, arm: int, x: np.ndarray, reward: float) -> None:
        """Learn from the `reward` of an `arm` whose features are `x`."""


class Job(NamedTuple):
    """One policy and what it plays against."""

    policy: Policy
    environment: Environment


class Schedule(NamedTuple):
    """When to record, and how many rounds to play at a time."""

    rounds: int
    checkpoints: np.ndarray
    chunk: int | None
    progress: Progress | None


class Keys(NamedTuple):
    """The randomness of one instance."""

    arms: Array
    reward: Array
    policy: Array


def simulate(
    policy: Policy | Callable[[Any, np.random.Generator], PlainPolicy],
    environment: Environment,
    *,
    rounds: int,
    instances: int = 100,
    seed: int = 0,
    checkpoints: int | Sequence[int] = 100,
    spacing: str = "even",
    first: int = 0,
    chunk: int | None = None,
    progress: Progress | None = None,
) -> Records:
    """Play a policy on random instances of an environment and record its regret.

    Args:
        policy: A `Policy`; or a callable `make(arms, rng)` that returns a policy in plain Python for one instance
            (`PlainPolicy`).  A `Policy` must model the environment's rewards, as `explorax.glm_tsl(family="poisson")`
            does counts; linear policies may play rewards of 0 and 1 as well.  One of your own that does not say what it
            models is played on anything.
        environment: What it plays against, such as `explorax.environments.logistic(n_features=5)`.
        rounds: n, played on each instance.
        instances: How many instances to play.
        seed: What all randomness is drawn from.  Instance i of a seed is the same in every call.
        checkpoints: How many rounds to record regret at, or these rounds themselves.
        spacing: How a number of checkpoints is spaced: "even" or "log".
        first: The number of the first instance.
        chunk: Rounds between two calls of `progress`; changes nothing else.
        progress: Called with the number of rounds played so far.

    Returns:
        The cumulative regret and reward of each instance at the checkpoints.

    Raises:
        InvalidArgument: If an argument is not in its range, or the policy does not model the environment's rewards.
        HistoryFull: If the policy keeps rewards one by one and has no room for that many rounds.
    """
    schedule = check_schedule(rounds, checkpoints, spacing, chunk, progress)
    check_whole("instances", instances, 1, MOST_INSTANCES)
    check_whole("seed", seed, 0, MOST_SEED)
    check_whole("first", first, 0, MOST_FIRST)
    if not isinstance(environment, Environment):
        raise InvalidArgument(f"environment={environment!r} is none: make one with explorax.environments.logistic()")
    if isinstance(policy, Policy):
        return simulate_together([Job(policy, environment)], schedule, range(first, first + instances), seed)[0]
    if not callable(policy):
        raise InvalidArgument(
            f"policy={policy!r} is neither a Policy nor a callable make(arms, rng): see explorax.make"
        )
    compiled = environment._replace(offer=jax.jit(environment.offer), reward=jax.jit(environment.reward))
    numbers = range(first, first + instances)
    return concatenate([simulate_plainly(policy, compiled, schedule, i, seed) for i in numbers])


def simulate_together(jobs: Sequence[Job], schedule: Schedule, instances: range, seed: int) -> list[Records]:
    """Play several jobs that share one program (`share_program`) as one batch; records of each."""
    if not all(share_program(jobs[0], job) for job in jobs):
        raise InvalidArgument(
            "these policies or environments do not share a compiled program: simulate them one by one"
        )
    for job in jobs:
        check_family(job.policy, job.environment.family)
    if jax.default_backend() != "cpu":
        return play(jobs, schedule, instances, seed)
    pieces: list[list[Records]] = [[] for _ in jobs]
    for block in blocks(instances):
        for piece, job in zip(pieces, jobs, strict=True):
            (records,) = play([job], schedule, block, seed)
            piece.append(select(records, instances))
    return [concatenate(piece) for piece in pieces]


def share_program(one: Job, other: Job) -> bool:
    """Whether two jobs differ in numbers only, and so can be one batch."""
    apart = one.environment is not other.environment
    return program_of(one) == program_of(other) and not (apart and has_shared_parts(one.environment))


def program_of(job: Job) -> tuple[Callable[..., Any], ...]:
    """The functions that get compiled."""
    return job.policy.act, job.policy.update, job.environment.offer, job.environment.reward


def has_shared_parts(environment: Environment) -> bool:
    """Whether its instances have something in common that is there only once."""
    return environment.axes != 0


def blocks(instances: range) -> Iterator[range]:
    """The blocks of which these instances are part."""
    for start in range(instances.start // BLOCK * BLOCK, instances.stop, BLOCK):
        yield range(start, start + BLOCK)


def select(records: Records, instances: range) -> Records:
    """The records of these instances only."""
    wanted = (records.instances >= instances.start) & (records.instances < instances.stop)
    return Records(*(each if name == "rounds" else each[wanted] for name, each in records._asdict().items()))


def play(jobs: Sequence[Job], schedule: Schedule, instances: range, seed: int) -> list[Records]:
    """All jobs on all of these instances, as one batch."""
    key = join([Keys(*(instance_keys(seed, instances, use) for use in (ARMS, REWARD, POLICY))) for _ in jobs], 0)
    axes = jobs[0].environment.axes
    worlds = [draw(job.environment, instances, seed) for job in jobs]
    world = join(worlds, axes)
    states = [start(job, its_world, instances, seed) for job, its_world in zip(jobs, worlds, strict=True)]
    check_capacity(states[0], schedule.rounds)
    if len({shape_of(state) for state in states}) > 1:  # memories of different kinds are no one batch
        return [play([job], schedule, instances, seed)[0] for job in jobs]
    state = join(states, 0)

    target = schedule.chunk or (CHUNK if jax.default_backend() == "cpu" else CHUNK_ELSEWHERE)
    chunks = -(-schedule.rounds // target)
    length = -(-schedule.rounds // chunks)  # the last chunk may play a few rounds too many; they are not recorded
    advance = compiled_chunk(*program_of(jobs[0]), axes, length)
    digest = jnp.full(len(jobs) * len(instances), FNV_OFFSET, jnp.uint32)
    tally = Tally(len(digest), schedule)
    for number in range(chunks):
        state, digest, played = advance(state, digest, world, key, number * length, schedule.rounds)
        tally.add(*(np.asarray(values) for values in played))
    return [
        tally.records(np.asarray(digest), instances, slice(j * len(instances), (j + 1) * len(instances)))
        for j in range(len(jobs))
    ]


def instance_keys(seed: int, instances: range, use: int) -> Array:
    """A key for each instance."""
    base = jax.random.fold_in(jax.random.key(seed), use)
    return jax.vmap(lambda i: jax.random.fold_in(base, i))(jnp.arange(instances.start, instances.stop))


def draw(environment: Environment, instances: range, seed: int) -> Any:
    """The problems of all instances."""
    keys, numbers = instance_keys(seed, instances, DRAW), jnp.arange(instances.start, instances.stop)
    return jax.vmap(environment.draw, out_axes=environment.axes)(keys, numbers)


def start(job: Job, world: Any, instances: range, seed: int) -> State:
    """The policy's state on each instance before the first round."""
    keys = instance_keys(seed, instances, INIT)
    if job.environment.arms_change:
        return jax.vmap(lambda key: job.policy.init(job.environment.n_features, key))(keys)
    offer = jax.vmap(job.environment.offer, (None, job.environment.axes, None))(jax.random.key(0), world, 0)
    return jax.vmap(job.policy.init)(offer.arms, keys)


def shape_of(state: State) -> Any:
    """What two states must have in common to be joined."""
    leaves, structure = jax.tree.flatten(state)
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def join(batches: Sequence[Any], axes: Any) -> Any:
    """Several batches as one; of what a batch's members share, that of the first."""

    def one(axis: int | None, *parts: Any) -> Any:
        return parts[0] if axis is None else jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *parts)

    return jax.tree.map(one, axes, *batches, is_leaf=lambda axis: axis is None)


@lru_cache(maxsize=64)
def compiled_chunk(
    act: Callable[..., Any],
    update: Callable[..., Any],
    offer_of: Callable[..., Offer],
    reward_of: Callable[..., Array],
    axes: Any,
    length: int,
) -> Callable[..., tuple[State, Array, tuple[Array, Array, Array]]]:
    """The function that plays `length` rounds on a batch of instances."""

    def one_round(state: State, digest: Array, world: Any, key: Keys, t: Array, rounds: Array) -> Any:
        offer = offer_of(key.arms, world, t)
        action = act(key.policy, state, offer.arms, t)
        reward = reward_of(key.reward, offer, action.arm)
        state = update(state, action.arm, offer.arms[action.arm], reward)
        more = (digest ^ action.arm.astype(jnp.uint32)) * jnp.uint32(FNV_PRIME)
        digest = jnp.where(t < rounds, more, digest)
        return state, digest, (jnp.max(offer.means) - offer.means[action.arm], reward, ~action.converged)

    lockstep = jax.vmap(one_round, (0, 0, axes, 0, None, None))

    @bounded_jit
    def chunk(state: State, digest: Array, world: Any, key: Keys, begin: Array, rounds: Array) -> Any:
        def body(carry: tuple[State, Array], now: tuple[Array, Array, Array]) -> tuple[tuple[State, Array], Any]:
            t, reward, policy = now
            state, digest, played = lockstep(*carry, world, Keys(key.arms, reward, policy), t, rounds)
            return (state, digest), played

        # The keys of all rounds at once: in the loop each would cost as much as the rest of a cheap decision.
        times = begin + jnp.arange(length)
        of_rounds = jax.vmap(jax.vmap(jax.random.fold_in, (0, None)), (None, 0))
        keys = times, of_rounds(key.reward, times), of_rounds(key.policy, times)
        (state, digest), played = lax.scan(body, (state, digest), keys)
        return state, digest, played

    return chunk


class Tally:
    """Adds up what chunks of rounds bring, in float64 and in the order of rounds, and keeps it at checkpoints."""

    def __init__(self, size: int, schedule: Schedule) -> None:
        self.schedule = schedule
        self.played = 0
        self.regret = np.zeros(size)
        self.reward = np.zeros(size)
        self.unconverged = np.zeros(size, np.int64)
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, regret: np.ndarray, reward: np.ndarray, unconverged: np.ndarray) -> None:
        """The next rounds: arrays of (rounds, instances)."""
        count = min(len(regret), self.schedule.rounds - self.played)
        # One by one after the total so far, so that the sums do not depend on where chunks end.
        regrets = np.cumsum(np.vstack([self.regret, regret[:count]]), axis=0, dtype=np.float64)
        rewards = np.cumsum(np.vstack([self.reward, reward[:count]]), axis=0, dtype=np.float64)
        for checkpoint in self.schedule.checkpoints:
            if self.played < checkpoint <= self.played + count:
                at = checkpoint - self.played
                self.kept.append((regrets[at], rewards[at]))
        self.regret, self.reward = regrets[-1], rewards[-1]
        self.unconverged += np.sum(unconverged[:count], axis=0)
        self.played += count
        if self.schedule.progress is not None:
            self.schedule.progress(self.played)

    def records(self, digest: np.ndarray, instances: range, part: slice) -> Records:
        """The records of one part of the batch, with a clear error in place of numbers that are none."""
        regret, reward = (np.stack(values, axis=1)[part] for values in zip(*self.kept, strict=True))
        if not (np.all(np.isfinite(regret)) and np.all(np.isfinite(reward))):
            raise InvalidArgument(
                "the environment's means or rewards are not finite: scale down its arms or parameters"
            )
        numbers = np.arange(instances.start, instances.stop, dtype=np.int64)
        return Records(numbers, self.schedule.checkpoints, regret, reward, digest[part], self.unconverged[part])


def simulate_plainly(
    make: Callable[[Any, np.random.Generator], PlainPolicy],
    environment: Environment,
    schedule: Schedule,
    instance: int,
    seed: int,
) -> Records:
    """A policy in plain Python on one instance."""
    instances = range(instance, instance + 1)
    world = environment.draw(instance_keys(seed, instances, DRAW)[0], instance)
    keys = Keys(*(instance_keys(seed, instances, use)[0] for use in (ARMS, REWARD, POLICY)))
    offer = environment.offer(keys.arms, world, 0)
    start = environment.n_features if environment.arms_change else np.asarray(offer.arms)
    policy = make(start, np.random.default_rng([seed, instance]))
    tally, digest = Tally(1, schedule), FNV_OFFSET
    for t in range(schedule.rounds):
        if environment.arms_change:
            offer = environment.offer(keys.arms, world, t)
        arms, means = np.asarray(offer.arms), np.asarray(offer.means)
        arm = policy.act(arms, t)
        if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < len(arms):
            raise InvalidArgument(
                f"act returned {arm!r} in round {t}: it must return the index of one of {len(arms)} arms"
            )
        reward = float(environment.reward(jax.random.fold_in(keys.reward, t), offer, int(arm)))
        policy.update(int(arm), arms[arm], reward)
        digest = (digest ^ int(arm)) * FNV_PRIME % 2**32
        tally.add(np.array([[means.max() - means[arm]]]), np.array([[reward]]), np.array([[False]]))
    return tally.records(np.array([digest], np.uint32), instances, slice(None))


def check_schedule(
    rounds: int, checkpoints: int | Sequence[int], spacing: str, chunk: int | None, progress: Progress | None
) -> Schedule:
    """The schedule these settings ask for; raises where they make none."""
    check_whole("rounds", rounds, 1, MOST_ROUNDS)
    if chunk is not None:
        check_whole("chunk", chunk, 1)
    if spacing not in ("even", "log"):
        raise UnknownName("spacing", spacing, ("even", "log"))
    if isinstance(checkpoints, int | np.integer):
        check_whole("checkpoints", checkpoints, 1, MOST_CHECKPOINTS)
        space = np.linspace(rounds / checkpoints, rounds, checkpoints)
        if spacing == "log":
            space = np.geomspace(1, rounds, checkpoints) if checkpoints > 1 else np.array([rounds])
        marks = np.unique(np.maximum(np.round(space), 1).astype(np.int64))
    else:
        marks = np.asarray(checkpoints)
        whole = marks.ndim == 1 and marks.size > 0 and np.issubdtype(marks.dtype, np.integer)
        if not (whole and np.all(np.diff(marks) > 0) and marks[0] >= 1 and marks[-1] == rounds):
            raise InvalidArgument(
                f"checkpoints={checkpoints!r} must be whole numbers that increase from at least 1 up to rounds={rounds}"
            )
        marks = marks.astype(np.int64)
    return Schedule(int(rounds), marks, chunk, progress)


def check_capacity(state: State, rounds: int) -> None:
    """Raise if the policy's memory is too short for the run and may not forget."""
    for rows in limited_rows(state):
        if rows.capacity < rounds:
            raise HistoryFull(
                f"{rounds} rounds where the policy keeps {rows.capacity} rewards: make it with capacity={rounds}, "
                "or when_full='forget' to keep the newest"
            )
