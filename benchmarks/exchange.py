"""Logs given to Vowpal Wabbit and to the Open Bandit Pipeline, and what reading and exporting long logs takes.

    python benchmarks/exchange.py [--vw PYTHON] [--obp PYTHON] [--rows N …]

    vw      text of `to_vw` parsed by Vowpal Wabbit: no warning, as many decisions and features as the log has, the same
            costs and probabilities, and the same average cost of the arm that comes first
    obp     the dictionary of `to_obp` evaluated by obp 0.4.1 or later: the same estimate by inverse propensities, and a
            regression model that takes contexts and actions
    rows    seconds and the largest size of the process, in MB, for `read_log` and exports of logs of N decisions

PYTHON is an interpreter that has the package (`pip install numpy vowpalwabbit==9.11.9`; `obp_environment.py` makes one
for obp), by default this one.  A part whose package is not there is skipped.  Names have spaces, colons, bars, quotes
and other alphabets.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("red hot", "a:b|c", 'quo"te', "ünï, %20", "7")
CLOSE = 1e-5  # Vowpal Wabbit computes in single precision


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vw", default=sys.executable, metavar="PYTHON", help="an interpreter with vowpalwabbit")
    parser.add_argument("--obp", default=sys.executable, metavar="PYTHON", help="an interpreter with obp")
    parser.add_argument(
        "--rows", type=int, nargs="*", default=[], metavar="N", help="lengths of logs to read and export"
    )
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        part, *rest = options.inside
        INSIDE[part](*rest)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, data in logs().items():
            compare(name, data, Path(folder), options)
        for rows in options.rows:
            for what in ("read_log", ".parquet", ".csv", ".db"):
                ask(sys.executable, "rows", str(long_log(Path(folder), rows)), what)


def logs() -> dict[str, Any]:
    """Return logs of each kind."""
    from explorax import LoggedData

    rng, n, k = np.random.default_rng(0), 500, len(NAMES)
    every = rng.dirichlet(np.ones(k), n)
    arms = np.array([rng.choice(k, p=chances) for chances in every])
    offered = every > 0.05
    offered[np.arange(n), arms] = True
    usual = {"names": NAMES, "propensities": every[np.arange(n), arms]}
    contexts, rewards = rng.normal(size=(n, 3)), rng.normal(size=n)
    chosen = [NAMES[arm] for arm in arms]
    return {
        "contexts": LoggedData.of(chosen, rewards, contexts=contexts, **usual),
        "fixed": LoggedData.of(chosen, rewards, features=rng.normal(size=(k, 4)), offered=offered, **usual),
        "given": LoggedData.of(chosen, rewards, features=rng.normal(size=(n, k, 4)), **usual),
        "nothing": LoggedData.of(chosen, rewards, offered=offered, **usual),
    }


def compare(name: str, data: Any, folder: Path, options: argparse.Namespace) -> None:
    """Give a log to both packages."""
    from explorax import to_obp, to_vw

    for form in ("adf", "cb") if name != "given" else ("adf",):
        text = folder / f"{name}.{form}"
        to_vw(data, text, format=form)
        offered = np.ones((len(data), data.n_arms), bool) if data.offered is None else data.offered
        first = np.argmax(offered, axis=1) if form == "adf" else 0  # with --cb any arm may be predicted
        told = {
            "form": form,
            "arms": data.n_arms,
            "decisions": len(data),
            "costs": (-data.rewards).tolist(),
            "chances": data.propensities.tolist(),
            "loss": float(np.mean(np.where(data.arms == first, -data.rewards / data.propensities, 0.0))),
            "features": 4 if name in ("fixed", "given") else 1,  # Vowpal Wabbit drops the zeros of unit vectors
        }
        (folder / f"{text.name}.json").write_text(json.dumps(told))
        ask(options.vw, "vw", str(text), f"{text}.json")
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in to_obp(data).items()}
    (folder / "obp.json").write_text(json.dumps(plain))
    weights = 1 / data.n_arms / data.propensities
    ask(options.obp, "obp", str(folder / "obp.json"), repr(float(np.mean(weights * data.rewards))))


def ask(python: str, *arguments: str) -> None:
    """Do a part in a process of its own, by an interpreter that has what it needs."""
    done = subprocess.run([python, __file__, "--inside", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}:\n{done.stdout}{done.stderr}")
    print(done.stdout, end="")


def inside_vw(text: str, told: str) -> None:
    """Compare what Vowpal Wabbit makes of a text."""
    try:
        from vowpalwabbit import LabelType, Workspace  # type: ignore[import-not-found]
    except ImportError:
        print(f"vw   {Path(text).name}: skipped, there is no vowpalwabbit")
        return
    expected = json.loads(Path(told).read_text())
    learner = "--cb_adf" if expected["form"] == "adf" else f"--cb {expected['arms']}"
    workspace = Workspace(f"{learner} -t --noconstant --data {text}", enable_logging=True)
    workspace.run_parser()
    workspace.finish()
    said = "\n".join(workspace.get_log())
    assert not any(word in said.lower() for word in ("warn", "malformed", "error", "invalid")), said
    found = dict(line.split(" = ", 1) for line in said.splitlines() if " = " in line)
    assert int(found["number of examples"]) == expected["decisions"], said
    loss = float(found["average loss"])
    assert abs(loss - expected["loss"]) <= CLOSE * (1 + abs(loss)), (loss, expected["loss"])
    parser = Workspace(f"{learner} --noconstant --quiet")
    costs, chances, sizes = [], [], set()
    blocks = Path(text).read_text().strip().split("\n\n" if expected["form"] == "adf" else "\n")
    for block in blocks:
        parsed = parser.parse(block, LabelType.CONTEXTUAL_BANDIT)
        for line in parsed if isinstance(parsed, list) else [parsed]:
            for one in line.get_label(LabelType.CONTEXTUAL_BANDIT).costs:
                if one.probability > 0:
                    costs.append(one.cost)
                    chances.append(one.probability)
            sizes |= {line.num_features_in(name) for name in "ax" if line.num_features_in(name)}
        parser.finish_example(parsed)
    np.testing.assert_allclose(costs, expected["costs"], rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(chances, expected["chances"], rtol=CLOSE)
    assert expected["form"] == "cb" or sizes == {expected["features"]}, sizes
    print(f"vw   {Path(text).name}: {len(costs)} decisions, no warning, average loss {loss:.6f} as in the log")


def inside_obp(feedback: str, expected: str) -> None:
    """Compare what obp makes of a dictionary."""
    try:
        from obp_without_torch import ope
        from sklearn.linear_model import Ridge
    except ImportError as error:
        print(f"obp  skipped: {error}")
        return
    given = {
        key: np.array(value) if isinstance(value, list) else value
        for key, value in json.loads(Path(feedback).read_text()).items()
    }
    target = np.full((given["n_rounds"], given["n_actions"], 1), 1 / given["n_actions"])
    model = ope.RegressionModel(
        n_actions=given["n_actions"], base_model=Ridge(), action_context=given["action_context"]
    )
    predicted = model.fit_predict(given["context"], given["action"], given["reward"], random_state=0)
    estimators = [ope.InverseProbabilityWeighting(), ope.DirectMethod(), ope.DoublyRobust()]
    evaluation = ope.OffPolicyEvaluation(bandit_feedback=given, ope_estimators=estimators)
    found = evaluation.estimate_policy_values(action_dist=target, estimated_rewards_by_reg_model=predicted)
    assert abs(found["ipw"] - float(expected)) < 1e-12, (found, expected)
    assert all(np.isfinite(value) for value in found.values()), found
    listed = ", ".join(f"{name} {value:.6f}" for name, value in found.items())
    print(f"obp  {listed}; ipw is what the log says")


def long_log(folder: Path, rows: int) -> Path:
    """Return a log of many decisions among 10 arms with 10 features, all with rewards."""
    import sqlite3

    from explorax import Agent, uniform

    path = folder / f"{rows}.db"
    if path.exists():
        return path
    agent = Agent(uniform(), arms=np.random.default_rng(0).normal(size=(10, 10)), log=path)
    agent.learn(agent.choose().id, 1.0)
    agent.close()
    connection = sqlite3.connect(path)
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO decisions "
        "SELECT i, 2 * i + 1, time, i, i, version, arm, row, features, propensity, stderr, forced, converged, "
        "deferred, names, arms, context, every FROM decisions, n WHERE id = 0",
        (rows - 1,),
    )
    connection.execute("INSERT INTO rewards SELECT id, 2 * id + 2, time, 0, 1.0, 0 FROM decisions WHERE id > 0")
    connection.commit()
    connection.close()
    return path


def inside_rows(path: str, what: str) -> None:
    """Read or export a long log."""
    import explorax

    _ = explorax.read_log, explorax.export_log  # imported before the size is looked at
    before, start = largest(), time.perf_counter()
    if what == "read_log":
        count = len(explorax.read_log(path))
    else:
        count = explorax.export_log(path, Path(path).with_name(f"{Path(path).stem}-out{what}"))
    took, after = time.perf_counter() - start, largest()
    print(f"rows {count}: {what} took {took:.1f} s and {(after - before) / 1024:.0f} MB")


def largest() -> int:
    """Return the largest size that this process has had, in kB, as Linux tells it."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0])


INSIDE = {"vw": inside_vw, "obp": inside_obp, "rows": inside_rows}

if __name__ == "__main__":
    main()
