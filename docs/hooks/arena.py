"""The arena's page of curves and tables, made from the data of its last run, `docs/arena.json.gz`."""

import importlib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

DATA, PAGE = "arena.json.gz", "arena-page.html"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page to the files of the site, in place of one that is kept among the docs; without data, keep that."""
    data = Path(config.docs_dir) / DATA
    if data.exists():
        arena = importlib.import_module("explorax.arena.page")
        if PAGE in files.src_uris:
            files.remove(files.src_uris[PAGE])
        files.append(File.generated(config, PAGE, content=arena.render(arena.unpack(data.read_bytes()))))
    return files
