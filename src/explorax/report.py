"""One page that says what a study found: claims, figures, tables, settings, and how to run it again.

The page is a single file without scripts that loads nothing: figures are inside it.  It can be read on a phone and in
the dark, and everything that comes from a run is escaped.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from explorax.claims import Claim, headline
from explorax.files import write_atomically
from explorax.places import Place
from explorax.summarize import BEATS_BY, LINEAR_ABOVE, Summary
from explorax.text import Table, duration, grouped

CSS = """
:root { color-scheme: light dark; --text: #1a1a1a; --soft: #5c5c5c; --back: #ffffff; --card: #f5f6f7; --line: #d9dcdf;
  --yes: #00694d; --no: #a63c00; --focus: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --soft: #a9adb1; --back: #15171a; --card: #1f2226;
  --line: #383d42; --yes: #4fd1a5; --no: #ff9d66; --focus: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.2rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.4rem 0; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.6rem; }
p { margin: 0.5rem 0; }
.soft, figcaption { color: var(--soft); font-size: 0.9rem; }
figure { margin: 1.2rem 0; }
figure img { width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line); border-radius: 6px;
  padding: 0.5rem; }
.claim { background: var(--card); border: 1px solid var(--line); border-radius: 6px; margin: 0.6rem 0;
  padding: 0.6rem 0.9rem; }
