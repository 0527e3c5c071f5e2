"""report.html in a browser."""

import pytest

from tests.browser.visits import SCHEMES, WIDTHS


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_whole_and_accessible(visit, report_address, shots, width, scheme):
    it = visit(report_address, width, scheme)
    it.check_fits()
    it.check_accessible()
    it.page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    it.check_fits()
    it.shoot(shots, f"report-{width}-{scheme}")


def test_the_scheme_is_the_readers(visit, report_address):
    colors = {scheme: background(visit(report_address, scheme=scheme)) for scheme in SCHEMES}
    assert colors["light"] == "rgb(255, 255, 255)"
    assert colors["dark"] != colors["light"]


def background(it):
    return it.page.evaluate("() => getComputedStyle(document.body).backgroundColor")


def test_details_open_by_keyboard(visit, report_address):
    it = visit(report_address)
    first = it.page.locator("details").first
    for _ in range(10):
        it.press("Tab")
        if it.page.evaluate("() => document.activeElement.tagName") == "SUMMARY":
            break
    opened = first.evaluate("(one) => one.open")
    for key in ("Enter", "Space"):
        it.press(key)
        assert first.evaluate("(one) => one.open") is not opened
        opened = not opened
