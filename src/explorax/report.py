"""One page that says what a study found: figures, claims, a table, and how it was run.

The page is a single file without scripts and without anything to load: figures are inside it.  It reads on a phone and
in the dark, and everything that comes from a run is escaped.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from explorax.files import write_atomically
from explorax.summarize import BEATS_BY, LINEAR_ABOVE, Claim, Summary, lines
from explorax.text import duration

CSS = """
:root { color-scheme: light dark; --text: #1a1a1a; --soft: #5c5c5c; --back: #ffffff; --card: #f5f6f7; --line: #d9dcdf;
  --yes: #00694d; --no: #a63c00; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --soft: #a9adb1; --back: #15171a; --card: #1f2226;
  --line: #383d42; --yes: #4fd1a5; --no: #ff9d66; } }
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
.verdict { font-weight: 600; white-space: nowrap; }
.holds { color: var(--yes); }
.fails { color: var(--no); }
summary { cursor: pointer; color: var(--soft); font-size: 0.9rem; }
ul { margin: 0.3rem 0 0.5rem; padding-left: 1.2rem; font-size: 0.9rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { padding: 0.25rem 0.4rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
thead th { white-space: normal; vertical-align: bottom; }
tr.panel th { background: var(--card); text-align: left; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; font-size: 0.9rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 0.7rem; overflow-x: auto;
  font-size: 0.8rem; }
"""
MARKS = {True: ("✓", "holds"), False: ("✗", "fails"), None: ("–", "soft")}


BEATS = (
    "One policy beats another if the mean difference of their {}, instance by instance, is in its favour by more than "
    f"{BEATS_BY:g} standard errors."
)
LINEAR = (
    f"Regret is linear if its growth exponent late in the run is above {LINEAR_ABOVE:g}, and sublinear below "
    "(t has 1, √t 0.5, log t 0). Stuck instances paid the same regret in every round of the second half."
)
TERMS = {"regret": f"{BEATS.format('final regrets')} {LINEAR}", "reward": BEATS.format("average rewards")}


class Picture(NamedTuple):
    """A figure of the page."""

    png: bytes
    caption: str
    description: str  # for those who do not see it


def report(
    title: str,
    *,
    pictures: Sequence[Picture],
    claims: Sequence[Claim],
    summaries: Sequence[Summary],
    measure: str,
    manifest: Mapping[str, Any],
) -> str:
    """The page as HTML; `summaries` are of the measure, `manifest` is that of `explorax.record`."""
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(headline(claims))}</p>",
        *(_figure(picture) for picture in pictures),
        *_claims(claims, measure),
        *_table(summaries, measure),
        *_provenance(manifest),
    ]
    return document(title, body)


def document(title: str, body: Sequence[str], css: str = "") -> str:
    """Return a page of HTML.

    Args:
        title: Of the window, as text.
        body: Its parts, as HTML.
        css: Styles beside those that all pages have.

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
    """Return a row of a table of HTML; the cells are HTML already."""
    return f"<tr>{''.join(f'<{kind}>{cell}</{kind}>' for cell in cells)}</tr>"


def provenance(facts: Mapping[str, object]) -> str:
    """Return how a run came about, as HTML; what is None or empty is left out."""
    shown = (f"<dt>{name}</dt><dd>{escape(str(fact))}</dd>" for name, fact in facts.items() if fact not in (None, ""))
    return f"<h2>How it was run</h2><dl>{''.join(shown)}</dl>"


def version_list(versions: Mapping[str, str]) -> str:
    """Return versions of packages as one line of text."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def write_report(path: Path, page: str) -> None:
    """Write report.html."""
    write_atomically(path, page.encode())


def headline(claims: Sequence[Claim]) -> str:
    """How many of the claims hold, in one sentence."""
    overall = [claim for claim in claims if claim.panel is None]
    if not overall:
        return "No claims were checked."
    count = {verdict: sum(claim.holds is verdict for claim in overall) for verdict in MARKS}
    text = f"{count[True]} of {len(overall)} claims hold in every panel"
    if count[False]:
        text += f", {count[False]} {'does' if count[False] == 1 else 'do'} not"
    if count[None]:
        text += f", {count[None]} could not be evaluated"
    return f"{text}."


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode()
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{escape(picture.description)}">'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _verdict(claim: Claim) -> str:
    mark, kind = MARKS[claim.holds]
    return f'<span class="verdict {kind}">{mark} {claim.verdict}</span>'


def _claims(claims: Sequence[Claim], measure: str) -> list[str]:
    if not claims:
        return []
    html = ["<h2>Claims</h2>", f'<p class="soft">{TERMS[measure]}</p>']
    for overall in (claim for claim in claims if claim.panel is None):
        html.append(f'<div class="claim"><p>{_verdict(overall)} · {escape(overall.statement)}</p>')
        if overall.holds is None:
            html.append(f'<p class="soft">{escape(overall.reason)}</p>')
        for claim in claims:
            if claim.name == overall.name and claim.panel is not None:
                rows = "".join(f"<li>{escape(line)}</li>" for line in lines(claim))
                about = f"{escape(claim.panel)}: {_verdict(claim)}"
                html.append(f"<details><summary>{about}</summary><ul>{rows}</ul></details>")
        html.append("</div>")
    return html


def _table(summaries: Sequence[Summary], measure: str) -> list[str]:
    head = (
        "curve",
        measure,
        "±&nbsp;s.e.",
        "median",
        "10&nbsp;%",
        "90&nbsp;%",
        "largest",
        "instances",
        "unconverged fits",
        "seconds compiling",
        "seconds running",
    )
    title, number = ("Final regret", _regret) if measure == "regret" else ("Average reward", "{:.4f}".format)
    html = [f"<h2>{title}</h2>", '<div class="wide"><table>']
    html.append(f"<thead>{row(head, 'th')}</thead><tbody>")
    for panel in dict.fromkeys(one.panel for one in summaries):
        here = [one for one in summaries if one.panel == panel]
        about = f"{escape(panel)}, after {_grouped(here[0].rounds)} rounds"
        html.append(f'<tr class="panel"><th colspan="{len(head)}">{about}</th></tr>')
        for one in here:
            cells = (
                escape(one.curve),
                number(one.mean),
                "–" if one.stderr is None else number(one.stderr),
                number(one.q50),
                number(one.q10),
                number(one.q90),
                number(one.max),
                _grouped(one.instances),
                _grouped(one.unconverged),
                *("–" if time is None else f"{time:.1f}" for time in (one.compile_seconds, one.run_seconds)),
            )
            html.append(row(cells))
    return [*html, "</tbody></table></div>"]


def _provenance(manifest: Mapping[str, Any]) -> list[str]:
    seconds = manifest.get("duration_seconds")
    facts = {
        "command": manifest.get("command"),
        "versions": version_list(manifest.get("versions", {})),
        "device": manifest.get("device"),
        "platform": manifest.get("platform"),
        "seed": manifest.get("seed"),
        "started": manifest.get("started"),
        "finished": manifest.get("finished"),
        "duration": None if seconds is None else duration(seconds),
    }
    settings = json.dumps(manifest.get("settings", {}), indent=2, ensure_ascii=False)
    return [
        provenance(facts),
        f"<details><summary>all settings</summary><pre>{escape(settings)}</pre></details>",
    ]


def _regret(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 100 else _grouped(round(value))


def _grouped(value: int) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
