"""What GLM policies remember, by the name that the setting `memory` has.

`base` says what a memory is.  Each builder below makes one kind from what a policy wants of it (`Wanted`), or refuses
settings that do not fit it.  The setting takes a builder of your own as well: `docs/adding-a-memory.md` shows one.
"""

from collections.abc import Callable

from explorax.errors import InvalidArgument, UnknownName
from explorax.glm.memory.base import Memory, Wanted
from explorax.glm.memory.fixed_arms import FixedArms
from explorax.glm.memory.kept_rows import KeptRows
from explorax.glm.memory.summary import Summary

Builder = Callable[[Wanted], Memory]


def exact(wanted: Wanted) -> FixedArms | KeptRows:
    """Return a memory whose estimate is the exact one: by arm where arms are fixed, else reward by reward."""
    check_no_buffer(wanted, "exact")
    return KeptRows.of(wanted) if isinstance(wanted.arms, int) else FixedArms.of(wanted)


def constant(wanted: Wanted) -> Summary:
    """Return a summary of constant size."""
    check_prior(wanted, "constant")
    if wanted.window is not None:
        raise InvalidArgument(
            f"window={wanted.window} with memory='constant': a summary cannot take a reward out again; "
            "give a discount in place of the window, or memory='refitted'"
        )
    if wanted.discount < 1:
        check_no_buffer(wanted, "constant")
    return Summary.of(wanted)


def refitted(wanted: Wanted) -> Summary:
    """Return a summary that is refitted now and then to the rewards, which are kept."""
    check_prior(wanted, "refitted")
    check_no_buffer(wanted, "refitted")
    return Summary.of(wanted, wanted.rows())


BUILDERS: dict[str, Builder] = {"exact": exact, "constant": constant, "refitted": refitted}


def builder_of(memory: str | Builder) -> Builder:
    """Return the builder of a memory, by its name or as it is.

    Raises:
        UnknownName: There is no memory of that name.
    """
    if callable(memory):
        return memory
    if memory not in BUILDERS:
        raise UnknownName("memory", memory, BUILDERS)
    return BUILDERS[memory]


def check_prior(wanted: Wanted, memory: str) -> None:
    """Raise unless there is a ridge to start from."""
    if wanted.ridge == 0:
        raise InvalidArgument(f"ridge=0 with memory={memory!r}: a summary starts from the ridge; give ridge > 0")


def check_no_buffer(wanted: Wanted, memory: str) -> None:
    """Raise if a buffer is asked for."""
    if wanted.buffer:
        raise InvalidArgument(
            f"buffer={wanted.buffer} with memory={memory!r} and discount={wanted.discount}: a buffer belongs to "
            "memory='constant' without a discount; leave it out"
        )
