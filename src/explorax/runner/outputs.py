"""From the records in a directory to its tables, claims, figures and report."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from explorax import record, report, summarize
from explorax.errors import CannotWrite, InvalidArgument
from explorax.experiments.study import MEASURED, Figure, Study
from explorax.files import remove_leftovers
from explorax.record import Result
from explorax.report import Picture
from explorax.runner.journal import locked, read_manifest
from explorax.runner.tasks import expand
from explorax.summarize import Claim, Summary

REGRET = "regret.parquet"
CAPTIONS = {"regret": "Mean cumulative regret", "reward": "Mean of the average reward so far"}
LINEAR = Figure()  # and no figure beside the usual one


class Outputs(NamedTuple):
    """What a run has left in its directory."""

    out: Path
    measure: str
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


def names(study: Study) -> list[str]:
    """The files that are written of a study beside its records."""
    drawn = [f"{study.stem}{more}.{kind}" for more in ("", "-log") for kind in ("png", "pdf")]
    return [REGRET, "summary.csv", "claims.json", "report.html", *drawn]


def rebuild(study: Study, out: Path | str, figure: Figure = LINEAR) -> Outputs:
    """Write tables, claims, figures and the report anew from the records, also of a run that is not finished.

    Args:
        study: The study that was run there, as `experiments.settings.study_in` finds it.
        out: The directory of the run.
        figure: What is drawn beside the usual figure.

    Returns:
        What is in the directory now.

    Raises:
        InvalidArgument: The directory holds no finished task of the study, or such a figure cannot be drawn of it.
    """
    out = Path(out)
    study.check_figure(figure)
    if (out / record.MANIFEST).exists():
        with suppress(InvalidArgument, CannotWrite), locked(out):  # else a run goes on there, which may be writing
            remove_leftovers(out)
    return write(study, out, figure)


def write(study: Study, out: Path, figure: Figure, warnings: Sequence[str] = ()) -> Outputs:
    """Write all that follows from the records of a study in a directory."""
    manifest = read_manifest(out)
    tasks = manifest["tasks"]["all"]
    results, done, more = collect(out, study, manifest)
    if not results:
        raise InvalidArgument(f"{out} holds no finished task yet: run the study first")
    files = []
    if done == tasks:
        record.write(out / REGRET, results, {"settings_digest": record.settings_digest(study.settings())})
        files.append(out / REGRET)
    summaries = summarize.summarize(results, study.measure)
    summarize.write_summary(
        out / "summary.csv", summaries, study.measure, {panel.label: panel.tags for panel in study.panels}
    )
    claims = study.claims(results)
    summarize.write_claims(out / "claims.json", claims)
    files += [out / "summary.csv", out / "claims.json", out / record.MANIFEST]
    drawn, pictures = draw(out, study, results, figure)
    title = study.title + (f": unfinished, {done} of {tasks} tasks" if done < tasks else "")
    page = report.report(
        title, pictures=pictures, claims=claims, summaries=summaries, measure=study.measure, manifest=manifest
    )
    report.write_report(out / "report.html", page)
    files += [*drawn, out / "report.html"]
    warnings = list(dict.fromkeys([*warnings, *more]))
    return Outputs(out, study.measure, files, results, summaries, claims, done, tasks, warnings)


def collect(out: Path, study: Study, manifest: Mapping[str, Any]) -> tuple[list[Result], int, list[str]]:
    """The results of the finished tasks, how many these are, and what was odd about them."""
    curves, panels = ([one.label for one in several] for several in (study.curves, study.panels))
    wanted = {task.digest for task in expand(study, manifest["maker"]["together"])}
    found = record.read_parts(out / record.PARTS)
    parts = [part.results for digest, part in found.tasks.items() if digest in wanted]
    done = len(parts)
    if not parts and (out / REGRET).exists():  # of a finished run whose parts were thrown away
        parts, done = [record.read(out / REGRET).results], manifest["tasks"]["all"]
    merged = record.combine((result for results in parts for result in results), curves, panels)
    return merged.results, done, found.warnings + merged.warnings


def draw(out: Path, study: Study, results: Sequence[Result], figure: Figure) -> tuple[list[Path], list[Picture]]:
    """Write the figures; returns their paths, and pictures of them for the report."""
    from explorax import plot  # here, so that workers need not load matplotlib

    curves = summarize.series(results, study.measure)
    counts = sorted({len(result.records.instances) for result in results})
    caption = f"{CAPTIONS[study.measure]} ± 1 standard error over "
    caption += f"{counts[0]} instances" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} instances"
    shown = ", ".join(dict.fromkeys(curve.panel for curve in curves))
    files, pictures = [], []
    for one in study.drawings(results, figure):
        drawn = plot.figure(curves, measure=study.measure, scale=one.scale, bounds=one.bounds, optima=study.optima)
        for kind in ("png", "pdf"):
            files.append(out / f"{study.stem}{one.suffix}.{kind}")
            plot.save(drawn, files[-1])
        said = "; ".join(filter(None, [caption, one.remark, f"{one.scale} axes."]))
        described = f"{MEASURED[study.measure]} over rounds, a panel for each of {shown}; {one.scale} axes"
        pictures.append(Picture(plot.to_bytes(drawn), said, described))
    return files, pictures
