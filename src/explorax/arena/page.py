"""One HTML page to look around in: choose a problem and policies, and see curves, a table and ranks.

The page is a single file with nothing to load.  Its data is inside it, `page.css` is its look, and `page_chart.js`,
`page_table.js` and `page.js` draw it; what a reader chooses is kept in the address, so that a link shows the same.
Without scripts there are tables of all problems instead.

What the page shows is plain data first (`content`), which also lies beside it, packed (`pack`).  `render` makes the
same page again from that data: the site of the docs does so when it is built.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from explorax.arena.contestants import Absence
from explorax.arena.standings import DEVIATIONS, Rank, Standing, difference, interval, title_of, verdict
from explorax.report import document, provenance, row, version_list
from explorax.text import with_error

SCRIPTS = ("page_chart.js", "page_table.js", "page.js")
HEAD = ("policy", "variant", "setting", "regret", "minus GLM-TSL", "verdict", "µs per round")
CONTROLS = """<noscript><p>Without scripts there are tables only.</p></noscript>
<div id="app" hidden>
<fieldset><legend>Problem</legend>
<div class="line-of-controls"><select id="problem" aria-label="Problem" aria-describedby="what"></select>
<span id="what" class="soft"></span></div>
<div class="line-of-controls" id="variants" role="radiogroup" aria-label="Variant of the policies">
<label><input type="radio" name="variant" id="variant-default" value="default"> default</label>
<label><input type="radio" name="variant" id="variant-tuned" value="tuned"> tuned</label>
<label><input type="radio" name="variant" id="variant-both" value="both"> both</label></div></fieldset>
<fieldset><legend>Policies</legend>
<div class="line-of-controls"><button type="button" id="best">Best ten</button>
<button type="button" id="all">All</button> <button type="button" id="clear">None</button>
<label>Find <input type="search" id="find" autocomplete="off"></label>
<span id="count" class="soft" role="status"></span></div>
<div class="choices" id="policies"></div>
<p id="unfound" class="soft" hidden>No policy of this problem has that name.</p></fieldset>
<figure><div id="chart"></div>
<figcaption>Cumulative regret: the mean over instances and its interval. Point at a line or a name to bring it
out.</figcaption></figure>
<h2 id="of"></h2>
<div class="wide" tabindex="0" role="region" aria-labelledby="of"><table id="regrets"></table></div>
<h2 id="group"></h2>
<p class="soft">Places by mean regret among all policies that play every problem of the group, 1 for the lowest,
averaged over these problems. The interval is over draws of the instances.</p>
<div class="wide" tabindex="0" role="region" aria-labelledby="group"><table id="ranks"></table></div>
<details id="absent"><summary>Who does not play this problem, and why</summary><ul id="reasons"></ul></details>
</div>"""


class About(NamedTuple):
    """How the tournament came about.

    Attributes:
        command: The command that was run.
        made: When the page was made, as text.
        versions: Versions by name of the package.
        tuning: How many instances the tuned variants were chosen on.
        seed: The seed of the instances.
        missing: The titles of problems that have not been played yet.
        absent: Who does not play, by name of the problem.
    """

    command: str
    made: str
    versions: Mapping[str, str]
    tuning: int
    seed: int
    missing: list[str]
    absent: Mapping[str, Sequence[Absence]]


def content(rows: Sequence[Standing], ranks: Sequence[Rank], about: About) -> dict[str, Any]:
    """Return what the page of a tournament shows, as plain data that fits into JSON.

    Args:
        rows: Every policy on every problem that was played.
        ranks: The mean ranks of the policies in each group of problems.
        about: How the tournament came about.

    Returns:
        Lists, dictionaries, texts and numbers with as many digits as can be seen.
    """
    problems = {row.problem.name: row for row in rows}
    return {
        "about": {
            "command": about.command,
            "made": about.made,
            "versions": dict(about.versions),
            "tuning": about.tuning,
            "instances": len(rows[0].final),
            "seed": about.seed,
            "missing": list(about.missing),
        },
        "problems": [
            {
                "name": name,
                "title": one.problem.title,
                "group": one.problem.group,
                "about": one.problem.about,
                "rounds": one.rounds.tolist(),
                "absent": [[absence.title, absence.reason] for absence in about.absent[name]],
            }
            for name, one in problems.items()
        ],
        "policies": {row.contestant.policy: row.contestant.title for row in rows},
        "rows": [_row(row, rows) for row in rows],
        "ranks": [
            rank._asdict() | {name: _short(getattr(rank, name)) for name in ("mean", "low", "high")} for rank in ranks
        ],
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
        "mean": [_short(one.mean) for one in means],
        "half": [_short(one.half, 3) for one in means],
        "gap": None if gap is None else [_short(gap.mean), _short(gap.half)],
        "verdict": verdict(gap),
        "microseconds": None if row.seconds is None else _short(1e6 * row.seconds),
    }


def _short(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits}g}")


def _setting(row: Standing) -> str:
    if not row.contestant.knob:
        return ""
    return f"{row.contestant.knob} = {row.value:g}" if row.value is not None else "default"


def pack(kept: Mapping[str, Any]) -> bytes:
    """Return the data of a page as compressed JSON; the same data makes the same bytes."""
    return gzip.compress(_json(kept).encode(), mtime=0)


def unpack(packed: bytes) -> dict[str, Any]:
    """Return the data of a page from compressed JSON."""
    kept: dict[str, Any] = json.loads(gzip.decompress(packed))
    return kept


def _json(kept: Mapping[str, Any]) -> str:
    return json.dumps(kept, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def render(kept: Mapping[str, Any]) -> str:
    """Return the page of a tournament as HTML, from its data.

    Args:
        kept: What `content` or `unpack` returned.

    Returns:
        The whole page.
    """
    about, here = kept["about"], files("explorax.arena")
    facts = {
        "command": about["command"],
        "versions": version_list(about["versions"]),
        "seed": about["seed"],
        "made": about["made"],
    }
    script = "\n".join(here.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    data = _json(kept).replace("<", "\\u003c")
    body = [
        "<main>",
        _head(kept),
        CONTROLS,
        f"<noscript>{''.join(_table(one, kept) for one in kept['problems'])}</noscript>",
        provenance(facts),
        "</main>",
        f'<script type="application/json" id="data">{data}</script>',
        f'<script type="module">\n{script}</script>',
    ]
    return document("The arena", body, here.joinpath("page.css").read_text(encoding="utf-8"))


def _head(kept: Mapping[str, Any]) -> str:
    about, problems, count = kept["about"], kept["problems"], len(kept["policies"])
    rounds = sorted({one["rounds"][-1] for one in problems})
    length = f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
    missing = about["missing"]
    warning = f"<p><strong>Not played yet: {escape(', '.join(missing))}.</strong></p>" if missing else ""
    return f"""<h1>The arena</h1>
