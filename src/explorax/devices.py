"""What JAX should know about the machine before it is imported."""

import os
import sys
from pathlib import Path

# A round is some fifty small kernels.  Started one by one they cost three times what they cost as one recorded graph.
GRAPHS = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION"


def prepare() -> None:
    """Let a GPU, if there is one, run whole loops as graphs; to be called before JAX starts its backend."""
    flags = os.environ.get("XLA_FLAGS", "")
    gpu = Path("/dev/nvidiactl").exists() and os.environ.get("JAX_PLATFORMS", "") != "cpu"
    if gpu and "command_buffer" not in flags and sys.platform == "linux":
        os.environ["XLA_FLAGS"] = f"{flags} {GRAPHS}".strip()
