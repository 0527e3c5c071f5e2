"""Compilation is told from running."""

import jax

from explorax.runner import compiling


def test_compiling_is_told_from_running():
    with compiling.compile_times() as spans:
        jax.jit(lambda x: 3 * x + 1)(2.0)
    assert 0 < compiling.compile_seconds(spans) <= max(end for _, end in spans) - min(begin for begin, _ in spans)
    with compiling.compile_times() as none:
        pass
    assert compiling.compile_seconds(none) == 0
    assert compiling.compile_seconds([(1.0, 5.0), (2.0, 3.0), (4.0, 6.0), (8.0, 8.5)]) == 5.5  # steps within steps
