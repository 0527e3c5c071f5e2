"""Simulations: a policy plays many random instances of an environment in lockstep, as one compiled program.

    records = simulate(explorax.glm_tsl(), environments.logistic(n_features=5), rounds=10_000, instances=100, seed=0)
    records.regret                                       # (instances, checkpoints)

In each round the environment offers arms, the policy acts, the environment draws a reward, and the policy learns it.

**Speed.**  There is one `lax.scan` over rounds, and `vmap` over instances (`lockstep.py`).  A program is compiled once
for each kind of policy and shape, and plays all designs, seeds and instances.

**Memory.**  Rounds are played in chunks.  A chunk hands each round's regret to the host, which adds it up in float64
and keeps the sums at the checkpoints: memory does not grow with the number of rounds.

**Reproducibility.**  Every random number is a function of seed, instance and round: instance i draws its problem, its
arms, its rewards and its policy's noise from keys of its own.  All policies therefore meet the same instances, and the
same luck in the same arm.  The last bits of a result may depend on its batch, so on a CPU instance i is always computed
at place i mod 50 of block i div 50, next to the same neighbors: splitting a run into chunks or processes does not
change a single arm.  A GPU plays all instances in one batch; its last bits differ from those of a CPU, and sooner or
later the arms do, too.

**Policies in plain Python** are simulated as well, one instance after the other: see `PlainPolicy`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from explorax.checkpoints import Progress, Schedule, Tally, check_schedule
from explorax.checks import MOST_FIRST, MOST_INSTANCES, MOST_SEED, check_whole
from explorax.environments.base import Environment
from explorax.errors import HistoryFull, InvalidArgument, shown
from explorax.glm.history import limited_rows
from explorax.lockstep import FNV_OFFSET, FNV_PRIME, Keys, compiled_chunk
from explorax.policies.base import Policy, State
from explorax.programs import Bounded
from explorax.record import Records, concatenate
from explorax.registry import check_family

BLOCK = 50  # instances in lockstep on a CPU
CHUNK, CHUNK_ELSEWHERE = 500, 2500  # rounds between two reports to the host, on a CPU and on other devices
DRAW, ARMS, REWARD, POLICY, INIT, REPEAT, FLOOR = range(7)  # what keys are for; the last two are an agent's


class PlainPolicy(Protocol):
    """A policy in plain Python that plays one instance, for `simulate`.

    `simulate` takes a callable `make(arms, rng)` that returns such an object.  It is called once for each instance with
    the matrix of fixed arms, or with the number of features if arms change, and with a NumPy generator for that
    instance.

    Example:
        >>> import explorax
        >>> class RoundRobin:
        ...     def act(self, arms, t):
        ...         return t % len(arms)
        ...     def update(self, arm, x, reward):
        ...         pass
        >>> environment = explorax.environments.logistic(n_features=2, n_arms=3)
        >>> records = explorax.simulate(lambda arms, rng: RoundRobin(), environment, rounds=6, instances=2)
        >>> records.regret.shape
        (2, 6)
    """

    def act(self, arms: np.ndarray, t: int) -> int:
        """Choose the arm to pull in a round.

        Args:
            arms: The (K, d) features of the arms on offer.
            t: The number of rounds played before this one.

        Returns:
            The index of a row of `arms`.
        """

    def update(self, arm: int, x: np.ndarray, reward: float) -> None:
        """Update the policy with the reward of the arm that was pulled.

        Args:
            arm: The index that `act` returned.
            x: The (d,) features of that arm.
            reward: What it paid.
        """


class Job(NamedTuple):
    """A policy and the environment that it plays against."""

    policy: Policy
    environment: Environment


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
        policy: A `Policy`, or a callable `make(arms, rng)` that returns a policy in plain Python for one instance
            (`PlainPolicy`).  A `Policy` must model the environment's rewards, as `explorax.glm_tsl(family="poisson")`
            does for counts; linear policies may also play rewards of 0 and 1.  A `Policy` that does not say which
            families it models (`families=None`) plays any.
        environment: The `Environment` to play against, for example `explorax.environments.logistic(n_features=5)`.
        rounds: n, the number of rounds to play on each instance.
        instances: The number of instances to play.  Default: 100.
        seed: The seed of all randomness, from 0 to 2³² − 1.  Instance i of a seed is the same in every call.
            Default: 0.
        checkpoints: The number of rounds at which regret is recorded, or a list of these rounds that increases and
            ends with `rounds`.  Default: 100.
        spacing: How a number of checkpoints is spaced: "even" or "log".  Default: "even".
        first: The index of the first instance, for a run that goes on where another one ended.  Default: 0.
        chunk: The number of rounds between two calls of `progress`; it has no effect on the result.
            Default: 500 on a CPU, 2500 on other devices.
        progress: A function that is called with the number of rounds played so far.  Default: None.

    Returns:
        `Records` with the cumulative regret and reward of each instance at each checkpoint.

    Raises:
        InvalidArgument: If an argument is not in its range, if the policy does not model the environment's rewards, or
            if means or rewards turn out not to be finite.
        UnknownName: If `spacing` is neither "even" nor "log".
        HistoryFull: If the policy keeps rewards one by one and its `capacity` is less than `rounds`.

    Example:
        >>> import explorax
        >>> environment = explorax.environments.logistic(n_features=2, n_arms=5)
        >>> records = explorax.simulate(explorax.uniform(), environment, rounds=100, instances=3, checkpoints=4)
        >>> records.rounds
        array([ 25,  50,  75, 100])
        >>> records.regret.shape
        (3, 4)
    """
    schedule = check_schedule(rounds, checkpoints, spacing, chunk, progress)
    check_whole("instances", instances, 1, MOST_INSTANCES)
    check_whole("seed", seed, 0, MOST_SEED)
    check_whole("first", first, 0, MOST_FIRST)
    if not isinstance(environment, Environment):
        raise InvalidArgument(
            f"environment must be an Environment, got {shown(environment)}. "
            "Build one with explorax.environments.logistic(n_features=5)."
        )
    if isinstance(policy, Policy):
        return simulate_together([Job(policy, environment)], schedule, range(first, first + instances), seed)[0]
    if not callable(policy):
        raise InvalidArgument(
            f"policy must be a Policy or a callable make(arms, rng), got {shown(policy)}. "
            "Build one with explorax.glm_tsl()."
        )
    compiled = environment._replace(offer=jax.jit(environment.offer), reward=jax.jit(environment.reward))
    numbers = range(first, first + instances)
    return concatenate([simulate_plainly(policy, compiled, schedule, i, seed) for i in numbers])


