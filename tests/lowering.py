"""Programs of a GPU on a machine that has none."""

import jax


def lowered_for_a_gpu(function, *given):
    """The program of a GPU, which need not be there; from version 0.11 on JAX wants to know which one it would be."""
    try:
        return jax.jit(function).trace(*given).lower(lowering_platforms=("cuda",)).as_text()
    except RuntimeError as error:
        if "abstract GPU device" not in str(error):
            raise
    sharding = jax.sharding
    device = sharding.AbstractDevice(device_kind="NVIDIA H100", num_cores=132, platform="gpu")
    mesh = sharding.AbstractMesh((1,), ("one",), (sharding.AxisType.Explicit,), abstract_device=device)
    with sharding.use_abstract_mesh(mesh):
        return jax.jit(lambda *again: function(*again)).trace(*given).lower(lowering_platforms=("cuda",)).as_text()
