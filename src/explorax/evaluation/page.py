"""One HTML page of an evaluation: the answer in a sentence, values, a forest plot, diagnostics and assumptions.

The page is a single file without scripts that loads nothing, as the report of a study is (`explorax.report`), whose
look it shares.  What it shows is the plain data of `Evaluation.to_dict`.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from explorax.evaluation.values import LOGGING, number, percent, span
from explorax.report import Picture, document, figure, table

MARKS = {"yes": ("✓", "holds"), "barely": ("–", "soft"), "no": ("✗", "fails")}
KINDS = {"better": "holds", "worse": "fails", "undecided": "soft", "": "soft"}
HEAD = ("Policy", "Estimator", "Value", "Interval", "Kind", "Minus logging policy", "Verdict", "Rows", "Effective rows")
WEIGHTS = ("Policy", "Effective rows", "Largest weight", "Weight of the top 1&nbsp;%", "Rows without weight")
OVERLAP = ("Policy", "Had no chance", "Chance below 1&nbsp;%")
DRIFT = ("Policy", "All rows", "First half", "Second half")
CALIBRATION = ("Propensities", "Choices", "Expected", "Standard errors")
CAPTION = (
    "Estimates and intervals. The line and the band are the value of the logging policy and its interval; colors say "
    "what is shown about the difference from it."
)


def render(kept: Mapping[str, Any], png: bytes) -> str:
    """Return the page of an evaluation.

    Args:
        kept: What `Evaluation.to_dict` returned.
        png: The forest plot.

    Returns:
        The whole page.
    """
    rows = kept["rows"]
    described = " ".join(
        f"{row['target']}, {row['estimator']}: {number(row['value'])}, interval {span(row['low'], row['high'])}."
        for row in rows
    )
    body = [
        "<main>",
        "<h1>What other policies would have earned</h1>",
        f'<p class="answer">{escape(kept["answer"])}</p>',
        "<h2>Values</h2>",
        table(f"Mean reward, with {percent(rows[0]['level'])} intervals", HEAD, [_cells(row) for row in rows]),
        figure(Picture(png, CAPTION, described)),
        *_diagnostics(kept["diagnostics"]),
        "<h2>Assumptions</h2>",
        f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in kept['assumptions'])}</ul>",
        "</main>",
    ]
    return document("What other policies would have earned", body, ".answer { font-size: 1.15rem; }")


def _cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a value as HTML."""
    gain = "–" if row["gain_low"] is None else span(row["gain_low"], row["gain_high"], "+")
    verdict = f'<span class="verdict {KINDS[row["verdict"]]}">{row["verdict"] or "–"}</span>'
    texts = [
        row["target"],
        row["estimator"],
        number(row["value"]),
        span(row["low"], row["high"]),
        row["interval"],
        gain,
    ]
    effective = "–" if row["effective"] is None else f"{row['effective']:.0f}"
    return [*map(escape, texts), verdict, str(row["rows"]), effective]


def _diagnostics(kept: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what the log can say of each policy, and the numbers that this rests on."""
    if not kept:
        return []
    html = ["<h2>Diagnostics</h2>"]
    for name, one in kept.items():
        mark, kind = MARKS[one["verdict"]]
        first, *others = one["sentences"]
        shown = f'<span class="verdict {kind}" aria-hidden="true">{mark}</span> {escape(first)}'
        items = "".join(f"<li>{escape(text)}</li>" for text in others)
        html.append(f'<article class="claim"><h3>{escape(name)}</h3><p>{shown}</p><ul>{items}</ul></article>')
    named = [(escape(name), one) for name, one in kept.items()]
    weights = [
        [name, f"{one['effective']:.0f}", f"{one['largest']:.3g}", f"{one['top']:.1%}", f"{one['unused']:.1%}"]
        for name, one in named
    ]
    overlap = [
        [name, f"{one['unsupported']:.2%}", f"{one['rare']:.2%}"]
        for name, one in named
        if one["unsupported"] is not None
    ]
    drift = [[name, *(f"{weight:.3f}" for weight in one["mean_weights"])] for name, one in named]
    html += [table("Weights: how few rows the estimates hang on", WEIGHTS, weights)]
    html += [table("Overlap: the share of a policy's choices by their chance in the log", OVERLAP, overlap)] * bool(
        overlap
    )
    html += [table("Mean weights, which should be 1 throughout: they show propensities that drift", DRIFT, drift)]
    return [*html, _calibration(next(iter(kept.values()))["calibration"])]


def _calibration(bins: Sequence[Mapping[str, Any]]) -> str:
    """Return how often arms were chosen next to how often they should have been, which no policy has a part in."""
    cells = [
        [escape(one["label"]), f"{one['observed']:.0f}", f"{one['expected']:.1f}", f"{one['deviation']:+z.1f}"]
        for one in bins
    ]
    return table(f"Calibration of the propensities of the {LOGGING}", CALIBRATION, cells)
