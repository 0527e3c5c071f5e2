"""The page of the arena holds its data and loads nothing."""

import json
import re

from explorax.arena import page
from explorax.arena.contestants import Absence
from explorax.arena.standings import ranks
from tests.arena.played import ROWS, TUNING


def about(**more):
    given = {"command": "explorax arena", "made": "now", "versions": {"jax": "1"}, "tuning": TUNING, "seed": 0}
    absent = {"logistic-5": [Absence("c", "C", "cannot <play>")]}
    return page.About(**(given | {"missing": [], "absent": absent} | more))


def test_the_page_holds_its_data_and_loads_nothing():
    html = page.page(ROWS, ranks(ROWS), about(missing=["the rest"]))
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1])
    assert [row["mean"][-1] for row in data["rows"]] == [3.5, 5.167, 4.5]
    assert data["rows"][2]["gap"] == [1.0, 0.0]
    assert data["rows"][1]["setting"] == "scale = 0.5"
    assert {one["name"] for one in data["problems"]} == {"logistic-5"}
    assert "cannot &lt;play&gt;" in html
    assert "Not played yet: the rest" in html
    # What the script looks up is there.
    script = html.rpartition("<script>")[2]
    for name in re.findall(r'at\("(\w+)"\)', script):
        assert f'id="{name}"' in html
    assert not re.search(r'(src|href)="', html)
