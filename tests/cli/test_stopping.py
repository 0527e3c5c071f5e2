"""How a command ends that is stopped or fails, and what it says is kept."""

import signal
import subprocess
import sys

import pytest

import explorax
import explorax.runner
from explorax import cli

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_ends_of_a_run(tmp_path, capsys, monkeypatch):
    def end(error):
        def run(*arguments, **settings):
            raise error

        monkeypatch.setattr("explorax.runner.run", run)
        code = cli.main(["reproduce", "logistic", "--quick", "--out", str(tmp_path)])
        return code, capsys.readouterr().err

    code, said = end(KeyboardInterrupt())
    assert code == 130
    assert "Run the same command again" in said
    code, said = end(explorax.runner.RunFailed("a worker process was killed"))
    assert code == 1
    assert said.startswith("explorax: a worker process was killed\n")
    assert "Run the same command again" in said
    code, said = end(explorax.errors.CannotWrite("out/summary.csv could not be written: No space left on device."))
    assert code == 1
    assert said.startswith("explorax: out/summary.csv could not be written: No space left on device.\n")
    assert "Run the same command again" in said
    code, said = end(OSError("the host cannot be reached"))
    assert code == 1
    assert said == "explorax: the host cannot be reached\n"
    code, said = end(ImportError("figures need matplotlib: pip install 'explorax[experiments]'"))
    assert code == 2
    assert "pip install" in said
    with pytest.raises(ImportError, match="nonsense"):
        end(ImportError("nonsense"))


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_stopped_while_it_imports(name, code):
    """A signal in the middle of importing JAX, where an exception may get lost."""
    program = f"""if True:
        import signal, sys
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "jax":
                    signal.raise_signal(signal.{name})
        sys.meta_path.insert(0, Finder())
        from explorax.cli import main
        sys.exit(main(["theory", "--features", "5", "--rounds", "99"]))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == "explorax: Stopped. What is finished is kept; run the same command again to continue.\n"
    assert (done.returncode, done.stdout) == (code, "")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_while_it_works(number, code, capsys, monkeypatch):
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr("explorax.cli.commands.show_policies", lambda options: signal.raise_signal(number))
    assert cli.main(["policies"]) == code
    assert capsys.readouterr().err.startswith("explorax: Stopped. What is finished is kept")
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
