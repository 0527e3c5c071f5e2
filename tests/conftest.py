"""Tests run in double precision; those about float32 pass float32 arrays."""

import atexit
import os
import shutil
import signal
import tempfile

# Programs compiled once serve all test processes.  Set before jax is imported, here and in the processes started later.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="explorax-tests-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    # Where tests look for our own lines, JAX 0.9 logs every program that it takes from there.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)

import jax
import pytest

from explorax import devices
from explorax.garbage import collect_rarely

# Tests are about results and spend their time compiling: programs that are made faster run slower, and that is fine.
# The flags are read when JAX starts, at the first array; processes started later find them in the environment.
if "XLA_FLAGS" not in os.environ:
    os.environ["XLA_FLAGS"] = devices.with_flags(
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_enable_concurrency_optimized_scheduler=false",  # two processes fill two cores; threads would wait
        "--xla_cpu_parallel_codegen_split_count=1",
        "--xla_cpu_use_fusion_emitters=false",  # code in half the time
    )

jax.config.update("jax_enable_x64", True)
collect_rarely()


def pytest_collection_finish():
    """Python does not look for unreachable objects among the tests that were found, which live to the end."""
    collect_rarely()


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Drop compiled programs after each module: some thousands in one process exhaust its memory maps."""
    yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def on_the_cpu():
    """Runs and commands use the CPU, whatever the machine has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_PLATFORMS", "cpu")
        yield


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, also where the tests run in the background of a script and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def bucket():
    """The addresses of folders in a bucket, on a server of this process that speaks S3."""
    import pyarrow.fs
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    credentials = {"AWS_ACCESS_KEY_ID": "fake", "AWS_SECRET_ACCESS_KEY": "fake", "AWS_EC2_METADATA_DISABLED": "true"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in credentials.items():
            patch.setenv(name, value)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        options = f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
        store, _ = pyarrow.fs.FileSystem.from_uri(f"s3://bucket{options}&allow_bucket_creation=true")
        store.create_dir("bucket")
        yield lambda folder, bucket="bucket": f"s3://{bucket}/{folder}{options}"
        server.stop()
