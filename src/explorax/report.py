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
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{CSS}</style>",
            "</head>",
            "<body>",
            *body,
            "</body>",
            "</html>",
            "",
        ]
    )


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
    html.append(f"<thead><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr></thead><tbody>")
    for panel in dict.fromkeys(row.panel for row in summaries):
        here = [row for row in summaries if row.panel == panel]
        about = f"{escape(panel)}, after {_grouped(here[0].rounds)} rounds"
        html.append(f'<tr class="panel"><th colspan="{len(head)}">{about}</th></tr>')
        for row in here:
            cells = (
                escape(row.curve),
                number(row.mean),
                "–" if row.stderr is None else number(row.stderr),
                number(row.q50),
                number(row.q10),
                number(row.q90),
                number(row.max),
                _grouped(row.instances),
                _grouped(row.unconverged),
                *("–" if time is None else f"{time:.1f}" for time in (row.compile_seconds, row.run_seconds)),
            )
            html.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return [*html, "</tbody></table></div>"]


def _provenance(manifest: Mapping[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in manifest.get("versions", {}).items())
    rows = {
        "command": manifest.get("command"),
        "versions": versions,
        "device": manifest.get("device"),
        "platform": manifest.get("platform"),
        "seed": manifest.get("seed"),
        "started": manifest.get("started"),
        "finished": manifest.get("finished"),
        "duration": _duration(manifest.get("duration_seconds")),
    }
    shown = (f"<dt>{name}</dt><dd>{escape(str(value))}</dd>" for name, value in rows.items() if value not in (None, ""))
    settings = json.dumps(manifest.get("settings", {}), indent=2, ensure_ascii=False)
    return [
        "<h2>How it was run</h2>",
        f"<dl>{''.join(shown)}</dl>",
        f"<details><summary>all settings</summary><pre>{escape(settings)}</pre></details>",
    ]


def _regret(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 100 else _grouped(round(value))


def _grouped(value: int) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _duration(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest:.0f} s" if minutes else f"{rest:.1f} s"