.claim h3 { font-size: 1rem; margin: 0 0 0.3rem; }
.verdict { font-weight: 600; white-space: nowrap; }
.claim h3 .verdict { float: right; margin-left: 1rem; }
.evidence { list-style: none; padding-left: 0.2rem; }
.evidence li { padding-left: 1.3rem; text-indent: -1.3rem; margin: 0.15rem 0; }
.evidence .verdict { display: inline-block; width: 1.3rem; text-indent: 0; }
.holds { color: var(--yes); }
.fails { color: var(--no); }
summary { cursor: pointer; color: var(--soft); font-size: 0.9rem; }
ul { margin: 0.3rem 0 0.5rem; padding-left: 1.2rem; font-size: 0.9rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 0.8rem 0; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { padding: 0.25rem 0.4rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
thead th { white-space: normal; vertical-align: bottom; }
caption { text-align: left; padding-bottom: 0.3rem; }
caption span { display: inline-block; position: sticky; left: 0; max-width: calc(100vw - 3rem); }
tbody th { font-weight: 500; position: sticky; left: 0; background: var(--back); }
td.text, th.text { text-align: left; }
td.text:last-child { white-space: normal; min-width: 14rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; font-size: 0.9rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 30rem) { .claim h3 .verdict { float: none; display: block; margin: 0; }
  dl { grid-template-columns: 1fr; gap: 0; } dt { margin-top: 0.4rem; } }
@media print { .wide { overflow-x: visible; } }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 0.7rem; overflow-x: auto;
  font-size: 0.8rem; }
"""
MARKS = {True: ("✓", "holds"), False: ("✗", "fails"), None: ("–", "soft")}
FEW = 3  # sentences that are shown at once where a claim holds
LONG = 80  # characters of a setting
COMPILED_ONCE = (
    "Curves that share a program compile it once, and these seconds count for the curve that is played first."
)
SMALLEST = 0.3  # a figure is not drawn smaller than this times its size in pixels; on narrow screens it scrolls

BEATS = (
    "A policy beats another if the mean difference of their {}, instance by instance, is in its favor by more than "
    f"{BEATS_BY:g} standard errors."
)
LINEAR = (
    f"Regret is linear if its growth exponent late in the run is above {LINEAR_ABOVE:g}, and sublinear otherwise: "
    "t has exponent 1, √t has 0.5 and log t has 0. An instance is stuck if it paid the same regret in every round of "
    "the second half of the run."
)
COMPARED = {"regret": "final regrets", "reward": "average rewards"}
NAMES = {"spacing": "spacing of the checkpoints", "family": "family of the rewards"}  # of settings


class Picture(NamedTuple):
    """A figure of the page: the PNG file, its caption, and a description for readers who do not see it."""

    png: bytes
    caption: str
    description: str


def report(
    title: str,
    *,
    about: str,
    pictures: Sequence[Picture],
    claims: Sequence[Claim],
    tables: Sequence[Table] = (),
    summaries: Sequence[Summary],
    measure: str,
    manifest: Mapping[str, Any],
) -> str:
    """Return the report of a study as a page of HTML.

    Args:
        title: Title of the page.
        about: One paragraph of text that says what was run.
        pictures: Figures, in their order.
        claims: Claims as `explorax.claims.evaluate` returns them; may be empty.
        tables: Tables that sum up the results. Default: none.
        summaries: One row for each curve and panel.
        measure: "regret" or "reward", the measure of the summaries.
        manifest: The manifest of the run, as `explorax.record.manifest` makes it.

    Returns:
        The whole page.
    """
    said = f"{about} {headline(claims)}" if claims else about
    body = [
        "<main>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(said)}</p>",
        *_claims(claims, measure),
        "<h2>Figures</h2>" if len(pictures) > 1 else "<h2>Figure</h2>",
        *(figure(picture) for picture in pictures),
        *_summed_up(tables),
        *_results(summaries, measure),
        *_settings(manifest.get("settings", {})),
        *_again(manifest.get("command")),
        provenance(_facts(manifest)),
        "</main>",
    ]
    return document(title, body)


def document(title: str, body: Sequence[str], css: str = "") -> str:
    """Return a page of HTML.

    Args:
        title: Title of the window, as text.
        body: Parts of the page, as HTML.
        css: Styles in addition to those that all pages have.

    Returns:
        The whole page.
    """
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{CSS}{css}</style>",
    ]
    parts = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", *body, "</body>", "</html>"]
    return "\n".join([*parts, ""])


def row(cells: Sequence[str], kind: str = "td") -> str:
    """Return a row of an HTML table from cells that are HTML already."""
    return f"<tr>{''.join(f'<{kind}>{cell}</{kind}>' for cell in cells)}</tr>"


def provenance(facts: Mapping[str, object]) -> str:
    """Return the section about how a run was made, as HTML; facts that are None or empty are left out."""
    shown = (f"<dt>{name}</dt><dd>{escape(str(fact))}</dd>" for name, fact in facts.items() if fact not in (None, ""))
    return f"<h2>How it was run</h2><dl>{''.join(shown)}</dl>"


def version_list(versions: Mapping[str, str]) -> str:
    """Return versions of packages as one line of text."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, text: bool = False) -> str:
    """Return a table of HTML in a container of its own that scrolls sideways, also by keyboard.

    Args:
        caption: What the table shows, as text.
        head: Headings of the columns, as HTML.
        rows: Cells of each row, as HTML. The first one is the heading of its row.
        text: Whether the cells are text, which is broken into lines, and not numbers.

    Returns:
        The container with the table.
    """
    kind = ' class="text"' if text else ""
    lines = [f'<th scope="col"{kind}>{one}</th>' for one in head]
    body = [
        f'<tr><th scope="row">{first}</th>{"".join(f"<td{kind}>{cell}</td>" for cell in cells)}</tr>'
        for first, *cells in rows
    ]
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption><span>{escape(caption)}</span></caption><thead><tr>{''.join(lines)}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def figure(picture: Picture) -> str:
    """Return a figure of HTML, which scrolls sideways where it would become too small to read."""
    data = base64.b64encode(picture.png).decode()
    pixels = int.from_bytes(picture.png[16:20], "big")  # the width, as a PNG file says it
    return (
        '<figure><div class="wide" tabindex="0" role="region" aria-label="Figure">'
        f'<img style="min-width: {SMALLEST * pixels:.0f}px" src="data:image/png;base64,{data}" '
        f'alt="{escape(picture.description)}"></div><figcaption>{escape(picture.caption)}</figcaption></figure>'
    )


def write_report(path: Place, page: str) -> None:
    """Write a page to a file, which is there whole or not at all."""
    write_atomically(path, page.encode())


def _verdict(holds: bool | None, words: str = "") -> str:
    """Return a verdict as HTML: its mark, and words unless another sentence says them."""
    mark, kind = MARKS[holds]
    hidden = "" if words else ' aria-hidden="true"'
    return f'<span class="verdict {kind}"{hidden}>{mark}{words and f" {words}"}</span>'


def _claims(claims: Sequence[Claim], measure: str) -> list[str]:
    if not claims:
        return []
    html = ["<h2>Claims</h2>", *_terms(claims, measure)]
    for overall in (claim for claim in claims if claim.panel is None):
        verdict = _verdict(overall.holds, overall.verdict)
        html.append(f'<article class="claim"><h3>{verdict}{escape(overall.statement)}</h3>')
        each = [claim for claim in claims if claim.name == overall.name and claim.panel is not None]
        if overall.holds is None and not each:
            html.append(f"<p>{escape(overall.reason)}</p>")
        html += [_evidence(claim) for claim in each]
        html.append("</article>")
    return html


def _terms(claims: Sequence[Claim], measure: str) -> list[str]:
    """Return a paragraph that defines the words of the evidence; none if it has no such words."""
    said = " ".join(one.sentence for claim in claims for one in claim.evidence)
    words = {
        " beat": BEATS.format(COMPARED[measure]),
        "growth exponent": LINEAR,
        " ± ": "The number after ± is one standard error.",
    }
    needed = [meaning for word, meaning in words.items() if word in said]
    return [f'<p class="soft">{" ".join(needed)}</p>'] if needed else []


def _evidence(claim: Claim) -> str:
    """Return what decides a claim in one panel, folded if it holds and there is much of it."""
    sentences = [f"{_verdict(one.holds)}{escape(one.sentence)}" for one in claim.evidence]
    if claim.holds is None:
        sentences = [f"{_verdict(None)}{escape(claim.reason)}"]
    opened = "" if claim.holds and len(sentences) > FEW else " open"
    items = "".join(f"<li>{one}</li>" for one in sentences)
    summary = f"{escape(str(claim.panel))}: {claim.verdict}"
    return f'<details{opened}><summary>{summary}</summary><ul class="evidence">{items}</ul></details>'


def _summed_up(tables: Sequence[Table]) -> list[str]:
    """Return the tables that sum up the results, each with its note."""
    html = ["<h2>Settings compared</h2>"] if tables else []
    for one in tables:
        html.append(table(one.caption, list(map(escape, one.head)), [list(map(escape, cells)) for cells in one.rows]))
        html.append(f'<p class="soft">{escape(one.note)}</p>')
    return html


def _results(summaries: Sequence[Summary], measure: str) -> list[str]:
    title, number = ("Final regret", _regret) if measure == "regret" else ("Average reward", "{:.4f}".format)
    head = (
        "Curve",
        "Mean",
        "Standard error",
        "Median",
        "10&nbsp;% quantile",
        "90&nbsp;% quantile",
        "Largest",
        "Unconverged fits",
        "Compiling (s)",
        "Running (s)",
    )
    html = [f"<h2>{title}</h2>", f'<p class="soft">{COMPILED_ONCE}</p>']
    for panel in dict.fromkeys(one.panel for one in summaries):
        here = [one for one in summaries if one.panel == panel]
        counts = sorted({one.instances for one in here})
        over = f"{grouped(counts[0])} instances" if counts[-1] > 1 else "1 instance"
        if len(counts) > 1:
            over = f"{grouped(counts[0])} to {grouped(counts[-1])} instances"
        rows = [
            (
                escape(one.curve),
                number(one.mean),
                "–" if one.stderr is None else number(one.stderr),
                *(number(value) for value in (one.q50, one.q10, one.q90, one.max)),
                grouped(one.unconverged),
                *("–" if time is None else f"{time:.1f}" for time in (one.compile_seconds, one.run_seconds)),
            )
            for one in here
        ]
        html.append(table(f"{panel}: {title.lower()} after {grouped(here[0].rounds)} rounds, over {over}", head, rows))
    return html


def _settings(settings: Mapping[str, Any]) -> list[str]:
    """Return the settings of a study: tables of curves and panels, a list of the others, and all of them as JSON."""
    html = ["<h2>Settings</h2>"]
    if curves := settings.get("curves"):
        rows = [[one["label"], one["policy"], _short(one["design"] or "–"), _listed(one["settings"])] for one in curves]
        html.append(_text_table("Curves", ("Curve", "Policy", "Design", "Settings of the policy"), rows))
    if panels := settings.get("panels"):
        rows = [[one["label"], _listed(one["environment_settings"]), _listed(one["curve_settings"])] for one in panels]
        html.append(_text_table("Panels", ("Panel", "Settings of the environment", "Settings of the curves"), rows))
    others = [name for name in settings if name not in ("curves", "panels")]
    shown = [(NAMES.get(name, name.replace("_", " ")), _setting(settings[name])) for name in others]
    items = "".join(f"<dt>{escape(name[:1].upper() + name[1:])}</dt><dd>{value}</dd>" for name, value in shown)
    text = json.dumps(settings, indent=2, ensure_ascii=False)
    return [
        *html,
        f"<dl>{items}</dl>",
        f'<details><summary>All settings as JSON</summary><pre tabindex="0">{escape(text)}</pre></details>',
    ]


def _text_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return table(caption, head, [[escape(cell) for cell in row] for row in rows], text=True)


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_short(value)}" for name, value in settings.items()) or "–"


