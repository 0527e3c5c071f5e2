"""Tables, claims, figures and the report of a study, from the records in its directory."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from explorax import claims, parts, record, report, summarize
from explorax.claims import Claim
from explorax.errors import InvalidArgument
from explorax.experiments.study import Figure, Study
from explorax.files import write_atomically
from explorax.places import Place, place
from explorax.record import Result
from explorax.report import Picture
from explorax.runner.journal import read_manifest
from explorax.runner.lock import tidy
from explorax.runner.rungs import Plan
from explorax.summarize import Summary
from explorax.text import Table, listed

REGRET = "regret.parquet"
CAPTIONS = {"regret": "Mean cumulative regret after n rounds", "reward": "Mean average reward in the first n rounds"}
LINEAR = Figure()  # no figure in addition to the one with linear axes


class Outputs(NamedTuple):
    """The results of a run and the files that it has written.

    Attributes:
        out: The directory of the run.
        measure: "regret" or "reward".
        files: All files that were written, except the parts.
        results: The records of each curve in each panel.
        summaries: One row of the table for each curve and panel.
        tables: What the study shows in place of this table; none if it has no tables of its own.
        claims: The claims, judged: each one for all panels together, then for each panel.
        done: Number of finished tasks.
        tasks: Number of all tasks.
        warnings: What was unusual about the records, as sentences.
    """

    out: Place
    measure: str
    files: list[Place]
    results: list[Result]
    summaries: list[Summary]
    tables: list[Table]
    claims: list[Claim]
    done: int
    tasks: int
    warnings: list[str]

    @property
    def complete(self) -> bool:
        """Whether all tasks are finished."""
        return self.done == self.tasks


def names(study: Study) -> list[str]:
    """Return the names of the files that are written about a study in addition to its records."""
    drawn = [f"{study.stem}{more}.{kind}" for more in ("", "-log") for kind in ("png", "pdf")]
    return [REGRET, "summary.csv", "claims.json", "report.html", *drawn]


def rebuild(study: Study, out: Place | str, figure: Figure = LINEAR) -> Outputs:
    """Write the tables, claims, figures and report of a run anew from its records.

    The run need not be finished: the report then contains what is there.

    Args:
        study: The study that was run, as `explorax.experiments.settings.study_in` finds it.
        out: The directory of the run.
        figure: Figures to draw in addition to the one with linear axes.

    Returns:
        The results, and the files that were written.

    Raises:
        InvalidArgument: If no task of the study is finished in the directory, or the figure cannot be drawn.
    """
    out = place(out)
    study.check_figure(figure)
    if (out / record.MANIFEST).exists():
        tidy(out)
    return write(study, out, figure)


def write(study: Study, out: Place, figure: Figure, warnings: Sequence[str] = ()) -> Outputs:
    """Write the tables, claims, figures and report of a study into the directory of its records.

    Args:
        study: The study that was run.
        out: The directory of the run.
        figure: Figures to draw in addition to the one with linear axes.
        warnings: Sentences about the records that are known already.

    Returns:
        The results, and the files that were written.

    Raises:
        InvalidArgument: If no task of the study is finished in the directory.
    """
    manifest = read_manifest(out)
    tasks = manifest["tasks"]["all"]
    results, done, more = collect(out, study, manifest)
    if not results:
        raise InvalidArgument(f"{out} holds no finished task of the study. Run the study first.")
    files: list[Place] = []
    if done == tasks:
        record.write(out / REGRET, results, {"settings_digest": record.settings_digest(study.settings())})
        files.append(out / REGRET)
    summaries = summarize.summarize(results, study.measure)
    tags = {panel.label: panel.tags for panel in study.panels}
    summarize.write_summary(out / "summary.csv", summaries, study.measure, tags, study.columns(results))
    tables, judged = study.tables(results), study.claims(results)
    claims.write_claims(out / "claims.json", judged)
    files += [out / "summary.csv", out / "claims.json", out / record.MANIFEST]
    drawn, pictures = draw(out, study, study.shown(results), figure)
    title = study.title + (f": unfinished, {done} of {tasks} tasks" if done < tasks else "")
    page = report.report(
        title,
        about=study.about,
        pictures=pictures,
        claims=judged,
        tables=tables,
        summaries=summaries,
        measure=study.measure,
        manifest=manifest,
    )
    report.write_report(out / "report.html", page)
    files += [*drawn, out / "report.html"]
    warnings = list(dict.fromkeys([*warnings, *more]))
    return Outputs(out, study.measure, files, results, summaries, tables, judged, done, tasks, warnings)


def collect(out: Place, study: Study, manifest: Mapping[str, Any]) -> tuple[list[Result], int, list[str]]:
    """Return the results of the finished tasks, the number of these tasks, and warnings about the records."""
    curves, panels = ([one.label for one in them] for them in (study.curves, study.panels))
    found = parts.read_parts(out / record.PARTS)
    finished = {digest: part.results for digest, part in found.tasks.items()}
    plan = Plan(study, manifest["maker"]["together"], finished.items())
    several = [results for digest, results in finished.items() if digest in plan.digests]
    done = len(several)
    if not several and (out / REGRET).exists():  # of a finished run whose parts were thrown away
        several, done = [record.read(out / REGRET).results], manifest["tasks"]["all"]
    merged = record.combine((result for results in several for result in results), curves, panels)
    return merged.results, done, found.warnings + merged.warnings


def draw(out: Place, study: Study, results: Sequence[Result], figure: Figure) -> tuple[list[Place], list[Picture]]:
    """Write the figures of a study; return their paths, and the pictures of the report."""
    from explorax import plot  # here, so that workers need not load matplotlib

    curves = summarize.series(results, study.measure)
    counts = sorted({len(result.records.instances) for result in results})
    over = f"{counts[0]} instances" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} instances"
    panels, labels = (list(dict.fromkeys(getattr(curve, name) for curve in curves)) for name in ("panel", "curve"))
    files, pictures = [], []
    for one in study.drawings(results, figure):
        drawn = plot.figure(curves, measure=study.measure, scale=one.scale, bounds=one.bounds, optima=study.optima)
        content = {kind: plot.to_bytes(drawn, kind) for kind in ("png", "pdf")}
        for kind in content:
            files.append(out / f"{study.stem}{one.suffix}.{kind}")
            write_atomically(files[-1], content[kind])
        axes = {"linear": "linear", "log": "logarithmic"}[one.scale]
        said = f"{CAPTIONS[study.measure]} over {over}, on {axes} axes. Bands are ± 1 standard error."
        described = (
            f"Line chart with {axes} axes: {CAPTIONS[study.measure].lower()}, with a panel for "
            f"{listed(panels)} and a line for {listed(labels)}. The tables have the values after the last round."
        )
        pictures.append(Picture(content["png"], " ".join(filter(None, [said, one.remark])), described))
    return files, pictures
