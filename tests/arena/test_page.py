"""The page of the arena holds its data, loads nothing, and can be made again from the data."""

import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from explorax.arena import page
from explorax.arena.contestants import Absence
from explorax.arena.standings import ranks
from tests.arena.played import ROWS, TUNING

FOLDER = Path(page.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"


def about(**more):
    given = {"command": "explorax arena", "made": "now", "versions": {"jax": "1"}, "tuning": TUNING, "seed": 0}
    absent = {"logistic-5": [Absence("c", "C", "cannot <play>")]}
    return page.About(**(given | {"missing": [], "absent": absent} | more))


def content(**more):
    return page.content(ROWS, ranks(ROWS), about(**more))


def data_in(html):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1])


def test_the_page_holds_its_data_and_loads_nothing():
    html = page.render(content(missing=["the rest"]))
    data = data_in(html)
    assert [row["mean"][-1] for row in data["rows"]] == [3.5, 5.167, 4.5]
    assert data["rows"][2]["gap"] == [1.0, 0.0]
    assert data["rows"][1]["setting"] == "scale = 0.5"
    assert {one["name"] for one in data["problems"]} == {"logistic-5"}
    assert data["problems"][0]["rounds"] == [50, 100]
    assert "cannot &lt;play&gt;" in html
    assert "cannot <play>" not in html
    assert "Not played yet: the rest" in html
    # What the script looks up is there.
    script = html.rpartition('<script type="module">')[2]
    looked_up = set(re.findall(r'at\("(\w+)"\)', script))
    assert len(looked_up) > 10
    for name in looked_up | {"variant-default", "variant-tuned", "variant-both"}:
        assert f'id="{name}"' in html
    assert not re.search(r'(src|href)="', html)
    assert not re.search(r"url\(|@import|fetch\(|https?:(?!//www\.w3\.org/2000/svg)", html)


def test_without_scripts_there_is_a_table_without_blanks():
    table = re.search(r"<noscript><h2>.*?</noscript>", page.render(content()), re.DOTALL)[0]
    rows = [re.findall(r"<td>(.*?)</td>", line) for line in re.findall(r"<tr>(.*?)</tr>", table)]
    assert rows[1:] == [
        ["GLM_TSL", "default", "default", "3.5 ± 1.5", "+0.0 ± 0.0", "–", "–"],
        ["B", "default", "none", "4.5 ± 1.5", "+1.0 ± 0.0", "worse", "2"],
        ["GLM_TSL", "tuned", "scale = 0.5", "5.2 ± 0.3", "+0.0 ± 0.0", "–", "–"],
    ]
    assert re.findall(r"<th>(.*?)</th>", table) == list(page.HEAD)
    assert "C: cannot &lt;play&gt;" in table


def test_packed_data_makes_the_same_page():
    kept = content()
    packed = page.pack(kept)
    assert packed == page.pack(content())
    assert page.unpack(packed) == kept
    assert page.render(page.unpack(packed)) == page.render(kept)
    assert data_in(page.render(kept)) == kept


def test_the_data_of_the_docs_makes_their_page():
    kept = page.unpack((DOCS / "arena.json.gz").read_bytes())
    html = page.render(kept)
    assert (len(kept["problems"]), len(kept["policies"])) == (13, 28)
    assert "Regret of 28 policies on 13 random" in " ".join(html.split())
    assert set(kept) == set(content())
    for part in ("problems", "rows", "ranks"):
        assert set(kept[part][0]) == set(content()[part][0])
    assert all(row["microseconds"] > 0 for row in kept["rows"])
    rounds = {one["name"]: one["rounds"] for one in kept["problems"]}
    assert all(len(row["mean"]) == len(row["half"]) == len(rounds[row["problem"]]) for row in kept["rows"])


# What people who lack a kind of cones see, in linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.
SIGHT = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# From linear RGB to Oklab, in which equal distances look equal; black and white are 1 apart.
TO_CONES = [[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]]
TO_OKLAB = [[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]]


def linear(color):
    values = np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    return np.array(TO_OKLAB) @ np.cbrt(np.array(TO_CONES) @ np.clip(rgb, 0, 1))


@pytest.mark.parametrize(("scheme", "back"), [("light", "#ffffff"), ("dark", "#15171a")])
def test_colors_can_be_told_apart_by_the_color_blind(scheme, back):
    css = (FOLDER / "page.css").read_text()
    parts = dict(zip(("light", "dark"), css.split("prefers-color-scheme: dark"), strict=True))
    colors = [linear(color) for color in re.findall(r"--c\d: (#\w{6})", parts[scheme])]
    assert len(colors) == int(re.search(r"COLORS = (\d)", (FOLDER / "page_chart.js").read_text())[1])
    for who, matrix in SIGHT.items():
        seen = [oklab(np.array(matrix) @ color) for color in colors]
        assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 0.16, who
    luminances = [float(color @ [0.2126, 0.7152, 0.0722]) + 0.05 for color in (*colors, linear(back))]
    assert min(max(one, luminances[-1]) / min(one, luminances[-1]) for one in luminances[:-1]) >= 2.95  # contrast


def test_there_is_a_look_for_every_policy():
    script = (FOLDER / "page_chart.js").read_text()
    dashes = re.search(r"DASHES = \[(.*?)\]", script)[1].count('"') // 2
    kept = page.unpack((DOCS / "arena.json.gz").read_bytes())
    assert int(re.search(r"COLORS = (\d)", script)[1]) * dashes >= len(kept["policies"])


@pytest.mark.parametrize("name", [*page.SCRIPTS, "page.css"])
def test_files_of_the_page_are_short(name):
    lines = (FOLDER / name).read_text().splitlines()
    assert len(lines) <= 400
    assert max(map(len, lines)) <= 120
