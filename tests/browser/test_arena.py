"""arena.html in a browser: what is shown, what is kept, and what keyboards can do."""

from itertools import pairwise

import pytest

from tests.browser.visits import SCHEMES, WIDTHS

# A few ways to look at it: as it opens, with everything on, with nothing.
STATES = {"opened": "", "all": "#variant=both&policies=all&problem=mushroom", "empty": "#policies="}


@pytest.fixture
def arena(visit, arena_address):
    return lambda choices="", **more: visit(arena_address + choices, wait_for="#app:not([hidden])", **more)


def lines(it):
    return it.page.locator("#chart g.series").count()


def column(it, number, table="regrets"):
    return it.page.locator(f"#{table} tbody td:nth-child({number})").all_inner_texts()


def ticked(it):
    return it.page.eval_on_selector_all("#policies input:checked", "(boxes) => boxes.map((box) => box.value)")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_whole_and_accessible(arena, shots, width, scheme, state):
    it = arena(STATES[state], width=width, scheme=scheme)
    it.check_fits()
    it.check_accessible()
    it.shoot(shots, f"arena-{state}-{width}-{scheme}")
    wide = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.slice(0, 40))"
    assert it.page.eval_on_selector_all(".wide", wide) == []  # no table has to be scrolled, either


@pytest.mark.parametrize("choices", ["", "#variant=tuned", "#variant=both", "#problem=poisson", "#problem=digits"])
def test_at_most_ten_lines_at_first(arena, choices):
    it = arena(choices)
    assert lines(it) == 10
    assert it.page.locator("#count").inner_text().startswith("10 of ")


def test_the_first_ten_are_the_best_by_rank(arena):
    it = arena()
    best = column(it, 1, "ranks")
    it.page.click("#all")
    assert column(it, 1, "ranks")[:10] == best
    it.page.click("#clear")
    assert lines(it) == 0
    assert "tick a policy" in it.page.locator("#chart").inner_text()
    it.page.click("#best")
    assert column(it, 1, "ranks") == best


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("choices", ["", STATES["all"], "#problem=sparse&variant=tuned&policies=all"])
def test_names_at_the_ends_do_not_overlap(arena, choices, width):
    it = arena(choices, width=width)
    boxes = it.page.eval_on_selector_all(
        "#chart text.name",
        "(all) => all.map((one) => one.getBoundingClientRect()).map(({ top, bottom, right }) => [top, bottom, right])",
    )
    boxes.sort()
    assert len(boxes) == lines(it)
    for (_, above, _), (below, _, _) in pairwise(boxes):
        assert below >= above - 1.5  # of the line height; letters are lower
    edge = it.page.locator("#chart svg").bounding_box()
    assert max(right for _, _, right in boxes) <= edge["x"] + edge["width"]
    assert boxes[-1][1] <= edge["y"] + edge["height"]


def test_axes_have_titles(arena):
    assert arena().page.locator("#chart text.title").all_text_contents() == ["mean regret", "round"]


def test_no_two_policies_look_alike(arena):
    it = arena("#policies=all")
    look = "(one) => one.getAttribute('class') + one.getAttribute('stroke-dasharray')"
    looks = it.page.eval_on_selector_all("#policies .swatch line", f"(all) => all.map({look})")
    assert len(looks) == len(set(looks)) == 28


@pytest.mark.parametrize(
    ("key", "number"), [("policy", 1), ("regret", 4), ("minus GLM-TSL", 5), ("verdict", 6), ("µs per round", 7)]
)
def test_tables_are_sorted_by_their_headers(arena, key, number):
    it = arena("#policies=all")
    header = it.page.locator("#regrets th", has_text=key)
    header.locator("button").click()
    if key == "regret":  # it was that before
        header.locator("button").click()
    first = header.get_attribute("aria-sort")
    before = column(it, number)
    header.locator("button").click()
    after = column(it, number)
    assert {first, header.get_attribute("aria-sort")} == {"ascending", "descending"}
    assert it.page.locator("#regrets th[aria-sort]").count() == 1
    assert sorted(before) == sorted(after)
    assert before != after
    if number in (4, 5, 7):
        measured = [float(cell.split(" ")[0]) for cell in after if cell not in ("", "–")]
        assert measured == sorted(measured, reverse=header.get_attribute("aria-sort") == "descending")


def test_no_time_is_blank(arena):
    it = arena("#policies=all")
    times = column(it, 7)
    assert times.count("–") == 1
    assert all(cell == "–" or float(cell) > 0 for cell in times)


