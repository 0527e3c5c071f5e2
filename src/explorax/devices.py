"""Settings of JAX and XLA that have to be made before JAX starts.

A flag that the installed jaxlib does not know ends the process as soon as JAX starts or compiles.  Every flag that is
set here or in the tests is therefore tried first, in a process of its own (`known_flags`).
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

# A round is some fifty small kernels.  Started one by one they cost three times what they cost as one recorded graph.
GRAPHS = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION"
# Timing which kernel is best picks another one now and then, whose last bits differ: a seed must mean the same results.
SAME_KERNELS = "--xla_gpu_autotune_level=0"
# Matrix products that XLA writes itself are good only when timed: without, those of cuBLAS are three times faster.
LIBRARY_PRODUCTS = "--xla_gpu_enable_triton_gemm=false"
# A worker has one core: products that are spread over threads would wait for each other.
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
# XLA's older way to write loops compiles a quarter faster; the loops take up to a fifth longer, with the same results.
QUICK_LOOPS = "--xla_cpu_use_fusion_emitters=false"
# Options of LLVM, without which compiling takes an eighth less time.  They order instructions, choose addresses and
# remove repeated loads, but change no arithmetic.
QUICK_CODE = "--xla_backend_extra_options=" + ",".join(
    ("-disable-lsr", "-enable-gvn-memdep=false", "-enable-misched=false", "-enable-post-misched=false")
)

# Starting the CPU reads the flags of all devices, and compiling reads those of LLVM.  jaxlib alone does both in a tenth
# of a second.
PROBE = """
try:
    from jaxlib import xla_client
    client = xla_client.make_cpu_client()
    program = "func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
    where = xla_client.DeviceList(tuple(client.local_devices()[:1]))
    client.compile_and_load(f"module @probe {{ {program} }}", where, xla_client.CompileOptions())
except (ImportError, AttributeError, TypeError):  # of another version
    import jax
    jax.jit(lambda x: x + 1, backend="cpu")(1.0)
"""


def prepare() -> None:
    """Set XLA_FLAGS so that a GPU, if there is one, runs loops as graphs of fixed kernels.

    Call this function before JAX starts.
    """
    gpu = Path("/dev/nvidiactl").exists() and os.environ.get("JAX_PLATFORMS", "") != "cpu"
    if gpu and sys.platform == "linux":
        os.environ["XLA_FLAGS"] = with_flags(GRAPHS, SAME_KERNELS, LIBRARY_PRODUCTS)


def for_one_core(brief: bool) -> dict[str, str]:
    """Return the environment variables for the numerical libraries of a process that has one core and no GPU.

    Args:
        brief: Whether its programs run for less time than they take to compile.

    Returns:
        The variables, which count if they are set before NumPy and JAX are imported.
    """
    return {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "0",  # whatever the caller's
        "NPROC": "1",  # the size of XLA's thread pool
        "XLA_FLAGS": with_flags(ONE_THREAD, *((QUICK_LOOPS, QUICK_CODE) if brief else ())),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def with_flags(*flags: str) -> str:
    """Return the value of XLA_FLAGS with these flags added.

    Args:
        *flags: Flags of XLA, such as `"--xla_gpu_autotune_level=0"`.

    Returns:
        The user's own XLA_FLAGS, followed by those of `flags` that the installed jaxlib knows and that the user has
        not set already.
    """
    given = os.environ.get("XLA_FLAGS", "")
    named = {flag.split("=")[0] for flag in given.split()}
    more = [flag for flag in known_flags(*flags) if flag.split("=")[0] not in named]
    return " ".join([given, *more]).strip()


@cache
def known_flags(*flags: str) -> tuple[str, ...]:
    """Return the flags that the installed jaxlib knows; any other would end the process."""
    if starts_with(flags):
        return flags
    return () if len(flags) == 1 else tuple(flag for one in flags for flag in known_flags(one))


def starts_with(flags: tuple[str, ...]) -> bool:
    """Return whether XLA starts and compiles with these flags, by trying it in another process."""
    environment = os.environ | {"XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
    tried = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return tried.returncode == 0


def decide_inline() -> None:
    """Let small programs on a CPU run in the thread that calls them; call it before JAX starts.

    By default, JAX hands every program to another thread, which takes longer than a decision.  This setting pays in a
    process that mostly makes decisions.  In a process that also computes much else, asynchronous dispatch is faster.
    """
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
