"""What JAX should know about the machine before it is imported."""

import os
import sys
from pathlib import Path

# A round is some fifty small kernels.  Started one by one they cost three times what they cost as one recorded graph.
GRAPHS = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION"
# Timing which kernel is best picks another one now and then, whose last bits differ: a seed must mean the same results.
SAME_KERNELS = "--xla_gpu_autotune_level=0"
# Matrix products that XLA writes itself are good only when timed: without, those of cuBLAS are three times faster.
LIBRARY_PRODUCTS = "--xla_gpu_enable_triton_gemm=false"


def prepare() -> None:
    """Let a GPU, if there is one, run whole loops as graphs of fixed kernels; to be called before JAX starts."""
    flags = os.environ.get("XLA_FLAGS", "")
    gpu = Path("/dev/nvidiactl").exists() and os.environ.get("JAX_PLATFORMS", "") != "cpu"
    if gpu and sys.platform == "linux":
        more = [flag for flag in (GRAPHS, SAME_KERNELS, LIBRARY_PRODUCTS) if flag.split("=")[0] not in flags]
        os.environ["XLA_FLAGS"] = " ".join([flags, *more]).strip()


def decide_inline() -> None:
    """Let small programs on a CPU run in the thread that calls them; to be called before JAX starts.

    JAX otherwise hands every program to a thread of its own, which takes longer than a decision.  Worth it in a process
    whose work is decisions; one that computes much beside them loses what running ahead gains.
    """
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