<p>Regret of {count} polic{"ies" if count > 1 else "y"} on {len(problems)} random
problem{"s" if len(problems) > 1 else ""} over {length} rounds. Numbers are means over {about["instances"]} instances,
with intervals of about 95 % (± {DEVIATIONS:g} standard errors).</p>
<p class="soft"><em>Default</em> is a policy as documented. <em>Tuned</em> has the value of its exploration that did
best on {about["tuning"]} other instances. A policy is <em>better</em> or <em>worse</em> if the interval of its
difference from GLM-TSL on the same instances leaves out 0. A linear model of rewards that are not linear is marked.
A time that was not measured is shown as&nbsp;–.</p>{warning}"""


def _table(problem: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    here = sorted((one for one in kept["rows"] if one["problem"] == problem["name"]), key=lambda one: one["mean"][-1])
    lines = [row(HEAD, "th")]
    for one in here:
        cells = (
            one["title"],
            one["variant"],
            one["setting"] or "none",
            _interval(one["mean"][-1], one["half"][-1]),
            "–" if one["gap"] is None else _interval(one["gap"][0], one["gap"][1], sign="+"),
            one["verdict"],
            "–" if one["microseconds"] is None else f"{_short(one['microseconds'], 3):g}",
        )
        lines.append(row([escape(cell) for cell in cells]))
    absent = "".join(f"<li>{escape(title)}: {escape(reason)}</li>" for title, reason in problem["absent"])
    absent = f'<p class="soft">Who does not play, and why:</p><ul>{absent}</ul>' if absent else ""
    head = f"<h2>{escape(problem['title'])}</h2><p>{escape(problem['about'])}</p>"
    return f'{head}<div class="wide"><table>{"".join(lines)}</table></div>{absent}\n'


def _interval(mean: float, half: float, sign: str = "-") -> str:
    return with_error(mean, half, digits=1 if abs(mean) < 1000 else 0, sign=sign)
