"""The site of the docs: it builds without a warning, has what it should, and every link in it leads somewhere."""

import inspect
import os
import posixpath
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

import explorax
from explorax.builders import settings_in
from explorax.policies.settings import DeepSettings, GLMSettings, LinearSettings

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.xdist_group("site")  # one build serves all


class Page(NamedTuple):
    text: str
    headings: str
    preformatted: str
    anchors: set[str]
    links: list[str]  # a reader may follow them
    needed: list[str]  # a browser loads them: images, scripts, styles


class Site(NamedTuple):
    folder: Path
    pages: dict[str, Page]


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.text, self.headings, self.preformatted, self.within = [], [], [], []
        self.anchors, self.links, self.needed = set(), [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.needed.append(attributes["href"])
        elif "src" in attributes:
            self.needed.append(attributes["src"])
        self.within.append(tag)

    def handle_endtag(self, tag):
        while self.within and self.within.pop() != tag:  # tags such as <img> have no end
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.within):
            self.text.append(data)
        if {"h1", "h2"} & set(self.within):
            self.headings.append(data)
        if "pre" in self.within:
            self.preformatted.append(data)


def read(path):
    reader = Reader()
    reader.feed(path.read_text("utf-8"))
    text, headings = (" ".join("".join(parts).split()) for parts in (reader.text, reader.headings))
    return Page(text, headings, "".join(reader.preformatted), reader.anchors, reader.links, reader.needed)


def build(repository, site):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return Site(folder, {path.relative_to(folder).as_posix(): read(path) for path in folder.rglob("*.html")})


@pytest.fixture
def copy(tmp_path):
    """The repository, with docs that may be changed."""
    repository = tmp_path / "repository"
    shutil.copytree(ROOT / "docs", repository / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", repository)
    for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "src", "examples", "benchmarks"):
        (repository / name).symlink_to(ROOT / name)
    return repository


def test_every_page_is_there(site):
    for source in ROOT.glob("docs/*.md"):
        written = source.read_text().removeprefix("# ").splitlines()[0]
        assert site.pages[f"{source.stem}.html"].headings.startswith(written.replace("`", ""))
    assert explorax.__version__ in site.pages["changelog.html"].text
    assert "The one abstraction" in site.pages["architecture.html"].headings


def test_every_policy_is_explained(site):
    algorithms = site.pages["algorithms.html"]
    for entry in explorax.list_policies().values():
        assert entry.name in algorithms.anchors
        assert entry.title in algorithms.headings
        for fact in (entry.reference, entry.cost, f"explorax.{entry.name} takes"):
            assert fact in algorithms.text
        summary, *lines = inspect.getdoc(sys.modules[entry.builder().__module__]).splitlines()
        assert summary.removeprefix(f"{entry.title}: ").replace("`", "")[1:] in algorithms.text
        for formula in (line.removeprefix("    ") for line in lines if line.startswith("    ")):
            assert formula in algorithms.preformatted, entry.name


def test_rules_and_settings_are_those_of_the_code(site):
    page = site.pages["algorithms.html"]
    assert "θ̃ ~ N(θ̄, a² H⁻¹),    pull argmax_i x_iᵀθ̃\n" in page.preformatted
    assert "takes scale=None, ridge=1.0, refresh=50 and the settings that all deep policies take." in page.text
    assert "explorax.uniform takes no settings." in page.text
    for kind in (GLMSettings, LinearSettings, DeepSettings):
        assert kind.__name__ in page.anchors
        for name, setting in settings_in(kind).items():
            default = repr(setting.default) if setting.shown is None else setting.shown
            shown = f"{name} {setting.meaning} {default}".replace("`", "")
            assert " ".join(shown.split()) in page.text


def test_source_that_pages_link_to_is_in_the_site(site):
    proximal = (ROOT / "src/explorax/glm/proximal.py").read_text()
    assert " ".join(proximal.split()) in site.pages["source/src/explorax/glm/proximal.py.html"].text
    for example in ROOT.glob("examples/*.py"):
        assert f"examples/{example.name}.html" in site.pages["source/examples.html"].links


def test_links_and_anchors_lead_somewhere(site):
    followed = 0
    for name, page in site.pages.items():
        for link in {*page.links, *page.needed}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            assert name == "404.html" or not link.startswith("/"), f"{name}: {link}"  # 404 is served for any address
            path = posixpath.join("/", posixpath.dirname(name), unquote(parts.path))
            target = posixpath.normpath(path)[1:] if parts.path else name
            assert (site.folder / target).is_file(), f"{name}: {link}"
            if parts.fragment:
                assert unquote(parts.fragment) in site.pages[target].anchors, f"{name}: {link}"
            followed += 1
    assert followed > 500


def test_nothing_is_asked_of_the_network(site):
    for name, page in site.pages.items():
        assert not [link for link in page.needed if urlsplit(link).netloc], name


def test_what_is_broken_fails_the_build(copy, tmp_path):
    with (copy / "docs/errata.md").open("a") as errata:
        errata.write(
            "[a](nowhere.md) [b](../src/nowhere.py) [c](results.md#nowhere) ![d](nowhere.png) [e](../nowhere)\n"
        )
    (copy / "docs/forgotten.md").write_text("# A page without a place\n")
    done = build(copy, tmp_path / "site")
    assert done.returncode != 0
    for broken in ("nowhere.md", "../src/nowhere.py", "results.md#nowhere", "nowhere.png", "../nowhere"):
        assert f"link '{broken}'" in done.stderr
    assert "forgotten.md" in done.stderr
    assert done.stderr.count("WARNING") == 6  # and no more


@pytest.mark.parametrize(
    ("link", "origin", "turned"),
    [
        ("results.md#speed", "docs/errata.md", "results.md#speed"),
        ("../src/explorax/registry.py", "docs/errata.md", "algorithms.md"),
        ("../README.md", "docs/errata.md", "index.md"),
        ("../CHANGELOG.md", "docs/errata.md", "changelog.md"),
        ("docs/results.md#speed", "CHANGELOG.md", "results.md#speed"),
        ("src/explorax/networks.py", "ARCHITECTURE.md", "source/src/explorax/networks.py.md"),
        ("../examples", "docs/errata.md", "source/examples.md"),
        ("../nowhere.py", "docs/errata.md", "../nowhere.py"),
        ("../../elsewhere.py", "docs/errata.md", "../../elsewhere.py"),
        ("https://example.org/a.md", "docs/errata.md", "https://example.org/a.md"),
        ("#speed", "docs/errata.md", "#speed"),
    ],
)
def test_links_for_a_forge_are_turned_to_the_site(link, origin, turned):
    hook = runpy.run_path(str(ROOT / "docs/hooks/repository.py"))
    assert hook["Site"](ROOT, "docs").turned(f"[text]({link})", origin, "errata.md") == f"[text]({turned})"
