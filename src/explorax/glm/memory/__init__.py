"""The memories of GLM policies, by the names that the setting `memory` takes.

`base` defines what a memory is.  Each builder below makes one kind from what a policy asks of it (`Wanted`), or refuses
settings that do not fit that kind.  The setting `memory` also takes a builder of your own: `docs/adding-a-memory.md`
shows one.
"""

from collections.abc import Callable

from explorax.errors import InvalidArgument, UnknownName
from explorax.glm.memory.base import Memory, Wanted
from explorax.glm.memory.fixed_arms import FixedArms
from explorax.glm.memory.kept_rows import KeptRows
from explorax.glm.memory.summary import Summary

Builder = Callable[[Wanted], Memory]


def exact(wanted: Wanted) -> FixedArms | KeptRows:
    """Build a memory whose estimate is exact: counts by arm if arms are fixed, else rewards one by one.

    Args:
        wanted: What the policy asks of its memory.

    Returns:
        An empty memory.

    Raises:
        InvalidArgument: If a buffer is asked for.
    """
    check_no_buffer(wanted, "exact")
    return KeptRows.of(wanted) if isinstance(wanted.arms, int) else FixedArms.of(wanted)


def constant(wanted: Wanted) -> Summary:
    """Build a summary of constant size, whose cost of a reward does not grow with time.

    Args:
        wanted: What the policy asks of its memory.

    Returns:
        An empty memory.

    Raises:
        InvalidArgument: If the ridge is 0, if there is a window, or if there are both a buffer and a discount.
    """
    check_prior(wanted, "constant")
    if wanted.window is not None:
        raise InvalidArgument(
            f"window must be None with memory='constant', because a summary cannot take a reward out again, got "
            f"{wanted.window}. Give a discount in place of the window, or memory='refitted'."
        )
    if wanted.discount < 1:
        check_no_buffer(wanted, "constant")
    return Summary.of(wanted)


def refitted(wanted: Wanted) -> Summary:
    """Build a summary that also keeps the rewards, and is refitted to them now and then.

    Args:
        wanted: What the policy asks of its memory.

    Returns:
        An empty memory.

    Raises:
        InvalidArgument: If the ridge is 0, or if a buffer is asked for.
    """
    check_prior(wanted, "refitted")
    check_no_buffer(wanted, "refitted")
    return Summary.of(wanted, wanted.rows())


BUILDERS: dict[str, Builder] = {"exact": exact, "constant": constant, "refitted": refitted}


def builder_of(memory: str | Builder) -> Builder:
    """Return the builder of a memory.

    Args:
        memory: "exact", "constant", "refitted", or a builder, which is returned as it is.

    Returns:
        A function that takes a `Wanted` and returns an empty memory.

    Raises:
        UnknownName: If there is no memory of that name.
    """
    if callable(memory):
        return memory
    if memory not in BUILDERS:
        raise UnknownName("memory", memory, BUILDERS)
    return BUILDERS[memory]


def check_prior(wanted: Wanted, memory: str) -> None:
    """Raise `InvalidArgument` if the ridge is 0, because a summary starts from the ridge."""
    if wanted.ridge == 0:
        raise InvalidArgument(
            f"ridge must be above 0 with memory={memory!r}, because a summary starts from the ridge, got 0. Give "
            "ridge > 0."
        )


def check_no_buffer(wanted: Wanted, memory: str) -> None:
    """Raise `InvalidArgument` if a buffer is asked for in a memory that has none."""
    if wanted.buffer:
        raise InvalidArgument(
            f"buffer must be 0 with memory={memory!r} and discount={wanted.discount}, got {wanted.buffer}. Leave it "
            "out: a buffer belongs to memory='constant' without a discount."
        )