def simulate_together(jobs: Sequence[Job], schedule: Schedule, instances: range, seed: int) -> list[Records]:
    """Play several jobs that share one program (see `share_program`) as one batch; return the records of each job."""
    if not all(share_program(jobs[0], job) for job in jobs):
        raise InvalidArgument(
            f"jobs must share one compiled program, got {len(jobs)} jobs that do not. Simulate them one by one."
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
    """Return whether two jobs differ in numbers only, so that one batch can hold both."""
    apart = one.environment is not other.environment
    return program_of(one) == program_of(other) and not (apart and has_shared_parts(one.environment))


def program_of(job: Job) -> tuple[Callable[..., Any], ...]:
    """Return the functions of a job that are compiled into its program."""
    return job.policy.act, job.policy.update, job.environment.offer, job.environment.reward


def has_shared_parts(environment: Environment) -> bool:
    """Return whether all instances of an environment share arrays that exist only once."""
    return environment.axes != 0


def blocks(instances: range) -> Iterator[range]:
    """Yield the blocks of 50 instances that these instances are part of."""
    for start in range(instances.start // BLOCK * BLOCK, instances.stop, BLOCK):
        yield range(start, start + BLOCK)


def select(records: Records, instances: range) -> Records:
    """Return the records of these instances only."""
    wanted = (records.instances >= instances.start) & (records.instances < instances.stop)
    return Records(*(each if name == "rounds" else each[wanted] for name, each in records._asdict().items()))


def play(jobs: Sequence[Job], schedule: Schedule, instances: range, seed: int) -> list[Records]:
    """Play all jobs on all of these instances as one batch; return the records of each job."""
    states, digest, world, key = beginning(jobs, instances, seed)
    check_capacity(states[0], schedule.rounds)
    if not are_alike(states):
        return [play([job], schedule, instances, seed)[0] for job in jobs]
    state = join(states, 0)
    chunks, length = chunks_of(schedule)
    advance, place = program_for(jobs[0], length)
    tally = Tally(len(digest), schedule)
    for number in range(chunks):
        state, digest, played = advance(place, state, digest, world, key, number * length, schedule.rounds)
        tally.add(*(np.asarray(values) for values in played))
    return [
        tally.records(np.asarray(digest), instances, slice(j * len(instances), (j + 1) * len(instances)))
        for j in range(len(jobs))
    ]


def compile_ahead(jobs: Sequence[Job], schedule: Schedule, instances: range, seed: int) -> None:
    """Compile the program of a batch before its turn to play, without the memory that playing takes.

    Args:
        jobs: Jobs that share one program.
        schedule: When the batch is recorded.
        instances: The instances that are played.
        seed: The seed of all randomness.
    """
    states, *others = jax.eval_shape(lambda: beginning(jobs, instances, seed))
    if not are_alike(states):
        for job in jobs:
            compile_ahead([job], schedule, instances, seed)
        return
    state = jax.eval_shape(lambda parts: join(parts, 0), states)
    advance, place = program_for(jobs[0], chunks_of(schedule)[1])
    advance.compile(place, state, *others, 0, schedule.rounds)


def program_for(job: Job, length: int) -> tuple[Bounded, int]:
    """Return the compiled function that plays a number of rounds of a job, and the place of its policy there."""
    acts, others = job.policy.siblings or (job.policy.act,), program_of(job)[1:]
    chunk = compiled_chunk(acts, *others, job.environment.axes, length)
    return chunk, acts.index(job.policy.act)


def beginning(jobs: Sequence[Job], instances: range, seed: int) -> tuple[list[State], Array, Any, Keys]:
    """Return the states of each job before the first round, and the digests, problems and keys of all of them."""
    key = join([Keys(*(instance_keys(seed, instances, use) for use in (ARMS, REWARD, POLICY))) for _ in jobs], 0)
    worlds = [draw(job.environment, instances, seed) for job in jobs]
    states = [start(job, its_world, instances, seed) for job, its_world in zip(jobs, worlds, strict=True)]
    digest = jnp.full(len(jobs) * len(instances), FNV_OFFSET, jnp.uint32)
    return states, digest, join(worlds, jobs[0].environment.axes), key


def are_alike(states: Sequence[State]) -> bool:
    """Return whether states have the same shape; memories of different kinds cannot be one batch."""
    return len({shape_of(state) for state in states}) == 1


def chunks_of(schedule: Schedule) -> tuple[int, int]:
    """Return the number of chunks that rounds are played in, and their length.

    The last chunk may play a few rounds too many, which are not recorded.
    """
    target = schedule.chunk or (CHUNK if jax.default_backend() == "cpu" else CHUNK_ELSEWHERE)
    chunks = -(-schedule.rounds // target)
    return chunks, -(-schedule.rounds // chunks)


def instance_keys(seed: int, instances: range, use: int) -> Array:
    """Return a random key for each instance; keys for different uses are independent."""
    base = jax.random.fold_in(jax.random.key(seed), use)
    return jax.vmap(lambda i: jax.random.fold_in(base, i))(jnp.arange(instances.start, instances.stop))


def draw(environment: Environment, instances: range, seed: int) -> Any:
    """Draw the problems of all instances."""
    keys, numbers = instance_keys(seed, instances, DRAW), jnp.arange(instances.start, instances.stop)
    return jax.vmap(environment.draw, out_axes=environment.axes)(keys, numbers)


def start(job: Job, world: Any, instances: range, seed: int) -> State:
    """Return the state of a job's policy on each instance before the first round."""
    keys = instance_keys(seed, instances, INIT)
    if job.environment.arms_change:
        return jax.vmap(lambda key: job.policy.init(job.environment.n_features, key))(keys)
    offer = jax.vmap(job.environment.offer, (None, job.environment.axes, None))(jax.random.key(0), world, 0)
    return jax.vmap(job.policy.init)(offer.arms, keys)


def shape_of(state: State) -> Any:
    """Return the structure, shapes and dtypes of a state, which two states must share to be joined."""
    leaves, structure = jax.tree.flatten(state)
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def join(batches: Sequence[Any], axes: Any) -> Any:
    """Join several batches into one; arrays that all members of a batch share (axis None) come from the first batch."""

    def one(axis: int | None, *parts: Any) -> Any:
        return parts[0] if axis is None else jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *parts)

    return jax.tree.map(one, axes, *batches, is_leaf=lambda axis: axis is None)


def simulate_plainly(
    make: Callable[[Any, np.random.Generator], PlainPolicy],
    environment: Environment,
    schedule: Schedule,
    instance: int,
    seed: int,
) -> Records:
    """Play a policy in plain Python on one instance and return its records."""
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
                f"act must return the index of an arm, from 0 to {len(arms) - 1}, got {shown(arm)} in round {t}."
            )
        reward = float(environment.reward(jax.random.fold_in(keys.reward, t), offer, int(arm)))
        policy.update(int(arm), arms[arm], reward)
        digest = (digest ^ int(arm)) * FNV_PRIME % 2**32
        tally.add(np.array([[means.max() - means[arm]]]), np.array([[reward]]), np.array([[False]]))
    return tally.records(np.array([digest], np.uint32), instances, slice(None))


def check_capacity(state: State, rounds: int) -> None:
    """Raise `HistoryFull` if a policy's memory has no room for all rounds and must not forget."""
    for rows in limited_rows(state):
        if rows.capacity < rounds:
            raise HistoryFull(
                f"rounds must be at most {rows.capacity}, the rewards that the policy can keep, got {rounds}. "
                f"Build the policy with capacity={rounds}, or with when_full='forget' to keep the newest rewards."
            )