def _setting(value: Any) -> str:
    return escape(_listed(value) if isinstance(value, Mapping) else _short(value))


def _short(value: Any) -> str:
    """Return a setting as text, cut if it is long."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        value = f"[{', '.join(_short(one) for one in value)}]"
    text = grouped(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def _again(command: str | None) -> list[str]:
    if not command:
        return []
    return [
        "<h2>Run it again</h2>",
        "<p>This command plays the same instances again:</p>",
        f'<pre tabindex="0">{escape(command)}</pre>',
        "<p>This command rebuilds the page from the records in its directory:</p>",
        '<pre tabindex="0">explorax report DIRECTORY</pre>',
    ]


def _facts(manifest: Mapping[str, Any]) -> dict[str, object]:
    seconds = manifest.get("duration_seconds")
    return {
        "Versions": version_list(manifest.get("versions", {})),
        "Device": manifest.get("device"),
        "Platform": manifest.get("platform"),
        "Started": _time(manifest.get("started")),
        "Finished": _time(manifest.get("finished")),
        "Duration": None if seconds is None else duration(seconds),
    }


def _time(iso: str | None) -> str | None:
    """Return a time as readers expect it: "2024-05-01 00:02:05 UTC"."""
    return None if iso is None else iso.replace("T", " ").replace("+00:00", " UTC")


def _regret(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 100 else grouped(round(value))
