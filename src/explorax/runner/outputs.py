"""From the records in a directory to its tables, claims, figures and report."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from explorax import record, report, summarize
from explorax.environments.glm import ARMS
from explorax.errors import CannotWrite, InvalidArgument
from explorax.experiments import deep, logistic, theorems
from explorax.experiments.study import Panel, Study, from_settings
from explorax.files import remove_leftovers
from explorax.record import Result
from explorax.report import Picture
from explorax.runner.journal import read_manifest
from explorax.runner.lock import locked
from explorax.runner.tasks import expand
from explorax.summarize import Claim, Series, Summary

if TYPE_CHECKING:
    from explorax.plot import Bound

REGRET = "regret.parquet"
FAMILIES = {"logistic": "bernoulli"}  # environment -> family, where their names differ
TITLES = {"regret": "Regret", "reward": "Average reward"}
CAPTIONS = {"regret": "Mean cumulative regret", "reward": "Mean of the average reward so far"}
COMPARED = (
    "thin: the worst instance; dashed: the lowest bound of an instance, from the longest exploration τ (dotted) on; "
    "grey: the most regret that any policy could have"
)


class Experiment(NamedTuple):
    """What is said and drawn of the studies of one name, on one environment and with one measure."""

    environment: str
    measure: str
    title: str
    stem: str = "figure1"  # of the figures' file names
    optima: Callable[[Study], dict[str, float]] = lambda study: {}  # lines across panels
    claims: Callable[[Study, Sequence[Result], Mapping[str, float]], list[Claim]] = lambda *about: []
    bounds: Callable[[Study, Sequence[Result]], list["Bound"]] | None = None  # its figure has log axes and these then


EXPERIMENTS = {
    "logistic": Experiment(
        environment="logistic",
        measure="regret",
        title="Regret in logistic bandits (Figure 1)",
        claims=lambda study, results, optima: logistic.claims(results),
    ),
    "deep": Experiment(
        environment="classification",
        measure="reward",
        title="Average reward in deep bandits (Figure 2)",
        stem="figure2",
        optima=deep.optima,
        claims=lambda study, results, optima: deep.claims(results, optima),
    ),
}
EXPERIMENTS |= {
    kind.name: Experiment(
        environment=environment,
        measure="regret",
        title=f"Regret and the bounds of Theorems 1 and 2 ({environment} rewards)",
        stem="theorems",
        claims=lambda study, results, optima: theorems.claims(study, results),
        bounds=theorems.bounds,
    )
    for environment, kind in theorems.KINDS.items()
}


class Figure(NamedTuple):
    """What is drawn beside the figure on linear axes."""

    log: bool = False  # one with logarithmic axes
    bound: bool = False  # with the theorems' bounds, which need such axes


LINEAR = Figure()


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


def experiment_of(study: Study) -> Experiment:
    """The experiment that a study is; a study of one's own may have the name of another's, but hardly all the rest."""
    found = EXPERIMENTS.get(study.name)
    if found is not None and (found.environment, found.measure) == (study.environment, study.measure):
        return found
    return Experiment(study.environment, study.measure, f"{TITLES[study.measure]} in the study {study.name!r}")


def check_figure(study: Study, figure: Figure) -> None:
    """Raise if such a figure cannot be drawn of a study."""
    if study.measure == "reward" and (figure.log or figure.bound):
        raise InvalidArgument("--log and --bound are about regret, and this study measures reward: leave them out")


def check_free(study: Study, out: Path) -> None:
    """Raise if a directory holds a file that the study would overwrite, and that no run has written."""
    if (out / record.MANIFEST).exists() or any((out / record.PARTS).glob("*.parquet")):
        return  # of a run; whether of this one is looked at next
    stem = experiment_of(study).stem
    drawn = [f"{stem}{more}.{kind}" for more in ("", "-log") for kind in ("png", "pdf")]
    check_unwritten(out, [REGRET, "summary.csv", "claims.json", "report.html", *drawn])


def check_unwritten(out: Path, names: Sequence[str]) -> None:
    """Raise if there is a file of one of these names."""
    foreign = [name for name in names if (out / name).exists()]
    if foreign:
        raise InvalidArgument(
            f"{out} holds {', '.join(foreign)} that no run has written, and this one would overwrite: "
            "choose another directory with --out, or move these files away"
        )


def rebuild(out: Path | str, figure: Figure = LINEAR) -> Outputs:
    """Write tables, claims, figures and the report anew from the records, also of a run that is not finished."""
    out = Path(out)
    if (out / record.MANIFEST).exists():
        with suppress(InvalidArgument, CannotWrite), locked(out):  # else a run goes on there, which may be writing
            remove_leftovers(out)
    return write(out, figure)


def kept(out: Path | str) -> str:
    """How much is there of a run that was stopped, and how to go on."""
    try:
        tasks = read_manifest(Path(out))["tasks"]
    except InvalidArgument:
        return "nothing was finished yet; run the same command again"
    return f"{tasks['done']} of {tasks['all']} tasks are kept in {out}; run the same command again to go on from there"


def write(out: Path, figure: Figure, warnings: Sequence[str] = ()) -> Outputs:
    """Write all that follows from the records in a directory."""
    manifest = read_manifest(out)
    try:
        study = from_settings(manifest["settings"])
    except InvalidArgument as error:
        raise InvalidArgument(f"{out / record.MANIFEST} cannot be used: {error}; {record.REPAIR}") from error
    check_figure(study, figure)
    tasks = manifest["tasks"]["all"]
    results, done, more = collect(out, study, manifest)
    if not results:
        raise InvalidArgument(f"{out} holds no finished task yet: run the study first")
    files = []
    if done == tasks:
        record.write(out / REGRET, results, {"settings_digest": record.settings_digest(study.settings())})
        files.append(out / REGRET)
    experiment = experiment_of(study)
    optima = experiment.optima(study)
    summaries = summarize.summarize(results, study.measure)
    summarize.write_summary(
        out / "summary.csv", summaries, study.measure, {panel.label: panel.tags for panel in study.panels}
    )
    claims = experiment.claims(study, results, optima)
    summarize.write_claims(out / "claims.json", claims)
    files += [out / "summary.csv", out / "claims.json", out / record.MANIFEST]
    drawn, pictures = draw(out, study, experiment, results, figure, optima)
    title = experiment.title + (f": unfinished, {done} of {tasks} tasks" if done < tasks else "")
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


def draw(
    out: Path,
    study: Study,
    experiment: Experiment,
    results: Sequence[Result],
    figure: Figure,
    optima: Mapping[str, float],
) -> tuple[list[Path], list[Picture]]:
    """Write the figures; returns their paths, and pictures of them for the report."""
    from explorax import plot  # here, so that workers need not load matplotlib

    curves = summarize.series(results, study.measure)
    counts = sorted({len(result.records.instances) for result in results})
    caption = f"{CAPTIONS[study.measure]} ± 1 standard error over "
    caption += f"{counts[0]} instances" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} instances"
    shown = ", ".join(dict.fromkeys(curve.panel for curve in curves))
    files, pictures = [], []
    scales = ["linear", "log"] if figure.log or figure.bound else ["linear"]
    over = bounds(study, curves) if figure.bound else []
    if experiment.bounds is not None:
        scales, over = ["log"], experiment.bounds(study, results)
        caption += f"; {COMPARED}"
    for scale in scales:
        laid_over = over if scale == "log" else []
        drawn = plot.figure(curves, measure=study.measure, scale=scale, bounds=laid_over, optima=optima)
        for kind in ("png", "pdf"):
            files.append(out / f"{experiment.stem}{'' if scale == scales[0] else '-log'}.{kind}")
            plot.save(drawn, files[-1])
        described = f"{TITLES[study.measure]} over rounds, a panel for each of {shown}; {scale} axes"
        pictures.append(Picture(plot.to_bytes(drawn), f"{caption}; {scale} axes.", described))
    return files, pictures


def bounds(study: Study, curves: Sequence[Series]) -> list["Bound"]:
    """The theorems' bounds for the panels whose number of features is known."""
    from explorax import plot

    found = []
    for panel in study.panels:
        if "dim" in panel.tags:
            here = [curve for curve in curves if curve.panel == panel.label]
            features, arms = int(panel.tags["dim"]), arms_of(study, panel)
            found += plot.bounds(here, n_features=features, n_arms=arms, family=family_of(study))
    return found


def arms_of(study: Study, panel: Panel) -> int:
    """K, the number of arms on offer."""
    given = study.environment_arguments(panel)
    return len(given["fixed_arms"]) if given.get("fixed_arms") is not None else given.get("n_arms") or ARMS


def family_of(study: Study) -> str:
    """The reward family of the study's environment."""
    return FAMILIES.get(study.environment, study.environment)
