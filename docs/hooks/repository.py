"""The files around the docs as pages of the site, and the links that lead to them.

The pages of docs/ are read on a forge too, and there they link to files of the repository, `../src/explorax/theory`
say.  The site has docs/ only.  So a file that a page links to becomes a page with its text, a folder one with links to
its files, and the links of all pages are turned to where things are in the site.
"""

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
STAND_INS = {  # what the site has in their place
    "docs/arena.json.gz": "arena-page.html",
    "src/explorax/registry.py": "algorithms.md",
    "README.md": "index.md",
    "src/explorax/__init__.pyi": "reference/index.md",
}
LINK = re.compile(r"(?<=\]\()[^()\s]+(?=\))")  # the target in [text](target)
SOURCES = {".py": "python", ".toml": "toml", ".txt": "text"}  # what a folder is searched for -> its language
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Turn the links of all pages to the site, and add the pages that they lead to."""
    site = Site(Path(config.docs_dir).parent, Path(config.docs_dir).name)
    origins = {page.src_uri: f"{site.docs}/{page.src_uri}" for page in files.documentation_pages()}
    for origin, uri in PAGES.items():
        files.append(File.generated(config, uri, content=(site.root / origin).read_text("utf-8")))
        origins[uri] = origin
    for uri, origin in origins.items():
        page = files.src_uris[uri]
        page.content_string = site.turned(page.content_string, origin, uri)
    for path in sorted(site.linked):
        text = UNSEARCHED + source(path, path.relative_to(site.root).as_posix())
        files.append(File.generated(config, site.page(path), content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


@dataclass
class Site:
    """A repository with its docs, and what pages link to outside of these."""

    root: Path  # of the repository
    docs: str  # the folder of pages in it
    linked: set[Path] = field(default_factory=set)  # files and folders outside of it that pages link to

    def turned(self, markdown: str, origin: str, uri: str) -> str:
        """Turn the links in the text of `origin`, a file of the repository, for a page at `uri` of the site."""
        return LINK.sub(lambda found: self.link(found[0], origin, uri), markdown)

    def link(self, link: str, origin: str, uri: str) -> str:
        """Turn one link; a link that leads nowhere stays as it is, and mkdocs complains of it."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or not parts.path:
            return link
        target = os.path.normpath(os.path.join(os.path.dirname(origin), parts.path))
        anchor = f"#{parts.fragment}" if parts.fragment else ""
        if target + anchor in STAND_INS:
            target, anchor = STAND_INS[target + anchor], ""
        elif target in PAGES:
            target = PAGES[target]
        elif target.startswith(f"{self.docs}/"):
            target = target.removeprefix(f"{self.docs}/")
        elif not target.startswith("..") and (self.root / target).exists():
            self.linked.update(reachable(self.root / target))
            target = self.page(self.root / target)
        else:
            return link
        return os.path.relpath(target, os.path.dirname(uri) or ".") + anchor

    def page(self, path: Path) -> str:
        """Return the address of the page of a source file or folder."""
        return f"source/{path.relative_to(self.root).as_posix()}.md"


def reachable(path: Path) -> Iterator[Path]:
    """Yield a path and all source files and folders below it."""
    yield path
    for inner in children(path):
        yield from reachable(inner)


def children(path: Path) -> list[Path]:
    """Return the source files and folders in a folder; a file has none."""
    inside = path.iterdir() if path.is_dir() else ()
    return sorted(p for p in inside if p.suffix in SOURCES or (p.is_dir() and p.name != "__pycache__"))


def source(path: Path, name: str) -> str:
    """Write the page of a source file with its text, or that of a folder with a list of its files."""
    heading = f"# {name} {{ .path }}\n\n"
    if path.is_dir():
        links = (f"- [{inner.name}]({path.name}/{inner.name}.md)  {summary(inner)}\n" for inner in children(path))
        return heading + "".join(links)
    fence = "``````"  # longer than any in a file
    return f"{heading}{fence}{SOURCES.get(path.suffix, 'text')}\n{path.read_text('utf-8')}{fence}\n"


def summary(path: Path) -> str:
    """Return the first line of the docstring of a module, and nothing for other files."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) if path.suffix == ".py" else None
    return docstring.splitlines()[0] if docstring else ""
