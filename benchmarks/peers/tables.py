"""The results as Markdown, and the page that has them."""

import textwrap

from contenders import REGRET_OF, TIME_OF, Size
from results import Estimate, Row, Spread, Table

BEGIN, END = "<!-- written by compare.py: begin -->", "<!-- written by compare.py: end -->"


def markdown(tables: list[Table], size: Size, versions: dict[str, str], command: str) -> str:
    """All tables, the command that wrote them, and who has lower regret than explorax."""
    about = (
        f"Written by `{command}`: {size.rounds} rounds; scales tuned on {len(size.held_out)} instances, regret and "
        f"time of {len(size.tested)} others. "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + "."
    )
    return "\n\n".join([wrapped(about), *(section(table, size) for table in tables)])


def section(table: Table, size: Size) -> str:
    """The table of one kind of problem."""
    arms, features = size.shapes[table.kind.shape]
    reference = REGRET_OF[table.kind.rewards]
    lines = [
        f"### {str(table.kind).capitalize()}",
        "",
        wrapped(
            f"K = {arms}, d = {features}; uniform choices have a regret of {table.uniform.mean:.0f}. {verdicts(table)}"
        ),
        "",
        f"| library | algorithm | tuned | regret | regret − {reference}'s | µs per decision | time ÷ {TIME_OF}'s |",
        "|---|---|---|---|---|---|---|",
        *(line(row) for row in table.rows),
    ]
    return "\n".join(lines)


def line(row: Row) -> str:
    """A contender's row."""
    player, setting = row.contender, row.setting
    end = " (end of its grid)" if row.at_the_end else ""
    rate = f", rate {setting.rate:g}" if len(player.rates) > 1 else ""
    if row.more is None:
        more = "–"
    else:
        more = f"{row.more.mean:+.1f} ({row.more.low:+.1f} to {row.more.high:+.1f})".replace("-", "−")
        more = f"**{more} lower**" if row.verdict == "lower" else more
    cells = [
        player.library,
        f"{player.algorithm}, misspecified" if player.misspecified else player.algorithm,
        f"{player.knob} {setting.scale:g}{end}{rate}",
        interval(row.regret),
        more,
        span(row.microseconds, 0 if row.microseconds.median >= 100 else 1),
        span(row.ratio, 2),
    ]
    return f"| {' | '.join(cells)} |"


def wrapped(text: str) -> str:
    """Wrap a paragraph as all pages are, at 100 columns."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def interval(value: Estimate) -> str:
    return f"{value.mean:.1f} ({value.low:.1f} to {value.high:.1f})"


def span(value: Spread, digits: int) -> str:
    return f"{value.median:.{digits}f} ({value.least:.{digits}f}–{value.most:.{digits}f})"


def verdicts(table: Table) -> str:
    """Which other libraries have lower regret than explorax's reference, in words."""
    reference = REGRET_OF[table.kind.rewards]
    lower = [
        f"{row.contender.library} {row.contender.algorithm}"
        for row in table.rows
        if row.verdict == "lower" and row.contender.library != "explorax"
    ]
    others = [row.verdict for row in table.rows if row.contender.library != "explorax"]
    named = f" ({', '.join(lower)})" if lower else ""
    alike, higher = others.count("alike"), others.count("higher")
    return (
        f"The other libraries' {len(others)} contenders next to {reference}: lower regret {len(lower)}{named}, "
        f"no significant difference {alike}, higher regret {higher}."
    )


def inserted(page: str, text: str) -> str:
    """The page with this text between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"the page has no place for the tables: it needs the lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"
