"""The site of the docs: it builds without a warning, has what it should, and every link in it leads somewhere."""

import inspect
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import types
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
import reference
import repository

import explorax
from explorax.builders import setting_names, settings_in
from explorax.policies.settings import DeepSettings, GLMSettings, LinearSettings

ROOT = Path(__file__).parents[1]


class Page(NamedTuple):
    text: str
    headings: str
    preformatted: str
    formulas: list[str]  # kinds of display: block or inline
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
        self.formulas, self.anchors, self.links, self.needed = [], set(), [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.needed.append(attributes["href"])
        elif "src" in attributes:
            self.needed.append(attributes["src"])
        elif tag == "math":
            self.formulas.append(attributes["display"])
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
    preformatted = "".join(reader.preformatted)
    return Page(text, headings, preformatted, reader.formulas, reader.anchors, reader.links, reader.needed)


def build(folder, site):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


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
    folder = tmp_path / "repository"
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for path in ROOT.glob("[!.]*"):
        if path.name not in ("docs", "mkdocs.yml", "results", "site"):
            (folder / path.name).symlink_to(path)
    return folder


def test_every_page_is_there(site):
    docs = ROOT / "docs"
    sources = {source.relative_to(docs).with_suffix(".html").as_posix(): source for source in docs.rglob("*.md")}
    sources |= {Path(uri).with_suffix(".html").name: ROOT / name for name, uri in repository.PAGES.items()}
    assert len(sources) > 20
    for page, source in sources.items():
        written = source.read_text().removeprefix("# ").splitlines()[0]
        assert site.pages[page].headings.startswith(written.replace("`", ""))
    assert explorax.__version__ in site.pages["changelog.html"].text


def test_every_public_name_has_its_place_in_the_reference(site):
    anchors = {anchor for name, page in site.pages.items() if name.startswith("reference/") for anchor in page.anchors}
    overview = site.pages["reference/index.html"]
    for name in explorax.__all__:
        found = getattr(explorax, name)
        assert f"explorax.{name}" in anchors
        assert any(link.endswith(f"#explorax.{name}") for link in overview.links), name
        if inspect.isclass(found):
            methods = [one for one, what in vars(found).items() if inspect.isfunction(what) and one.isidentifier()]
            shown = [one for one in methods if one == "__call__" or not one.startswith("_")]
            assert {f"explorax.{name}.{one}" for one in shown} <= anchors
        elif isinstance(found, types.ModuleType):
            internal = reference.INTERNAL.get(found.__name__, "").split()
            for one, what in vars(found).items():
                if inspect.isroutine(what) and what.__module__ == found.__name__ and not one.startswith("_"):
                    assert one in internal or f"explorax.{name}.{one}" in anchors, f"{name}.{one}"
    for name in ("glm.history.Grouped", "runner.run", "experiments.study.Study", "experiments.logistic.study"):
        assert f"explorax.{name}" in anchors
    assert not [anchor for anchor in anchors if re.search(r"\._(?!_)", anchor)]


@pytest.mark.parametrize("name", [*explorax.list_policies(), *explorax.environments.BUILDERS])
def test_the_reference_shows_all_settings_of_a_builder(site, name):
    if name in explorax.environments.BUILDERS:
        page, builder = site.pages["reference/environments.html"], explorax.environments.BUILDERS[name]
    else:
        page, builder = site.pages["reference/builders.html"], getattr(explorax, name)
    signature = re.search(rf"^{name}\((.*?)\) -> ", page.preformatted, re.DOTALL | re.MULTILINE)[1]
    assert re.findall(r"\b(\w+):", signature) == setting_names(builder)
    assert " ".join(inspect.getdoc(builder).partition("\n")[0].split()) in page.text


def test_the_reference_links_types_and_errors(site):
    assert {"policies.html#explorax.Policy", "environments.html#explorax.Environment", "#explorax.Records"} <= set(
        site.pages["reference/simulation.html"].links
    )
    builders = site.pages["reference/builders.html"]
    assert {"fit.html#explorax.Family", "errors.html#explorax.errors.InvalidArgument"} <= set(builders.links)
    assert 'design: Literal["informal", "theory"] = "informal"' in builders.preformatted
    assert "θ̃ ~ N(θ̄, a² H⁻¹),    pull argmax_i x_iᵀθ̃\n" in builders.preformatted


def test_notebooks_are_pages(site):
    for notebook in ROOT.glob("docs/notebooks/*.ipynb"):
        page = site.pages[f"notebooks/{notebook.stem}.html"]
        cells = json.loads(notebook.read_text())["cells"]
        assert "".join(cells[0]["source"]).splitlines()[0].removeprefix("# ") in page.headings
        assert notebook.name in page.links
        assert {"block", "inline"} == set(page.formulas)
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        streams = ["".join(output["text"]) for cell in code for output in cell["outputs"] if "text" in output]
        for text in ("".join(cell["source"]) for cell in code):
            assert text in page.preformatted
        for text in streams:
            assert text in page.preformatted
        figures = [output for cell in code for output in cell["outputs"] if "image/png" in output.get("data", {})]
        assert len([needed for needed in page.needed if needed.startswith(f"{notebook.stem}_files/")]) == len(figures)


def test_the_gallery_has_every_example(site):
    page = site.pages["gallery.html"]
    for example in ROOT.glob("examples/*.py"):
        assert example.stem in page.anchors
        assert f"source/examples/{example.name}.html" in page.links
        assert f"python examples/{example.name}" in page.preformatted
        figure = f"gallery/{example.stem}.png"
        assert (figure in page.needed) == (ROOT / "docs" / figure).exists()


def test_search_works_from_disk(site):
    """A script holds the index, since no other file can be read from disk, and another one stands in for workers."""
    start, _, index = (site.folder / "search/search_index.js").read_text().partition("{")
    assert start == "var __index = "
    found = {entry["location"] for entry in json.loads("{" + index)["docs"]}
    assert {"index.html", "reference/builders.html#explorax.glm_tsl", "algorithms.html#glm_tsl"} <= found
    assert not [location for location in found if location.startswith("source/")]
    for name, page in site.pages.items():
        assert "arena" in name or any(needed.endswith("javascripts/iframe-worker.js") for needed in page.needed), name


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
            "$\\nowhere$\n"
        )
    (copy / "docs/forgotten.md").write_text("# A page without a place\n")
    done = build(copy, tmp_path / "site")
    assert done.returncode != 0
    for broken in ("nowhere.md", "../src/nowhere.py", "results.md#nowhere", "nowhere.png", "../nowhere"):
        assert f"link '{broken}'" in done.stderr
    assert "forgotten.md" in done.stderr
    assert r"A formula on errata.md has \nowhere, which is not known" in done.stderr
    assert done.stderr.count("WARNING") == 7  # and no more
