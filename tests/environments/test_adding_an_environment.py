"""The environment of `docs/adding-an-environment.md`: its problems, its settings, and the study that plays it."""

import re
import tomllib
from pathlib import Path

import jax
import numpy as np
import pytest

import explorax
from explorax import environments
from explorax.errors import InvalidArgument
from explorax.experiments.settings import from_settings

PAGE = (Path(__file__).parents[2] / "docs/adding-an-environment.md").read_text()
CODE: dict = {}
exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1), CODE)
KEY = jax.random.key(0)


@pytest.fixture
def known(monkeypatch):
    """The environment as the page registers it."""
    (call,) = re.findall(r"`(Known\(news, .*?\))`", PAGE)
    found = eval(call, {"Known": environments.Known, "news": CODE["news"], "families": explorax.families})
    monkeypatch.setitem(environments.BUILDERS, "news", found.builder)
    monkeypatch.setitem(environments.FAMILIES, "news", found.family.name)
    return found


def test_features_are_products_of_visitor_and_article():
    environment = CODE["news"](n_arms=4, visitor_size=3, article_size=2)
    instance = environment.draw(KEY)
    offer = environment.offer(KEY, instance, 5)
    assert offer.arms.shape == (4, environment.n_features) == (4, 6)
    blocks = np.asarray(offer.arms).reshape(4, 3, 2)
    visitor = blocks[0, :, 0] / instance.articles[0, 0]
    np.testing.assert_allclose(blocks, np.einsum("v,ka->kva", visitor, instance.articles), rtol=1e-5)
    np.testing.assert_allclose(offer.means, 1 / (1 + np.exp(-offer.arms @ instance.theta)), rtol=1e-5)


def test_the_instance_stays_and_visitors_change():
    environment = CODE["news"]()
    instance = environment.draw(KEY)
    offers = [environment.offer(KEY, instance, t).arms for t in (0, 0, 1)]
    np.testing.assert_array_equal(offers[0], offers[1])
    assert np.all(offers[0] != offers[2])


def test_bad_settings_are_refused():
    with pytest.raises(InvalidArgument, match="visitor_size must be a whole number of at least 1, got 0"):
        CODE["news"](visitor_size=0)


def test_the_line_of_the_page_registers_it(known):
    assert environments.make("news", n_arms=3).draw(KEY).articles.shape == (3, 2)
    assert environments.family_of("news") == CODE["news"]().family
    assert eval(f"news({known.example})", CODE).n_features == 6


@pytest.mark.usefixtures("known")
def test_the_study_of_the_page_plays_it():
    (settings,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    study = from_settings(tomllib.loads(settings))
    assert study.family == "bernoulli"
    few, many = map(study.make_environment, study.panels)
    assert (few.draw(KEY).articles.shape, many.draw(KEY).articles.shape) == ((10, 2), (100, 2))
    policy = study.make(study.curves[-1], study.panels[0])
    assert explorax.simulate(policy, few, rounds=3, instances=2).regret.shape == (2, 3)
