"""The one abstraction: a policy is three pure functions.

    init(arms, key)                -> state    `arms` is the (K, d) matrix of fixed arms, or the number d of
                                               features if arms change from round to round; `key` is optional
    act(key, state, arms, t)       -> Action   reads the state and never changes it; `t` counts decisions from 0
                                               (an optional fifth argument, `mask`, marks the arms on offer)
    update(state, arm, x, reward)  -> state    the only write; `x` is the row of the arm that was pulled

Randomness is the argument `key`: that of `act` for a decision, and that of `init` for the first weights of a network
and for the noise of its training.  Time is an argument, too.  Rewards may therefore come late and in any order, and
forced exploration still ends after its τ decisions.  States are pytrees of arrays of fixed shape, so the same functions
run one decision in production, a `lax.scan` over a million rounds, or a `vmap` over a thousand instances.  Ties go to
the arm of lowest index.

`Policy` also has optional fields.  An agent (`explorax.Agent`) can do more with a policy that fills them: report exact
propensities, add arms, or change settings.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from jax import Array
from jax.typing import ArrayLike

from explorax.glm.weighted import Weighted

State = Any  # a pytree of arrays; each policy has its own
Function = TypeVar("Function", bound=Callable[..., Any])


class Action(NamedTuple):
    """A decision of a policy, and what the decision rests on.

    Attributes:
        arm: The index of the arm to pull, an integer array of shape ().
        scores: The (K,) scores of the arms.  The arm has the largest score among the arms on offer, unless the arm was
            forced.
        forced: Whether the initial exploration chose the arm in place of the scores, a Boolean array of shape ().
        converged: Whether the fit behind the scores converged, a Boolean array of shape ().
    """

    arm: Array
    scores: Array
    forced: Array
    converged: Array


class Recipe(NamedTuple):
    """The name and the settings with which a policy was built: `make(name, **settings)` builds the policy again.

    Attributes:
        name: The name of the policy in the registry, for example "glm_tsl".
        settings: The settings that were given, by name.  Defaults are not listed.
    """

    name: str
    settings: dict[str, Any]


class Hashed(Protocol):
    """Anything that can be hashed, as functions can: compiled programs are cached by the functions they consist of."""

    def __hash__(self) -> int: ...


class InitFn(Protocol):
    """The function `init` of a policy."""

    def __call__(self, arms: ArrayLike, key: Array | None = None) -> State:
        """Return the state of a policy that has seen no rewards yet.

        Args:
            arms: The (K, d) matrix of fixed arms, one row of d features for each arm; or the number d of features, if
                arms change from round to round.  The state has the dtype of the matrix, or JAX's default dtype.
            key: The key from which the first weights of a network and the noise of its training are drawn.  Most
                policies do not use the key.  Default: `jax.random.key(0)`.

        Returns:
            The state, a pytree of arrays of fixed shape.

        Raises:
            InvalidArgument: If `arms` is a number below 1, or `key` is not a single key.
            InvalidShape: If `arms` is not a matrix, or its shape contradicts the settings of the policy.
            InvalidFeatures: If `arms` contains NaN, infinity or numbers too large to be squared, or does not span the
                feature space although the policy needs that.
        """


class ActFn(Hashed, Protocol):
    """The function `act` of a policy."""

    def __call__(
        self, key: Array, state: State, arms: ArrayLike, t: ArrayLike, mask: ArrayLike | None = None
    ) -> Action:
        """Choose the arm to pull.  The state does not change.

        Args:
            key: The randomness of this decision, for example `jax.random.key(seed)`.  The same key and state give the
                same decision.
            state: The state that `init` or the last `update` returned.
            arms: The (K, d) matrix of the arms, one row of features for each arm.  If arms are fixed, the matrix that
                was given to `init`.
            t: The number of decisions made before this one, a whole number.  Forced exploration ends when `t` reaches
                the number of forced rounds.
            mask: A Boolean vector of shape (K,), True for each arm that may be pulled now.  Default: all arms.

        Returns:
            An `Action`: the index of the arm and what the decision rests on.  Ties go to the lowest index.

        Raises:
            InvalidShape: If `arms` or `mask` does not have the shape that the state requires.
            InvalidArgument: If `t` is negative or not a whole number, or `mask` is False for every arm.
            InvalidFeatures: If `arms` contains NaN, infinity or numbers too large to be squared.
        """


class UpdateFn(Protocol):
    """The function `update` of a policy."""

    def __call__(self, state: State, arm: ArrayLike, x: ArrayLike, reward: ArrayLike) -> State:
        """Return the state after one more reward.  The state that is given does not change.

        Rewards may come late and in any order.

        Args:
            state: The state that `init` or the last `update` returned.
            arm: The index of the arm that was pulled, a whole number from 0 to K − 1.
            x: The (d,) features of that arm when it was pulled.
            reward: The reward of that pull, one number.

        Returns:
            The new state, with the same structure and shapes.

        Raises:
            InvalidShape: If `x` is not a vector of d features, or `reward` is not one number.
            InvalidArgument: If `arm` is not the index of an arm.
            InvalidFeatures: If `x` contains NaN, infinity or numbers too large to be squared.
            InvalidReward: If the reward is impossible in the policy's reward family.
            HistoryFull: If the policy keeps rewards one by one, has no room for another, and may not forget.
            NotFinite: If the update would leave NaN or infinity in the state.
        """


class CheckFn(Protocol):
    """The function `check` of a policy."""

    def __call__(self, rewards: ArrayLike, /) -> None:
        """Check that rewards are possible in the policy's reward family.

        Args:
            rewards: One reward or an array of rewards of any shape.

        Raises:
            InvalidReward: If at least one of the rewards is impossible.
        """


class ProbabilitiesFn(Hashed, Protocol):
    """The function `probabilities` of a policy."""

    def __call__(self, state: State, arms: Array, t: Any, mask: Array | None, /) -> Array:
        """Return the probability with which `act` pulls each arm, computed by a formula.

        Args:
            state: The state of the policy.
            arms: The (K, d) matrix of the arms.
            t: The number of decisions made before this one.
            mask: A Boolean vector of shape (K,), True for each arm that may be pulled now; None if all may be pulled.

        Returns:
            The (K,) probabilities, which add up to 1.
        """


class ExtendFn(Hashed, Protocol):
    """The function `extend` of a policy."""

    def __call__(self, state: State, arms: Array, /) -> State:
        """Return the state with the same past and additional fixed arms.

        An agent compiles this function.  Before it calls it, it fills up the arrays of the state that have an entry for
        each arm with zeros for the new arms; what the function returns must not depend on that.

        Args:
            state: The state of the policy, made for K fixed arms.
            arms: The matrix of all arms: the K old rows, then the new rows.

        Returns:
            The state for all rows of `arms`.
        """


class UnrewardedFn(Protocol):
    """The function `unrewarded` of a policy."""

    def __call__(self, state: State, /) -> Array | None:
        """Tell of which fixed arms a state knows no reward.

        An agent gives the row of such an arm to another arm once the arm is retired, by `extend` with the other arm's
        features in that row.

        Args:
            state: The state of the policy.

        Returns:
            A Boolean vector of shape (K,), True for each arm without rewards; None if the state has nothing for each
            arm, so that any row may be given away.
        """


class RedrawFn(Hashed, Protocol):
    """The function `redraw` of a policy."""

    def __call__(self, key: Array, state: State, /) -> State:
        """Return the state that other noise in the last training would have led to.

        Args:
            key: The key from which the noise is drawn.
            state: The state of the policy.

        Returns:
            The state after the last training is repeated with that noise.
        """


class AdoptFn(Protocol):
    """The function `adopt` of a policy."""

    def __call__(self, state: State, fresh: State, /) -> State:
        """Carry over a state that the same algorithm learned with other settings.

        Args:
            state: The state of the policy with the other settings.
            fresh: The state that `init` of this policy returns for the same arms.

        Returns:
            The state with which this policy continues.

        Raises:
            InvalidArgument: If `state` does not hold the past that this policy needs.
            HistoryFull: If this policy has room for fewer rewards than `state` keeps, and may not forget.
        """


class AbsorbFn(Protocol):
    """The function `absorb` of a policy."""

    def __call__(self, state: State, rewards: Weighted, /) -> State:
        """Return the state after rewards that have weights, learned all at once.

        Args:
            state: The state of the policy.
            rewards: The rewards, each of which counts as if it had come as often as its weight says.

        Returns:
            The new state, with the same structure and shapes.

        Raises:
            InvalidArgument: If the policy has a window, out of which such rewards cannot be taken again.
            HistoryFull: If the policy has no room for the rewards.
        """


class PriorFn(Protocol):
    """The function `prior` of a policy."""

    def __call__(self, state: State, mean: ArrayLike, precision: ArrayLike, /) -> Weighted:
        """Return the rewards that stand for a prior of the parameters.

        Args:
            state: The state of the policy, before its first reward.
            mean: The mean of the prior, of shape (d,).
            precision: The precision of the prior, of shape (d, d).

        Returns:
            The rewards, one for each feature.

        Raises:
            InvalidArgument: If the precision is not a symmetric matrix that is larger than the ridge.
        """


class CompleteFn(Protocol):
    """The function `complete` of a policy."""

    def __call__(self, state: State, /) -> State:
        """Compute the arrays of a state that follow from its other arrays.

        The snapshot of a former format may lack such arrays.

        Args:
            state: The state of the policy, with any numbers in these arrays.

        Returns:
            The state with the right numbers in them.
        """


class Policy(NamedTuple):
    """A bandit algorithm: the pure functions `init`, `act` and `update`, and optional fields that may be None.

    Builders such as `explorax.glm_tsl` return policies.

    Attributes:
        init: Returns the state of a policy that has seen no rewards yet; see `InitFn`.
        act: Chooses an arm; see `ActFn`.
        update: Returns the state after one more reward; see `UpdateFn`.
        check: Raises `InvalidReward` for rewards that are impossible in the reward family; see `CheckFn`.
        families: The names of the reward families that the policy may be played on; the first is the family that it
            models.  None: any family.
        probabilities: Returns the probability of each arm, if there is a formula for it; see `ProbabilitiesFn`.
        extend: Adds fixed arms to a state; see `ExtendFn`.
        unrewarded: Tells of which fixed arms a state knows no reward; see `UnrewardedFn`.
        redraw: Repeats the last training of a network with other noise; see `RedrawFn`.
        adopt: Carries over a state that was learned with other settings; see `AdoptFn`.
        complete: Computes the arrays of a state that follow from its other arrays; see `CompleteFn`.
        absorb: Learns rewards that have weights; see `AbsorbFn`.
        prior: Returns the rewards that stand for a prior; see `PriorFn`.
        recipe: The name and the settings with which the policy was built.
        part: What distinguishes the policy from others that learn alike, with which a study merges it (`merged`).
        siblings: The functions `act` of all policies with which it was merged, and its own: one program plays them all.
        stationary: Whether the law of a decision after the forced rounds depends on the state and the arms only, and
            not on t, and draws with different keys are independent.  An agent can then estimate the propensities of
            many decisions at once.

    Example:
        >>> import jax
        >>> import explorax
        >>> policy, arms = explorax.uniform(), jax.numpy.eye(3)
        >>> state = policy.init(arms)
        >>> action = policy.act(jax.random.key(0), state, arms, 0)
        >>> action.scores.shape
        (3,)
        >>> state = policy.update(state, action.arm, arms[action.arm], 1.0)
        >>> int(state.rewards)
        1
    """

    init: InitFn
    act: ActFn
    update: UpdateFn
    check: CheckFn | None = None
    families: tuple[str, ...] | None = None
    probabilities: ProbabilitiesFn | None = None
    extend: ExtendFn | None = None
    unrewarded: UnrewardedFn | None = None
    redraw: RedrawFn | None = None
    adopt: AdoptFn | None = None
    complete: CompleteFn | None = None
    absorb: AbsorbFn | None = None
    prior: PriorFn | None = None
    recipe: Recipe | None = None
    part: Any = None  # a `glm_model.Part`
    siblings: "tuple[ActFn, ...]" = ()
    stationary: bool = False


def explained_by(protocol: type) -> Callable[[Function], Function]:
    """Decorate a function of a policy so that `help` shows the docstring of a protocol's `__call__`."""

    def named(function: Function) -> Function:
        function.__doc__ = protocol.__call__.__doc__
        function.__name__ = protocol.__name__.removesuffix("Fn").lower()
        function.__qualname__ = f"Policy.{function.__name__}"
        return function

    return named
