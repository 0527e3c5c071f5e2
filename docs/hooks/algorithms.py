"""The page of algorithms: what the registry, the policies' docstrings and their signatures say, as Markdown."""

import inspect
import re
import sys

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from texts import capitalized, escaped, markdown, row

import explorax
from explorax.builders import settings_in, shared_settings
from explorax.registry import Entry

INTRODUCTION = """# Algorithms

Every policy, each in a short file of its own: `explorax.glm_tsl(…)` builds it, and so does
`explorax.make("glm_tsl", …)`. This page is made from the registry and the docstrings of the code.

| policy | name | randomized | reference { .wide } |
|---|---|---|---|
"""
LEGEND = """
"In training": the noise is drawn when the policy learns, so given its state a decision is not random. In the tables
below, costs are those of one decision and one reward, with K arms (or the capacity, when arms change), d features,
s steps of Newton or of training; a network of P weights with h units in its last layer, and batches of B. The scores of
a linear policy are xᵀθ̃ for one θ̃, so it can find the best arm of an infinite set.
"""
FACTS = ("randomized", "families", "designs", "explores by", "linear", "cost of a round")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of algorithms to the files of the site."""
    files.append(File.generated(config, "algorithms.md", content=page()))
    return files


def page() -> str:
    """Write a table of all policies, a section for each, and one for each kind of settings that policies share."""
    entries = explorax.list_policies().values()
    rows = [row(f"[{e.title}](#{e.name})", f"`{e.name}`", e.randomized, e.reference) for e in entries]
    kinds = (shared_settings(entry.builder()) for entry in entries)
    shared = dict.fromkeys(kind for kind in kinds if kind is not None)
    sections = [*map(policy_section, entries), *map(settings_section, shared)]
    return INTRODUCTION + "\n".join(rows) + "\n" + LEGEND + "".join(sections)


def policy_section(entry: Entry) -> str:
    """Write the rule of a policy in the words of its module, what the registry says of it, and its settings."""
    summary, _, body = str(inspect.getdoc(sys.modules[entry.builder().__module__])).partition("\n\n")
    knob = f"`{entry.knob}`" if entry.knob else "-"
    linear = "yes" if entry.linear else "no"
    families, designs = ", ".join(entry.families), ", ".join(entry.designs) or "-"
    return f"""
## {entry.title} {{ #{entry.name} }}

{capitalized(markdown(summary.removeprefix(f"{entry.title}: ")))}

{markdown(body)}

{row(*FACTS)}
{row(*("---" for _ in FACTS))}
{row(entry.randomized, families, designs, knob, linear, entry.cost)}

`explorax.{entry.name}` takes {settings(entry)}.
Source: [{entry.name}.py](../src/explorax/policies/{entry.name}.py).
"""


def settings_section(kind: type) -> str:
    """Write the settings that policies share as a table, with what their docstring says."""
    remarks = str(inspect.getdoc(kind)).partition("\n\n")[2]
    rows = [
        row(f"`{name}`", escaped(one.meaning), escaped(one.shown) if one.shown else f"`{one.default!r}`")
        for name, one in settings_in(kind).items()
    ]
    table = "\n".join([row("setting", "meaning", "default"), row("---", "---", "---"), *rows])
    return f"\n## {capitalized(name_of(kind))} {{ #{kind.__name__} }}\n\n{table}\n\n{markdown(remarks)}\n"


def settings(entry: Entry) -> str:
    """List the settings of a policy: its own with their defaults, and links to those it shares."""
    own = []
    for parameter in inspect.signature(inspect.unwrap(entry.builder())).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            default = "" if parameter.default is inspect.Parameter.empty else f"={parameter.default!r}"
            own.append(f"`{parameter.name}{default}`")
    kind = shared_settings(entry.builder())
    shared = [] if kind is None else [f"the [{name_of(kind)}](#{kind.__name__})"]
    return " and ".join(filter(None, (", ".join(own), *shared))) or "no settings"


def name_of(kind: type) -> str:
    """Return the name of shared settings: the words of their docstring before the first comma or full stop."""
    name = re.split("[,.]", str(inspect.getdoc(kind)))[0]
    return name[:1].lower() + name[1:]
