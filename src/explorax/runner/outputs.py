"""From the records in a directory to its tables, claims, figures and report."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from explorax import record, summarize
from explorax.environments.glm import ARMS
from explorax.errors import InvalidArgument
from explorax.experiments import logistic
from explorax.experiments.study import Study, from_settings
from explorax.record import Result
from explorax.runner.tasks import expand
from explorax.summarize import Claim, Series, Summary

REGRET = "regret.parquet"
FAMILIES = {"logistic": "bernoulli"}  # environment -> family, where their names differ
TITLES = {"logistic": "Regret in logistic bandits (Figure 1)"}
CLAIMS: dict[str, Callable[[Sequence[Result]], list[Claim]]] = {"logistic": logistic.claims}  # by the study's name


class Figure(NamedTuple):
    """What is drawn beside the figure on linear axes."""

    log: bool = False  # one with logarithmic axes
    bound: bool = False  # with the theorems' bounds, which need such axes


LINEAR = Figure()


class Outputs(NamedTuple):
    """What a run has left in its directory."""

    out: Path
    files: list[Path]  # all that were written, but for the parts
    results: list[Result]
    summaries: list[Summary]
    claims: list[Claim]
    done: int  # finished tasks
    tasks: int  # all tasks
    warnings: list[str]

    @property
    def complete(self) -> bool:
        """Whether all tasks are finished."""
        return self.done == self.tasks


def rebuild(out: Path | str, figure: Figure = LINEAR) -> Outputs:
    """Write tables, claims, figures and the report anew from the records, also of a run that is not finished."""
    return write(Path(out), figure)


def kept(out: Path | str) -> str:
    """How much is there of a run that was stopped, and how to go on."""
    try:
        tasks = record.read_manifest(Path(out))["tasks"]
    except InvalidArgument:
        return "nothing was finished yet; run the same command again"
    return f"{tasks['done']} of {tasks['all']} tasks are kept in {out}; run the same command again to go on from there"


def write(out: Path, figure: Figure, warnings: Sequence[str] = ()) -> Outputs:
    """Write all that follows from the records in a directory."""
    manifest = record.read_manifest(out)
    study = from_settings(manifest["settings"])
    tasks = manifest["tasks"]["all"]
    results, done, more = collect(out, study, manifest)
    if not results:
        raise InvalidArgument(f"{out} holds no finished task yet: run the study first")
    files = []
    if done == tasks:
        record.write(out / REGRET, results, {"settings_digest": manifest["settings_digest"]})
        files.append(out / REGRET)
    summaries = summarize.summarize(results)
    summarize.write_summary(out / "summary.csv", summaries)
    applies = study.name == study.environment  # a study of one's own may have the name of another experiment
    claims = CLAIMS[study.name](results) if applies and study.name in CLAIMS else []
    summarize.write_claims(out / "claims.json", claims)
    files += [out / "summary.csv", out / "claims.json", out / record.MANIFEST]
    title = TITLES[study.name] if claims else f"Regret in the study {study.name!r}"
    if done < tasks:
        title += f": unfinished, {done} of {tasks} tasks"
    files += draw(out, study, summarize.series(results), figure, title, claims, summaries, manifest)
    return Outputs(out, files, results, summaries, claims, done, tasks, list(dict.fromkeys([*warnings, *more])))


def collect(out: Path, study: Study, manifest: Mapping[str, Any]) -> tuple[list[Result], int, list[str]]:
    """The results of the finished tasks, how many these are, and what was odd about them."""
    order = [curve.label for curve in study.curves]
    wanted = {task.digest for task in expand(study, manifest["maker"]["together"])}
    found = record.read_parts(out / record.PARTS)
    parts = [part.results for digest, part in found.tasks.items() if digest in wanted]
    if not parts and (out / REGRET).exists():  # of a finished run whose parts were thrown away
        return record.read(out / REGRET).results, manifest["tasks"]["all"], found.warnings
    merged = record.combine((result for results in parts for result in results), order)
    return merged.results, len(parts), found.warnings + merged.warnings


def draw(
    out: Path,
    study: Study,
    curves: Sequence[Series],
    figure: Figure,
    title: str,
    claims: Sequence[Claim],
    summaries: Sequence[Summary],
    manifest: Mapping[str, Any],
) -> list[Path]:
    """Write the figures and the report that shows them; returns their paths."""
    from explorax import plot  # here, so that workers need not load matplotlib
    from explorax.report import Picture, report, write_report

    counts = sorted({row.instances for row in summaries})
    caption = "Mean cumulative regret ± 1 standard error over "
    caption += f"{counts[0]} instances" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} instances"
    pictures, files = [], []
    for scale in ("linear", "log") if figure.log or figure.bound else ("linear",):
        stem = "figure1" if scale == "linear" else "figure1-log"
        over = plot.bounds(curves, arms=arms_of(study), family=family_of(study)) if figure.bound else []
        drawn = plot.figure(curves, scale=scale, bounds=over if scale == "log" else ())
        for kind in ("png", "pdf"):
            files.append(out / f"{stem}.{kind}")
            plot.save(drawn, files[-1])
        about = f"{caption}; {scale} axes."
        described = f"Regret over rounds, a panel for each of d = {', '.join(map(str, study.dims))}; {scale} axes"
        pictures.append(Picture(plot.to_bytes(drawn), about, described))
    page = report(title, pictures=pictures, claims=claims, summaries=summaries, manifest=manifest)
    write_report(out / "report.html", page)
    return [*files, out / "report.html"]


def arms_of(study: Study) -> int:
    """K, the number of arms on offer."""
    given = study.environment_settings
    return len(given["fixed_arms"]) if given.get("fixed_arms") is not None else given.get("arms") or ARMS


def family_of(study: Study) -> str:
    """The reward family of the study's environment."""
    return FAMILIES.get(study.environment, study.environment)
