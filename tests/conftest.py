"""Tests run in double precision; those about float32 pass float32 arrays."""

import jax

jax.config.update("jax_enable_x64", True)
