"""What `explorax` offers: names that mean one thing, help that explains every argument, types that checkers read."""

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

import jax
import numpy as np
import pytest

import explorax
from explorax.builders import setting_names, settings_in, shared_settings
from explorax.errors import UnknownName

ROOT = Path(__file__).parents[1]
MODULES = [one.name for one in pkgutil.walk_packages(explorax.__path__, "explorax.") if one.name != "explorax.__main__"]
POLICIES = list(explorax.list_policies())
ENVIRONMENTS = list(explorax.environments.BUILDERS)
PAGES = (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.py"))
TEXTS = "\n".join(path.read_text("utf-8") for path in PAGES)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_what_its_dotted_name_says(name):
    module = importlib.import_module(name)
    found = explorax
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert found is module


def test_every_policy_has_its_builder_at_the_top_and_nothing_is_listed_twice():
    assert set(POLICIES) <= set(explorax.__all__)
    assert len(explorax.__all__) == len(set(explorax.__all__))
    for name in explorax.__all__:
        assert getattr(explorax, name) is getattr(explorax, name)
    with pytest.raises(AttributeError, match="no attribute 'glm_tls'"):
        _ = explorax.glm_tls


@pytest.mark.parametrize("name", POLICIES)
def test_a_builder_makes_what_make_makes(name):
    entry = explorax.list_policies()[name]
    settings = {entry.knob: entry.grid[0]} if entry.knob else {}
    built, made = getattr(explorax, name)(**settings), explorax.make(name, **settings)
    assert built.recipe == made.recipe == (name, settings)
    with pytest.raises(UnknownName, match=f"setting of {name} must be .*, got 'sacle'"):
        getattr(explorax, name)(sacle=1.0)


def public_callables():
    """Yield all that users call, by name, with the class that it belongs to."""
    for name in explorax.__all__:
        found = getattr(explorax, name)
        if inspect.isclass(found):
            yield from methods_of(name, found)
        elif not isinstance(found, types.ModuleType):
            yield name, found
        else:
            yield from functions_of(name, found)
    policy = explorax.glm_tsl()
    yield from ((f"policy.{name}", getattr(policy, name)) for name in ("init", "act", "update"))


def functions_of(name, module):
    """Yield the functions of an exported module that `__all__`, the docs or the examples name; the rest is internal."""
    for each in getattr(module, "__all__", vars(module)):
        found = getattr(module, each)
        named = hasattr(module, "__all__") or re.search(rf"\b{name}\.{each}\b", TEXTS)
        if named and inspect.isfunction(found) and found.__module__.startswith(module.__name__):
            yield f"{name}.{each}", found


def methods_of(name, kind):
    """Yield the public methods of a class; its constructor where that is written out."""
    for method, given in vars(kind).items():
        function = getattr(given, "__func__", given)
        if inspect.isfunction(function) and function.__module__ == kind.__module__:
            constructor = method == "__init__" and not (dataclasses.is_dataclass(kind) or name in MADE_BY_METHODS)
            if not method.startswith("_") or method == "__call__" or constructor:
                yield f"{name}.{method}", function


MADE_BY_METHODS = ("Encoder",)  # classes whose constructors are not for users
CALLABLES = dict(public_callables())


def help_of(name):
    """Return the docstring of a callable; that of a constructor follows that of its class, which may explain it."""
    text = inspect.getdoc(CALLABLES[name]) or ""
    if name.endswith(".__init__"):
        kind = functools.reduce(getattr, name.split(".")[:-1], explorax)
        return f"{inspect.getdoc(kind)}\n{text}"
    return text


def entries(text, section):
    """Return the names that start the entries of a section in Google's style; None if there is no such section."""
    found = re.search(rf"^{section}:\n((?:[ ]{{4}}.*\n?|\n)+)", text, re.MULTILINE)
    return found and re.findall(r"^ {4}\*{0,2}(\w+)(?: \([^)]*\))?:", found[1], re.MULTILINE)


@pytest.mark.parametrize("name", CALLABLES)
def test_help_names_every_argument(name):
    text, signature = help_of(name), inspect.signature(CALLABLES[name])
    assert re.match(r"[^\n]+[.?]\n", f"{text}\n"), "the first line is no sentence"
    parameters = [parameter for parameter in signature.parameters if parameter not in ("self", "cls")]
    assert (entries(text, "Args") or []) == parameters
    if signature.return_annotation not in (None, "None", inspect.Signature.empty):
        assert re.search(r"^(Returns|Yields):\n {4}\S", text, re.MULTILINE), "the result is not explained"


def test_sections_of_help_are_read():
    arguments = "Args:\n    x: The (d,) features: a row.\n        More: of it.\n    **settings: Others."
    text = f"Do it.\n\n{arguments}\n\nReturns:\n    It: the result."
    assert entries(text, "Args") == ["x", "settings"]
    assert entries(text, "Raises") is None


@pytest.mark.parametrize("name", CALLABLES)
def test_what_a_signature_mentions_is_exported(name):
    """Names that are quoted must be found among the exports as well, or the annotations cannot be read."""
    exports = {one: getattr(explorax, one) for one in explorax.__all__}
    public = {*exports.values()}
    for module in exports.values():
        if isinstance(module, types.ModuleType):
            public |= {each for each in vars(module).values() if inspect.isclass(each)}
    hints = typing.get_type_hints(CALLABLES[name], localns=exports)
    for hint in hints.values():
        for part in parts_of(hint):
            if inspect.isclass(part) and part.__module__.startswith("explorax"):
                assert part in public, part


def parts_of(hint):
    yield hint
    for part in typing.get_args(hint):
        yield from parts_of(part)


OWN_DEFAULTS = {"lin_phe": {"family": "gaussian"}, "neural_pr": {"steps": 10, "replay": "uniform"}}


@pytest.mark.parametrize("name", [*POLICIES, *(f"environments.{name}" for name in ENVIRONMENTS)])
def test_help_shows_every_setting_with_its_default(name):
    builder = CALLABLES[name]
    signature, text = inspect.signature(builder), " ".join(inspect.getdoc(builder).split())
    assert list(signature.parameters) == setting_names(builder)
    assert "See the rule above." not in text
    if kind := shared_settings(builder):
        for setting, (default, meaning, shown) in settings_in(kind).items():
            if setting in OWN_DEFAULTS.get(name, {}):
                default, shown = OWN_DEFAULTS[name][setting], None
            assert signature.parameters[setting].default == default
            assert f"{setting}: {' '.join(meaning.split())} Default: {shown or repr(default)}." in text


@pytest.mark.parametrize("name", POLICIES)
def test_the_defaults_that_help_shows_are_those_that_are_used(name):
    builder = CALLABLES[name]
    given = {one: parameter.default for one, parameter in inspect.signature(builder).parameters.items()}
    arms = np.random.default_rng(0).uniform(-1, 1, (6, 3))
    for start in (arms, 3):
        states = [builder(**settings).init(start) for settings in ({}, given)]
        assert jax.tree.structure(states[0]) == jax.tree.structure(states[1])
        for one, other in zip(*map(jax.tree.leaves, states), strict=True):
            np.testing.assert_array_equal(one, other)


RIGHT = """
import jax
import explorax

policy: explorax.Policy = explorax.glm_tsl(scale=2.0, family="poisson", warmup="none")
other = explorax.deep_fpl(hidden=(20, 20), steps=2)
environment = explorax.environments.gaussian(n_features=5, n_arms=20, noise_std=0.5)
records: explorax.Records = explorax.simulate(policy, environment, rounds=10)
action: explorax.Action = policy.act(jax.random.key(0), policy.init(3), jax.numpy.eye(3), 0)
"""
WRONG = """
import explorax

explorax.glm_tsl(scle=1.0)
explorax.glm_tsl(ridge="much")
explorax.glm_tls()
explorax.environments.logistic(n_featurs=5)
explorax.glm_tsl().act()
"""


def test_a_type_checker_knows_builders_and_their_settings(tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--config-file", "", "--follow-imports", "silent", "--cache-dir", tmp_path]
    done = subprocess.run([*command, "right.py", "wrong.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = re.findall(r"^(\w+)\.py:(\d+): error", done.stdout, re.MULTILINE)
    lines = range(4, len(WRONG.splitlines()) + 1)
    assert errors == [("wrong", str(line)) for line in lines], done.stdout + done.stderr
    assert (ROOT / "src/explorax/py.typed").exists()
