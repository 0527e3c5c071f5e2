"""The report is one self-contained, well-formed page with everything in it, and nothing in it is taken for markup."""

import base64
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from explorax import plot, record, report, summarize
from explorax.claims import Claim, Evidence, beat
from explorax.experiments import logistic
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
        about="Four policies play.",
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
    assert "Four policies play. 4 of 4 claims hold in every panel." in text
    assert text.count("✓ holds") == 4
    assert text.count("d = 5: holds") == 4
    assert "Informal GLM-UCB and UCB-GLM have linear regret." in text
    number = r"[\d.]+ ± [\d.]+"
    assert re.search(
        rf"GLM-TSL \(theory\) beats GLM-UCB \(theory\): regret {number} against {number}, "
        rf"paired difference -{number}\.",
        text,
    )
    assert re.search(rf"GLM-UCB \(informal\) grows linearly: growth exponent {number}, 5 of 40 instances", text)
    assert "d = 20: final regret after 50\N{NO-BREAK SPACE}000 rounds, over 40 instances" in text
    for wanted in ("explorax reproduce logistic", "gpu (a fast one)", "2 min 5 s", "jaxlib", "2024-05-01 00:02:05 UTC"):
        assert wanted in text
    assert '"environment": "logistic"' in text


def test_settings_can_be_read(png):
    html = page(png)
    assert '<th scope="row">GLM-TSL (theory)</th><td class="text">glm_tsl</td><td class="text">theory</td>' in html
    assert '<td class="text">ridge = 1, tolerance = 0.001</td>' in html
    assert '<th scope="row">d = 5</th><td class="text">n_features = 5</td>' in html
    assert "<dt>Rounds</dt><dd>50\N{NO-BREAK SPACE}000</dd>" in html
    assert "<dt>Environment settings</dt><dd>n_arms = 100</dd>" in html


def test_tables_have_captions_and_scopes_and_scroll_alone(png):
    html = page(png)
    assert html.count("<table>") == html.count("<caption>") == 3 + 2
    assert html.count("<th") - html.count("<thead") == html.count('scope="col"') + html.count('scope="row"')
    containers = re.findall(r'<div class="wide" tabindex="0" role="region" aria-label="[^"]+"><(table|img)', html)
    assert sorted(containers) == ["img"] + ["table"] * 5


def test_evidence_is_folded_only_where_much_of_it_supports_the_claim(png):
    many = tuple(Evidence(f"Sentence {number}.", True) for number in range(5))
    claims = [
        Claim("a", "A.", True, {}),
        Claim("a", "A.", True, {}, panel="much", evidence=many),
        Claim("a", "A.", True, {}, panel="little", evidence=many[:2]),
        Claim("b", "B.", False, {}),
        Claim("b", "B.", False, {}, panel="against", evidence=(*many, Evidence("No.", False))),
        Claim("b", "B.", None, {}, "Why.", panel="unknown"),
    ]
    html = page(png, claims=claims)
    for panel, attribute in (("much", ""), ("little", " open"), ("against", " open"), ("unknown", " open")):
        assert f"<details{attribute}><summary>{panel}: " in html
    assert html.count("growth exponent") == 0  # words that no sentence uses are not explained


def test_the_table_has_the_summary(png):
    results = fabricate.results(dims=(5,))
    html = page(png, results)
    for row in summarize.summarize(results, "regret"):
        mean = report._regret(row.mean)
        assert re.search(rf'<th scope="row">{re.escape(row.curve)}</th><td>{mean}</td>', html)
    assert html.count("<tr>") == (1 + 8) + (1 + 8) + (1 + 3)  # results, and the settings of curves and panels


def test_a_page_about_rewards_says_nothing_of_regret(png):
    results = fabricate.results(dims=(5,))
    judged = beat([("UCB-GLM (theory)", "GLM-TSL (theory)")], "reward", {one.curve: one for one in results})
    claims = [Claim("a", "A.", True, {}), Claim("a", "A.", True, {}, panel="d = 5", evidence=judged.evidence)]
    html = page(png, results, claims=claims, measure="reward", settings={})
    text = " ".join(Page(html.replace("Regret over rounds.", "")).text)
    assert "Average reward" in text
    assert "average rewards, instance by instance, is in its favor by more than 2 standard errors" in text
    assert "Final regret" not in text
    assert "growth exponent" not in text
    assert re.search(r'<th scope="row">UCB-GLM \(theory\)</th><td>0\.79\d\d</td><td>0\.000\d</td>', html)


def test_verdicts_that_are_not_yes(png):
    claims = [
        Claim("a", "Holds.", True, {}),
        Claim("b", "Falls.", False, {"x": {"z": 1.0}}),
        Claim("b", "Falls.", False, {"x": {"z": 1.0}}, panel="d = 5", evidence=(Evidence("It fell.", False),)),
        Claim("c", "Unknown.", None, {}, "There are no curves."),
    ]
    text = " ".join(Page(page(png, claims=claims)).text)
    assert "1 of 3 claims holds in every panel, 1 does not, 1 is undecided." in text
    assert "✗ does not hold" in text
    assert "It fell." in text
    assert "– undecided" in text
    assert "There are no curves." in text
    assert "laims" not in " ".join(Page(page(png, claims=[])).text)


def test_everything_is_escaped(png):
    results = [one._replace(curve=f"{EVIL}{one.curve}", panel=EVIL) for one in fabricate.results(dims=(5,))]
    claims = [Claim("n", EVIL, None, {}, EVIL), Claim("n", EVIL, False, {}, "", EVIL, (Evidence(EVIL, True),))]
    manifest = {"command": EVIL, "device": EVIL, "settings": {EVIL: EVIL}, "versions": {EVIL: EVIL}}
    html = page(png, results, title=EVIL, claims=claims, **manifest)
    assert "<script" not in html
    found = Page(html)
    assert "script" not in found.tags
    assert sum(EVIL in text for text in found.text) > 10
    picture = report.figure(report.Picture(png, EVIL, EVIL))
    assert ("alt", EVIL) in Page(picture).attributes


def test_a_run_with_one_instance_or_without_end_is_reported(png):
    html = page(png, fabricate.results(instances=1), finished=None, duration_seconds=None)
    text = " ".join(Page(html).text)
    assert "4 are undecided" in text
    assert "None" not in text
    assert "nan" not in text.lower()


def test_the_page_is_written(png, tmp_path):
    report.write_report(tmp_path / "report.html", page(png))
    assert (tmp_path / "report.html").read_text() == page(png)