def test_the_address_keeps_what_is_chosen(arena):
    it = arena()
    it.page.select_option("#problem", "steep-10")
    it.page.check("#variant-tuned")
    it.page.uncheck("#policies input[value=glm_tsl]")
    it.page.locator("#regrets th button", has_text="policy").click()
    it.page.fill("#find", "ucb")
    chosen, rows, address = ticked(it), column(it, 1), it.page.url
    for part in ("problem=steep-10", "variant=tuned", "regret=policy", "find=ucb"):
        assert part in address

    def is_restored():
        assert it.page.url == address
        assert it.page.input_value("#problem") == "steep-10"
        assert it.page.is_checked("#variant-tuned")
        assert ticked(it) == chosen
        assert column(it, 1) == rows
        assert it.page.locator("#policies label:visible").count() == 4

    it.page.reload()
    is_restored()
    it.page.go_back()  # before the table was sorted
    assert "regret=" not in it.page.url
    assert it.page.locator("#regrets th[aria-sort]").inner_text().startswith("regret")
    it.page.go_back()
    assert "glm_tsl" in ticked(it)
    for _ in range(2):
        it.page.go_back()
    assert "#" not in it.page.url
    assert it.page.input_value("#problem") == "logistic-5"
    for _ in range(4):
        it.page.go_forward()
    is_restored()


def test_a_strange_address_does_no_harm(arena):
    it = arena("#problem=nowhere&variant=toString&policies=nobody,glm_tsl&regret=size&ranks=-&find=%3Cb%3E&more=1")
    assert ticked(it) == ["glm_tsl"]
    assert lines(it) == 1
    assert it.page.locator("#unfound").is_visible()


def test_the_keyboard_alone_is_enough(arena):
    it = arena()
    seen = []
    for _ in range(8):
        it.press("Tab")
        seen.append(it.focused())
        assert it.has_a_ring(), seen[-1]
    assert seen == ["problem", "variant-default", "best", "all", "clear", "find", "ecolog_ofu", "ecolog_ts"]
    it.press("Space")
    assert it.focused() == "ecolog_ts"
    assert "ecolog_ts" not in ticked(it)
    it.press("Space")
    assert "ecolog_ts" in ticked(it)
    for _ in range(5):
        it.press("Shift+Tab")
    assert it.focused() == "best"
    it.press("Shift+Tab", "ArrowRight")
    assert it.focused() == "variant-tuned"
    assert "variant=tuned" in it.page.url
    it.press("Shift+Tab", "ArrowDown")
    assert it.focused() == "problem"
    assert "problem=logistic-10" in it.page.url
    button = it.page.locator("#regrets th button", has_text="policy")
    button.focus()
    for key, order in (("Enter", "ascending"), ("Space", "descending")):
        it.press(key)
        assert it.focused() == "policy"
        assert it.page.locator("#regrets th", has_text="policy").get_attribute("aria-sort") == order
    assert it.has_a_ring()


def test_every_control_has_a_name(arena):
    it = arena()
    unnamed = it.page.eval_on_selector_all(
        "#app :is(select, input, button, .wide)",
        "(all) => all.filter((one) => !(one.labels?.length || one.textContent.trim() || one.getAttribute('aria-label')"
        " || one.getAttribute('aria-labelledby'))).length",
    )
    assert unnamed == 0


def test_names_bring_their_lines_out(arena):
    it = arena()
    off = it.page.locator("#policies label:visible:not(:has(:checked))").first
    off.hover()
    assert it.page.locator("#chart .faded").count() == 0
    it.page.locator("#policies label:has(input[value=glm_tsl])").hover()
    assert it.page.locator("#chart .faded").count() == 9
    assert it.page.locator("#chart .front").get_attribute("data-policy") == "glm_tsl"
    it.page.mouse.move(0, 0)
    assert it.page.locator("#chart .faded").count() == 0
    it.page.focus("#policies input[value=rand_ucb]")
    assert it.page.locator("#chart .front").get_attribute("data-policy") == "rand_ucb"


def test_the_chart_follows_the_window(arena):
    it = arena()
    it.page.set_viewport_size({"width": 500, "height": 900})
    it.page.wait_for_function("() => document.querySelector('#chart svg').viewBox.baseVal.width < 500")
    it.check_fits()


def test_without_scripts_there_are_tables(browser, arena_address):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(arena_address)
    assert page.locator("#app").is_hidden()
    assert page.locator("noscript table").count() == 13
    context.close()
