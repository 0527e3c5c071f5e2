"""One HTML page to look around in: choose a problem and policies, see curves, a table and ranks.

The page is a single file with nothing to load: its data is inside it, and `page.js` draws it.  Without scripts the
tables of all problems are still there.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from explorax.arena.contestants import Absence
from explorax.arena.standings import (
    DEVIATIONS,
    VARIANTS,
    Interval,
    Rank,
    Standing,
    difference,
    interval,
    microseconds,
    title_of,
    verdict,
)
from explorax.report import document, provenance, row, version_list

MORE_CSS = """
fieldset { border: 1px solid var(--line); border-radius: 6px; margin: 0.6rem 0; padding: 0.5rem 0.9rem; }
legend { color: var(--soft); font-size: 0.9rem; }
.choices { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; }
.choices label { white-space: nowrap; font-size: 0.9rem; cursor: pointer; }
.swatch { display: inline-block; width: 1.6rem; height: 0; border-top: 3px solid; vertical-align: middle; }
select, button, input[type=search] { font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: 4px; padding: 0.15rem 0.5rem; max-width: 100%; }
#chart svg { width: 100%; height: auto; display: block; }
#chart text { fill: var(--soft); font-size: 11px; }
#chart .axis { stroke: var(--line); }
#chart path.line { fill: none; stroke-width: 2; }
#chart path.band { opacity: 0.1; stroke: none; }
#chart .faded { opacity: 0.12; }
tr.reference td { font-weight: 600; }
td.better { color: var(--yes); }
td.worse { color: var(--no); }
"""


class About(NamedTuple):
    """How the tournament came about."""

    command: str
    made: str
    versions: Mapping[str, str]
    tuning: int
    seed: int
    missing: list[str]  # problems that have not been played yet
    absent: Mapping[str, Sequence[Absence]]  # by problem, who does not play it


def page(rows: Sequence[Standing], ranks: Sequence[Rank], about: About) -> str:
    """The page as HTML."""
    instances, rounds = len(rows[0].final), sorted({int(row.rounds[-1]) for row in rows})
    length = f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
    missing = f"<p><strong>Not played yet: {escape(', '.join(about.missing))}.</strong></p>" if about.missing else ""
    count, problems = len({row.contestant.policy for row in rows}), len(about.absent)
    head = f"""<h1>The arena</h1>
<p>Regret of {count} policies on {problems} random problem{"s" if problems > 1 else ""} over {length} rounds: mean over
{instances} instances, with about 95 % intervals (± {DEVIATIONS:g} standard errors). <em>Default</em> is a policy as
documented; <em>tuned</em> has the value of its exploration that did best on {about.tuning} other instances. Better and
worse are said of the difference from GLM-TSL on the same instances where its interval leaves out 0. A linear model of
rewards that are not linear is marked.</p>{missing}"""
    controls = """<noscript><p>Without scripts there are tables only, below.</p></noscript>
<div id="app" hidden>
<fieldset><legend>Problem</legend>
<select id="problem" aria-label="problem"></select> <span id="what" class="soft"></span>
<div class="choices" id="variants"></div></fieldset>
<fieldset><legend>Policies</legend>
<p><button type="button" id="all">all</button> <button type="button" id="none">none</button>
<button type="button" id="best">the best ten</button>
<input type="search" id="search" placeholder="find" aria-label="find a policy"></p>
<div class="choices" id="policies"></div></fieldset>
<figure><div id="chart"></div>
<figcaption>Mean regret over rounds with its interval. Point at a line or a name to bring it out.</figcaption></figure>
<h2 id="of"></h2><div class="wide"><table id="standing"></table></div>
<h2>Mean rank over the problems of this group</h2>
<p class="soft">Among all policies that play the whole group; the interval is over draws of the instances.</p>
<div class="wide"><table id="ranks"></table></div>
</div>"""
    script = files("explorax.arena").joinpath("page.js").read_text(encoding="utf-8")
    data = json.dumps(content(rows, ranks), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    facts = {
        "command": about.command,
        "versions": version_list(about.versions),
        "seed": about.seed,
        "made": about.made,
    }
    body = [
        head,
        controls,
        "<h2>All problems</h2>",
        "".join(_table(rows, name, about) for name in about.absent),
        provenance(facts),
        f'<script type="application/json" id="data">{data}</script>',
        f"<script>{script}</script>",
    ]
    return document("The arena", body, MORE_CSS)


def content(rows: Sequence[Standing], ranks: Sequence[Rank]) -> dict[str, Any]:
    """What the page draws, as plain data."""
    problems = {row.problem.name: row.problem for row in rows}
    return {
        "problems": [
            {"name": one.name, "title": one.title, "group": one.group, "about": one.about} for one in problems.values()
        ],
        "variants": VARIANTS,
        "rows": [_row(row, rows) for row in rows],
        "ranks": [rank._asdict() for rank in ranks],
    }


def _row(row: Standing, rows: Sequence[Standing]) -> dict[str, Any]:
    gap = difference(row, rows)
    means = [interval(values) for values in row.regret.T]
    return {
        "problem": row.problem.name,
        "policy": row.contestant.policy,
        "title": title_of(row.contestant),
        "variant": row.variant,
        "setting": _setting(row),
        "rounds": row.rounds.tolist(),
        "mean": [_short(one.mean) for one in means],
        "half": [_short(one.half) for one in means],
        "gap": None if gap is None else [_short(gap.mean), _short(gap.half)],
        "verdict": verdict(gap),
        "microseconds": None if row.seconds is None else _short(1e6 * row.seconds),
    }


def _short(value: float) -> float:
    """Four digits are enough to draw."""
    return float(f"{value:.4g}")


def _setting(row: Standing) -> str:
    if not row.contestant.knob:
        return ""
    return f"{row.contestant.knob} = {row.value:g}" if row.value is not None else "default"


def _table(rows: Sequence[Standing], name: str, about: About) -> str:
    """All policies on one problem."""
    here = sorted((one for one in rows if one.problem.name == name), key=lambda one: float(np.mean(one.final)))
    head = ("policy", "variant", "setting", "regret", "minus GLM-TSL", "", "µs a round")
    lines = [row(head, "th")]
    for one in here:
        gap = difference(one, rows)
        cells = (
            title_of(one.contestant),
            one.variant,
            _setting(one),
            str(interval(one.final)),
            "" if gap is None else str(Interval(*gap)),
            verdict(gap),
            microseconds(one),
        )
        lines.append(row([escape(cell) for cell in cells]))
    absent = "".join(f"<li>{escape(one.title)}: {escape(one.reason)}</li>" for one in about.absent[name])
    absent = f"<p class='soft'>Not here:</p><ul>{absent}</ul>" if absent else ""
    summary = f"<summary>{escape(here[0].problem.title)}: {escape(here[0].problem.about)}</summary>"
    return f"<details>{summary}<div class='wide'><table>{''.join(lines)}</table></div>{absent}</details>\n"
