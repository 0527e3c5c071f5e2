"""A cache of compiled programs that drops the least recently used ones.

A program is compiled for one shape of its arguments.  It occupies some hundred memory maps, of which Linux grants a
process 65 530 (`vm.max_map_count`), and a process that runs out of them is killed in the middle of a compilation.  JAX
keeps thousands of programs, so a process that meets ever new shapes would run out.  Here, the least recently used
programs are dropped when there are more than `MOST` of them, and the older half when half of the memory maps are taken.
If that is not enough, all programs that JAX keeps are dropped.  A program that is needed again is compiled again.
"""

import functools
import gc
import itertools
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import jax

MOST = 512  # programs
IN_USE, GRANTED = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")

Function = Callable[..., Any]

_programs: dict[Hashable, "Program"] = {}
_lock = threading.Lock()
_clock = itertools.count()


class Program:
    """A compiled function, and the time of its last use."""

    __slots__ = ("function", "used")

    def __init__(self, function: Any) -> None:
        self.function, self.used = function, next(_clock)


def kept(make: Callable[..., Function]) -> Callable[..., Function]:
    """Decorate a function that makes compiled functions, so that equal arguments give the same one while it is kept.

    Args:
        make: A function of hashable arguments that returns a compiled function.  The latter must be called with
            arguments of one shape only, so that it is one program.

    Returns:
        The function, with a cache that is shared by all functions decorated in this way.
    """

    @functools.wraps(make)
    def find(*what: Hashable) -> Function:
        key = (make, *what)
        found = _programs.get(key)  # without a lock, which every decision would pay for
        if found is None:
            found = keep(key, Program(make(*what)))
        found.used = next(_clock)
        return found.function

    return find


class Bounded:
    """A function that is compiled like with `jax.jit`, whose programs are dropped if there is no room for another."""

    def __init__(self, function: Function, **options: Any) -> None:
        functools.update_wrapper(self, function)
        self.programs: Any = jax.jit(function, **options)
        self.seen = 0

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the compiled function."""
        result = self.programs(*given, **named)
        if self.programs._cache_size() != self.seen:  # one more was compiled
            self.seen = self.programs._cache_size()
            crowded = maps_are_scarce()
            if crowded or self.seen > MOST:
                drop([self.programs], crowded)
        return result

    def compile(self, *given: Any) -> None:
        """Compile the program for arguments of the shapes given, so that a call need not do it."""
        self.programs.lower(*given).compile()  # JAX finds it again when the function is called


def bounded_jit(function: Function, **options: Any) -> Bounded:
    """Compile a function like `jax.jit`, and drop its programs if there is no room for another one."""
    return Bounded(function, **options)


def keep(key: Hashable, program: Program) -> Program:
    """Add a program to the cache, and drop the least recently used ones if there is no room for it."""
    crowded = maps_are_scarce()
    with _lock:
        program = _programs.setdefault(key, program)  # another thread may have been faster
        excess = max(len(_programs) // 2 if crowded else len(_programs) - MOST, 0)
        oldest = sorted(_programs, key=lambda each: _programs[each].used)[:excess]
        dropped = [_programs.pop(each).function for each in oldest]
    drop(dropped, crowded)
    return program


def count() -> int:
    """Return the number of programs in the cache."""
    return len(_programs)


def forget() -> None:
    """Clear the cache of programs."""
    with _lock:
        _programs.clear()


def drop(functions: list[Any], at_once: bool) -> None:
    """Drop the programs of compiled functions; if `at_once`, collect garbage until memory maps are free again."""
    for function in functions:
        function.clear_cache()
    if functions and at_once:
        functions.clear()
        gc.collect()  # what JAX has of them refers to itself
        if maps_are_scarce():
            jax.clear_caches()
            gc.collect()


def maps_are_scarce() -> bool:
    """Return whether half of the memory maps of this process are taken; False if the system has no such limit."""
    try:
        return 2 * IN_USE.read_bytes().count(b"\n") > int(GRANTED.read_text())
    except OSError:
        return False
