"""The page of an evaluation in a browser."""

import pytest

from tests.browser.visits import SCHEMES, WIDTHS


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_whole_and_accessible(visit, evaluation_address, shots, width, scheme):
    it = visit(evaluation_address, width, scheme)
    it.check_fits()
    it.check_accessible()
    assert "cannot answer for never" in it.page.locator(".answer").inner_text()
    it.shoot(shots, f"evaluation-{width}-{scheme}")
