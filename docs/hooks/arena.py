"""The arena's page of curves and tables, made from the data of its last run, `docs/arena.json.gz`."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from explorax.arena import page

DATA, PAGE = "arena.json.gz", "arena-page.html"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page to the files of the site."""
    content = page.render(page.unpack((Path(config.docs_dir) / DATA).read_bytes()))
    files.append(File.generated(config, PAGE, content=content))
    return files
