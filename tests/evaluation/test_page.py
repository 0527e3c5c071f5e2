"""The page: whole, loading nothing, with everything escaped, for readers with eyes and without."""

import re
from html.parser import HTMLParser

from explorax.evaluation.page import render
from explorax.evaluation.result import Evaluation
from tests.evaluation.test_answer import BAD, GOOD
from tests.evaluation.test_values import row

LOG = row(target="logging policy", estimator="on_policy", gain=None, gain_low=None, gain_high=None, effective=None)
NAME = "<b>&new</b>"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1240).to_bytes(4, "big") + bytes(8)


def page(diagnostics):
    rows = (LOG, row(target=NAME), row(target=NAME, estimator="dm", effective=None, gain_low=-0.3, gain_high=-0.2))
    found = Evaluation(rows, diagnostics, ("First <assumption>.", "Second."), f"{NAME} is shown better.")
    return render(found.to_dict(), PNG)


class Tree(HTMLParser):
    """Collects tags, and complains about those that are not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing():
    tree = Tree()
    tree.feed(page({NAME: GOOD, "dark": BAD}))
    assert tree.open == []
    tags = [tag for tag, _ in tree.seen]
    assert "script" not in tags
    assert "link" not in tags
    assert tags.count("h1") == 1
    for tag, attributes in tree.seen:
        for name in ("src", "href"):
            assert attributes.get(name, "data:").startswith("data:"), tag
    (image,) = [attributes for tag, attributes in tree.seen if tag == "img"]
    assert f"{NAME}, dr: 0.5000, interval 0.4500 to 0.5500." in image["alt"]


def test_what_comes_from_a_log_is_escaped():
    text = page({NAME: GOOD})
    assert "<b>" not in text
    assert "&lt;b&gt;&amp;new&lt;/b&gt;" in text
    assert "First &lt;assumption&gt;." in text


def test_the_answer_comes_first_and_everything_is_there():
    text = page({NAME: GOOD, "dark": BAD})
    parts = ['class="answer"', "<h2>Values</h2>", "<figure>", "<h2>Diagnostics</h2>", "<h2>Assumptions</h2>"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    for caption in ("Weights:", "Overlap:", "Mean weights", "Calibration of the propensities"):
        assert f"<caption><span>{caption}" in text
    assert re.search(r'verdict fails" aria-hidden="true">✗</span> The log cannot answer', text)
    assert '<span class="verdict holds">better</span>' in text


def test_without_weights_there_are_no_diagnostics():
    assert "Diagnostics" not in page({})
