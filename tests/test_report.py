"""The report is one self-contained, well-formed page with everything in it, and nothing in it is taken for markup."""

import base64
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from explorax import plot, record, report, summarize
from explorax.experiments import logistic
from explorax.summarize import Claim
from tests import fabricate

EVIL = "<script>alert('x')</script> & \"quotes\""
VOID = {"meta", "img", "br", "hr"}


class Page(HTMLParser):
    """Checks that tags are balanced, and collects what matters."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def png():
    return plot.to_bytes(plot.figure(summarize.series(fabricate.results(), "regret")), "png", dpi=60)


def page(png, results=None, title="Logistic bandit", claims=None, measure="regret", **manifest):
    results = fabricate.results() if results is None else results
    start = datetime(2024, 5, 1, tzinfo=UTC)
    content = record.manifest(
        logistic.study().settings(), seed=0, started=start, finished=start + timedelta(seconds=125),
        command="explorax reproduce logistic", device="gpu (a fast one)",
    )  # fmt: skip
    return report.report(
        title,
        pictures=[report.Picture(png, "Regret over rounds.", "Eight curves in three panels.")],
        claims=logistic.study().claims(results) if claims is None else claims,
        summaries=summarize.summarize(results, measure),
        measure=measure,
        manifest=content | manifest,
    )


def test_the_page_is_whole_and_self_contained(png):
    html = page(png)
    found = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "iframe", "object", "embed"} & set(found.tags)
    for name, value in found.attributes:
        assert not name.startswith("on")
        if name in ("src", "href", "srcset", "action", "data"):
            assert value.startswith("data:image/png;base64,")
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    assert not re.search(r"url\(|@import|https?:", style)
    assert "http" not in re.sub(r"base64,[^\"]+", "", html)
    assert "prefers-color-scheme: dark" in style
    assert ("name", "viewport") in found.attributes


def test_the_figure_is_inside(png):
    data = re.search(r'src="data:image/png;base64,([^"]+)"', page(png))[1]
    assert base64.b64decode(data) == png
    assert ("alt", "Eight curves in three panels.") in Page(page(png)).attributes


def test_claims_numbers_and_provenance_are_there(png):
    text = " ".join(Page(page(png)).text)
    assert "4 of 4 claims hold in every panel." in text
    assert text.count("✓ holds") == 4 * (1 + 3)
    assert "Informal GLM-UCB and UCB-GLM have linear regret." in text
    assert "GLM-TSL (theory) against GLM-UCB (theory): difference -" in text
    assert "d = 20, after 50\N{NARROW NO-BREAK SPACE}000 rounds" in text
    for wanted in ("explorax reproduce logistic", "gpu (a fast one)", "2 min 5 s", "jaxlib", "2024-05-01T00:02:05"):
        assert wanted in text
    assert '"environment": "logistic"' in text


def test_the_table_has_the_summary(png):
    results = fabricate.results(dims=(5,))
    html = page(png, results)
    for row in summarize.summarize(results, "regret"):
        mean = report._regret(row.mean)
        assert re.search(rf"<td>{re.escape(row.curve)}</td><td>{mean}</td>", html)
    assert html.count("<tr>") == 1 + 8


def test_a_page_about_rewards_says_nothing_of_regret(png):
    html = page(png, fabricate.results(dims=(5,)), measure="reward", settings={})
    text = " ".join(Page(html.replace("Regret over rounds.", "")).text)
    assert "Average reward" in text
    assert "in its favour by more than 2 standard errors" in text
    assert "Final regret" not in text
    assert "growth exponent" not in text
    assert re.search(r"<td>UCB-GLM \(theory\)</td><td>0\.79\d\d</td><td>0\.000\d</td>", html)


def test_verdicts_that_are_not_yes(png):
    claims = [
        Claim("a", "Holds.", True, {}),
        Claim("b", "Falls.", False, {"x": {"z": 1.0}}),
        Claim("b", "Falls.", False, {"x": {"z": 1.0}}, panel="d = 5"),
        Claim("c", "Unknown.", None, {}, "no curves"),
    ]
    text = " ".join(Page(page(png, claims=claims)).text)
    assert "1 of 3 claims hold in every panel, 1 does not, 1 could not be evaluated." in text
    assert "✗ does not hold" in text
    assert "– not evaluated" in text
    assert "no curves" in text
    assert report.headline([]) == "No claims were checked."
    assert Page(page(png, claims=[]))


def test_everything_is_escaped(png):
    results = [one._replace(curve=f"{EVIL}{one.curve}", panel=EVIL) for one in fabricate.results(dims=(5,))]
    claims = [Claim("n", EVIL, None, {}, EVIL), Claim("n", EVIL, False, {EVIL: {EVIL: 1.0}}, panel=EVIL)]
    manifest = {"command": EVIL, "device": EVIL, "settings": {EVIL: EVIL}, "versions": {EVIL: EVIL}}
    html = page(png, results, title=EVIL, claims=claims, **manifest)
    assert "<script" not in html
    found = Page(html)
    assert "script" not in found.tags
    assert sum(EVIL in text for text in found.text) > 10
    picture = report._figure(report.Picture(png, EVIL, EVIL))
    assert ("alt", EVIL) in Page(picture).attributes


def test_a_run_with_one_instance_or_without_end_is_reported(png):
    html = page(png, fabricate.results(instances=1), finished=None, duration_seconds=None)
    text = " ".join(Page(html).text)
    assert "4 could not be evaluated" in text
    assert "None" not in text
    assert "nan" not in text.lower()


def test_the_page_is_written(png, tmp_path):
    report.write_report(tmp_path / "report.html", page(png))
    assert (tmp_path / "report.html").read_text() == page(png)
