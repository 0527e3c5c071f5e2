"""Compiled programs, of which a process keeps those that it used last.

A program is compiled for one shape of its arguments.  It occupies some hundred memory maps, of which Linux grants a
process 65 530 (`vm.max_map_count`), and a process that runs out of them is killed in the middle of a compilation.  JAX
keeps thousands of programs, so a process that meets ever new shapes would get there.  Here the least recently used
programs are dropped when there are more than `MOST`, and the older half when half of the memory maps are taken.  If
that is not enough, all that JAX keeps is dropped.  What is needed again is compiled again.
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
    """A compiled function, and when it was last asked for."""

    __slots__ = ("function", "used")

    def __init__(self, function: Any) -> None:
        self.function, self.used = function, next(_clock)


def kept(make: Callable[..., Function]) -> Callable[..., Function]:
    """Decorate a maker of compiled functions: equal arguments give the same function, as long as it is kept.

    A function that is made must be called with arguments of one shape only, so that it is one program.
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


def bounded_jit(function: Function, **options: Any) -> Function:
    """Compile a function like `jax.jit`, and drop its programs when there is no room for another one."""
    programs: Any = jax.jit(function, **options)
    seen = 0

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        nonlocal seen
        result = programs(*given, **named)
        if programs._cache_size() != seen:  # one more was compiled
            seen = programs._cache_size()
            crowded = maps_are_scarce()
            if crowded or seen > MOST:
                drop([programs], crowded)
        return result

    return call


def keep(key: Hashable, program: Program) -> Program:
    """Keep a new program, and drop those that were not used for longest if there is no room for it."""
    crowded = maps_are_scarce()
    with _lock:
        program = _programs.setdefault(key, program)  # another thread may have been faster
        excess = max(len(_programs) // 2 if crowded else len(_programs) - MOST, 0)
        oldest = sorted(_programs, key=lambda each: _programs[each].used)[:excess]
        dropped = [_programs.pop(each).function for each in oldest]
    drop(dropped, crowded)
    return program


def count() -> int:
    """Return how many programs are kept."""
    return len(_programs)


def forget() -> None:
    """Keep none of the programs."""
    with _lock:
        _programs.clear()


def drop(functions: list[Any], at_once: bool) -> None:
    """Free the programs of compiled functions."""
    for function in functions:
        function.clear_cache()
    if functions and at_once:
        functions.clear()
        gc.collect()  # what JAX has of them refers to itself
        if maps_are_scarce():
            jax.clear_caches()
            gc.collect()


def maps_are_scarce() -> bool:
    """Tell whether half of the memory maps of this process are taken; False where there is no such limit."""
    try:
        return 2 * IN_USE.read_bytes().count(b"\n") > int(GRANTED.read_text())
    except OSError:
        return False
