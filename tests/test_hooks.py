"""The hooks that make pages of the site: formulas, docstrings as Markdown, examples, and links."""

import accessible
import gallery
import maths
import pytest
import reference
import repository
import texts

from tests.architecture import ROOT


def test_a_public_name_without_a_page_fails_the_build():
    with pytest.raises(
        reference.PluginError, match=r"explorax\.new is public and has no page\. Add explorax\.rooms to"
    ):
        reference.area_of(reference.Name("explorax.new", None, "explorax.rooms"))


def test_an_example_in_the_gallery(tmp_path):
    paragraphs = ["Buses, and *when* to send them.", "    python examples/buses.py [--rounds 9]"]
    paragraphs += ["A bus has x* seats:", "    y = x*"]
    (tmp_path / "buses.py").write_text('"""{}"""'.format("\n\n".join(paragraphs)))
    shown = gallery.section(tmp_path / "buses.py", has_figure=True)
    assert shown.startswith("\n## Buses { #buses }\n\nBuses, and *when* to send them.\n\n![")
    assert "](gallery/buses.png)" in shown
    assert "\nA bus has x\\* seats:\n\n    y = x*\n" in shown
    assert "```console\npython examples/buses.py [--rounds 9]\n```" in shown
    assert "png" not in gallery.section(tmp_path / "buses.py", has_figure=False)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\theta", "<mi>θ</mi>"),
        (r"\tilde\theta \sim N", "<mo>∼</mo>"),
        (r"\operatorname*{arg\,max}_i x_i", '<munder><mo movablelimits="true">arg\u2009max</mo><mi>i</mi></munder>'),
        (r"\arg\min_\theta x", "arg\u2009min"),
        (r"d \log n", '<mi>d</mi><mspace width="0.167em" /><mi>log</mi><mspace width="0.167em" /><mi>n</mi>'),
        (r"\log(n/d)", '<mi>log</mi><mo stretchy="false">(</mo><mi>n</mi><mo lspace="0" rspace="0">/</mo>'),
        (r"(-1, 1)", '<mo form="prefix">−</mo><mn>1</mn>'),
        (r"\lambda_{\min}", "<mrow><mi>min</mi></mrow>"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "<mtable"),
    ],
)
def test_formulas(latex, expected, caplog):
    assert expected in maths.typeset(latex, False, "page.md")
    assert not caplog.records


@pytest.mark.parametrize("latex", [r"\nowhere x", r"\frac{a}{", "x_1_2", "a & b"])
def test_a_formula_that_cannot_be_typeset_is_a_warning(latex, caplog):
    maths.typeset(latex, True, "page.md")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "A formula on page.md" in caplog.text
    assert latex in caplog.text


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        ("θ* and x_*, in [0, 1]", r"θ\* and x\_\*, in \[0, 1\]"),
        ("`a*b` for *every* x, **always**", "`a*b` for *every* x, **always**"),
        ("    θ* = [1]", "    θ* = [1]"),
        ("a * b * c < d", r"a \* b \* c \< d"),
    ],
)
def test_docstrings_are_markdown(docstring, markdown):
    assert texts.markdown(docstring) == markdown


@pytest.mark.parametrize(
    ("link", "origin", "turned"),
    [
        ("results.md#speed", "docs/errata.md", "results.md#speed"),
        ("../src/explorax/registry.py", "docs/errata.md", "algorithms.md"),
        ("../README.md", "docs/errata.md", "index.md"),
        ("../CHANGELOG.md", "docs/errata.md", "changelog.md"),
        ("../src/explorax/__init__.pyi", "docs/errata.md", "reference/index.md"),
        ("docs/results.md#speed", "CHANGELOG.md", "results.md#speed"),
        ("src/explorax/networks.py", "ARCHITECTURE.md", "source/src/explorax/networks.py.md"),
        ("arena.json.gz", "docs/arena.md", "arena-page.html"),
        ("../examples", "docs/errata.md", "source/examples.md"),
        ("../nowhere.py", "docs/errata.md", "../nowhere.py"),
        ("../../elsewhere.py", "docs/errata.md", "../../elsewhere.py"),
        ("https://example.org/a.md", "docs/errata.md", "https://example.org/a.md"),
        ("#speed", "docs/errata.md", "#speed"),
    ],
)
def test_links_for_a_forge_are_turned_to_the_site(link, origin, turned):
    assert repository.Site(ROOT, "docs").turned(f"[text]({link})", origin, "errata.md") == f"[text]({turned})"


def test_what_those_who_listen_need():
    table = '<tr><th></th><th style="text-align: right;"></th><th>regret</th></tr>'
    shown = '<tr><td></td><td style="text-align: right;"></td><th>regret</th></tr>'
    assert accessible.on_page_content(table) == shown
    search = '<div class="md-search" data-md-component="search" role="dialog">'
    assert 'role="dialog" aria-label="Search">' in accessible.on_post_page(search)
