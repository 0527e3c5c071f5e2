"""The site in a browser, opened from disk: search, colors, widths, and what keyboards can do."""

import pytest

from tests.browser.visits import SCHEMES, WIDTHS

PAGES = (
    "index", "first-agent", "notebooks/figure1", "gallery", "algorithms", "reference/agent", "results",
    "arena", "theory", "architecture",
)  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_are_whole(visit, site, shots, width, scheme, name):
    it = visit(f"{site}{name}.html", width, scheme)
    it.check_fits()
    it.shoot(shots, f"site-{name.replace('/', '-')}-{width}-{scheme}")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_accessible(visit, site, name, scheme):
    visit(f"{site}{name}.html", scheme=scheme).check_accessible()


def test_the_scheme_is_the_readers_and_can_be_changed(visit, site):
    for scheme, expected in (("light", "default"), ("dark", "slate")):
        it = visit(f"{site}index.html", scheme=scheme)
        it.page.wait_for_selector(f"body[data-md-color-scheme={expected}]")
    it.page.click("label[title=Light]:visible")
    it.page.wait_for_selector("body[data-md-color-scheme=default]")


@pytest.mark.parametrize("words", ["GLM-TSL", "propensity", "regret bound"])
def test_search_finds_something_from_disk(visit, site, words):
    it = visit(f"{site}index.html")
    it.press("/")  # goes to the field
    it.page.keyboard.type(words)
    it.page.wait_for_selector(".md-search-result__link")
    it.press("ArrowDown")
    assert "md-search-result__link" in it.page.evaluate("() => document.activeElement.className")
    it.press("Enter")
    it.page.wait_for_url("**/*.html?h=*")
    assert words.split()[0].lower() in it.page.locator("article").inner_text().lower()


def test_the_keyboard_gets_to_the_content_first(visit, site):
    it = visit(f"{site}first-agent.html")
    it.press("Tab")
    assert "Skip to content" in it.focused()
    it.press("Enter")
    it.page.wait_for_url("**/first-agent.html#*")


def test_every_page_of_the_menu_opens_on_a_phone(visit, site):
    it = visit(f"{site}index.html", 500)
    links = it.page.eval_on_selector_all(".md-nav--primary a.md-nav__link", "(all) => all.map((one) => one.href)")
    pages = {link.partition("#")[0] for link in links}
    assert len(pages) > 10
    for link in sorted(pages):
        it.page.goto(link)
        assert it.page.locator("article h1").count() == 1, link
        it.check_fits()


def test_the_arena_of_the_docs_is_there(visit, site):
    it = visit(f"{site}arena-page.html", wait_for="#chart svg")
    assert it.page.locator("#chart g.series").count() == 10
