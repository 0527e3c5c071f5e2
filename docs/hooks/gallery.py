"""The gallery: a page of all examples, in the words of their docstrings, with figures and the commands that run them.

The figure of `examples/NAME.py` is `docs/gallery/NAME.png`.
"""

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from texts import markdown

INTRODUCTION = """# Gallery

Programs to run, to read and to start from. All are in the folder [examples](../examples).
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the gallery to the files of the site."""
    paths = sorted((Path(config.docs_dir).parent / "examples").glob("*.py"))
    sections = (section(path, f"gallery/{path.stem}.png" in files.src_uris) for path in paths)
    files.append(File.generated(config, "gallery.md", content=INTRODUCTION + "".join(sections)))
    return files


def section(path: Path, has_figure: bool) -> str:
    """Write what the docstring of an example says, with its figure if there is one, its command and its source."""
    summary, body, command = parts(path.read_text("utf-8"))
    name = title(summary)
    figure = f"\n![What the example draws: {name}](gallery/{path.stem}.png)\n" if has_figure else ""
    return f"""
## {name} {{ #{path.stem} }}

{markdown(summary)}
{figure}
{markdown(body)}

```console
{command}
```

Source: [{path.name}](../examples/{path.name}).
"""


def parts(source: str) -> tuple[str, str, str]:
    """Take the docstring of an example apart: its first paragraph, all that follows, and the command in it."""
    summary, _, rest = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    usage = re.search(r"^ {4}(python .*)\n*", rest, re.MULTILINE)
    if usage is None:
        return summary, rest, ""
    return summary, rest[: usage.start()] + rest[usage.end() :], usage[1]


def title(summary: str) -> str:
    """Return the first words of a summary, up to a comma, a colon, a semicolon or a full stop."""
    return re.split("[,;:.]", " ".join(summary.split()))[0]
