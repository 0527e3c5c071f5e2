"""Studies from plain data: settings files, panels, and what is wrong with those that cannot be run."""

import dataclasses
import re
import tomllib
from datetime import UTC, datetime

import pytest

from explorax import record
from explorax.errors import InvalidArgument, UnknownName
from explorax.experiments import deep, logistic, settings, theorems
from explorax.experiments.settings import from_settings, study_in
from explorax.experiments.study import Curve, Panel, Study, for_features
from explorax.halving import Halving
from tests.experiments.plain import BY_PANELS, COUNTS, GOOD

LITTLE, MUCH = BY_PANELS["panels"]


def test_settings_and_back():
    panels = from_settings(BY_PANELS)
    for one in (logistic.study(), dataclasses.replace(logistic.quick(), checkpoints=(1, 10, 2_000)), panels):
        assert from_settings(one.settings()) == one
        assert "dims" not in one.settings()


def test_the_settings_files_of_the_docstring_are_understood():
    first, second, third = re.findall(r"\n\n((?:    .+\n)+)", settings.__doc__)
    found = from_settings(tomllib.loads(first))
    assert (found.name, found.measure, found.environment_settings) == ("mine", "regret", {"n_arms": 50})
    assert found.panels == for_features((5, 10, 20))
    assert found.curves[0] == Curve("GLM-TSL (theory)", "glm_tsl", "theory", {})
    assert found.curves[1] == Curve("GLM-FPL, a = 1/4", "glm_fpl", "informal", {"scale": 0.25})
    found = from_settings({key: value for key, value in GOOD.items() if key != "dims"} | tomllib.loads(second))
    few, more = found.panels
    assert few == Panel("few arms", {"n_features": 5, "n_arms": 10}, {}, {"panel": "few arms"})
    assert (more.label, more.curve_settings, more.tags) == ("ridge", {"ridge": 9.0}, {"panel": "ridge"})
    found = from_settings(GOOD | {"instances": 200} | tomllib.loads(third))
    assert (len(found.curves), len(found.panels)) == (8, 2)
    assert found.halving == Halving(50, 3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rounds": 0}, InvalidArgument, "rounds must be a whole number of at least 1, got 0"),
        ({"rounds": 2.5}, InvalidArgument, "rounds must be a whole number of at least .*, got 2.5"),
        ({"seed": -1}, InvalidArgument, "seed must be a whole number of at least .*, got -1"),
        ({"dims": 5}, InvalidArgument, "dims must be a list, got 5"),
        ({"dims": []}, InvalidArgument, r"dims must be one or more different numbers of features, got \[\]"),
        ({"dims": [5, 5]}, InvalidArgument, r"different numbers of features, got \[5, 5\]"),
        ({"dims": [True]}, InvalidArgument, "dims must be a whole number of at least .*, got True"),
        (
            {"rounds": 3_000_000_000},
            InvalidArgument,
            "rounds must be a whole number from 1 to 2000000000, got 3000000000",
        ),
        ({"seed": 10**23}, InvalidArgument, "seed must be a whole number from 0 to 4294967295, got 10{23}"),
        ({"instances": 10**17}, InvalidArgument, "instances must be a whole number from 1 to 1000000, got 10{17}"),
        *(
            ({"name": name}, InvalidArgument, "name must be a plain file name of 1 to 100 characters")
            for name in (3, "", ".", "..", "../../evil", "a/b", "a\\b", "C:evil", "line\nfeed", "nul\0", " ", "a" * 101)
        ),
        ({"spacing": "lin"}, UnknownName, "spacing must be one of .*, got 'lin'"),
        ({"checkpoints": 101}, InvalidArgument, "checkpoints must be at most the number of rounds, 100, got 101"),
        ({"checkpoints": 0}, InvalidArgument, "checkpoints must be a whole number of at least .*, got 0"),
        *(
            (
                {"checkpoints": rounds},
                InvalidArgument,
                r"checkpoints must be a list of rounds that grows and ends at rounds=100",
            )
            for rounds in ([10, 50], [50, 20, 100], [5, 3], [10, 10, 100], [])
        ),
        ({"checkpoints": [2.5, 100]}, InvalidArgument, "checkpoints must be a whole number of at least .*, got 2.5"),
        ({"environment_settings": 3}, InvalidArgument, "environment_settings must be a table, got 3"),
        ({"curves": []}, InvalidArgument, "curves must have at least one entry, got none"),
        ({"curves": "glm_tsl"}, InvalidArgument, "curves must be a list, got 'glm_tsl'"),
        ({"curves": ["glm_tsl"]}, InvalidArgument, "A curve must be a table with a policy, .* got 'glm_tsl'"),
        ({"curves": [{"policy": "glm_tls"}]}, UnknownName, "Did you mean 'glm_tsl'"),
        ({"curves": [{"policy": "glm_tsl", "desing": "theory"}]}, UnknownName, "Did you mean 'design'"),
        ({"curves": [{"policy": "glm_tsl", "design": "theroy"}]}, UnknownName, "Did you mean 'theory'"),
        (
            {"curves": [{"policy": "uniform", "design": "theory"}]},
            InvalidArgument,
            "design must be left out for uniform, which has no designs, got 'theory'",
        ),
        (
            {"environment": "classification", "environment_settings": {"data": "digits"}},
            InvalidArgument,
            "dims must be left out with environment='classification', whose data decides",
        ),
        ({"curves": [{"policy": "glm_tsl", "settings": {"scal": 1}}]}, UnknownName, "Did you mean 'scale'"),
        (
            {"curves": [{"policy": "glm_tsl", "settings": {"scale": -1}}]},
            InvalidArgument,
            "scale must be a finite number above 0, got -1",
        ),
        (
            {"curves": [{"policy": "glm_tsl", "settings": 3}]},
            InvalidArgument,
            "settings of a curve must be a table, .* got 3",
        ),
        (
            {"curves": [{"policy": "glm_tsl", "settings": {"design": "theory"}}]},
            InvalidArgument,
            r"design must be the same .*, got 'theory' and 'informal' for 'GLM-TSL \(informal\)'",
        ),
        (
            {"curves": [{"policy": "glm_tsl"}] * 2},
            InvalidArgument,
            r"labels of curves must be different, got 'GLM-TSL \(informal\)' twice",
        ),
        ({"round": 3}, UnknownName, "Did you mean 'rounds'"),
        (
            {"rounds": 5, "checkpoints": 5, "curves": [{"policy": "glm_tsl", "design": "theory"}]},
            InvalidArgument,
            "rounds must be more than the number of features, 5, for a theory design, got 5",
        ),
    ],
)
def test_bad_settings_are_explained(change, error, message):
    with pytest.raises(error, match=message):
        from_settings(GOOD | change)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"dims": [5]}, InvalidArgument, "The study has both dims and panels"),
        ({"measure": "rewards"}, UnknownName, "measure must be one of .*, got 'rewards'. Did you mean 'reward'"),
        ({"panels": []}, InvalidArgument, "panels must have at least one entry, got none"),
        ({"panels": {}}, InvalidArgument, "panels must be a list, got {}"),
        ({"panels": [{}]}, InvalidArgument, "A panel must be a table with a label, .* got {}"),
        (
            {"panels": [LITTLE, LITTLE]},
            InvalidArgument,
            "labels of panels must be different, got 'little' twice. Give each",
        ),
        ({"panels": [{"label": 3}]}, InvalidArgument, "The label of an entry of panels must be text, got 3"),
        (
            {"panels": [{"label": "a", "tag": {}}]},
            UnknownName,
            "setting of a panel must be one of .*, got 'tag'. Did you mean 'tags'",
        ),
        ({"panels": [{"label": "a", "tags": 3}]}, InvalidArgument, "tags of a panel must be a table, .* got 3"),
        (
            {"panels": [LITTLE, MUCH | {"tags": {"dim": 2}}]},
            InvalidArgument,
            "tags must have the same names in all panels, got {'dim': 2}",
        ),
        (
            {"panels": [LITTLE | {"tags": {"dim": 2}}, MUCH | {"tags": {"dim": 2}}]},
            InvalidArgument,
            "tags must be different in each panel, got {'dim': 2} twice",
        ),
        (
            {"panels": [LITTLE | {"tags": {"dim": 2.5}}]},
            InvalidArgument,
            "The tag dim must be text or a whole number, got 2.5",
        ),
        (
            {"panels": [LITTLE | {"tags": {"curve": 2}}]},
            InvalidArgument,
            "must not be that of another column of summary.csv, got 'curve'",
        ),
        (
            {"panels": [{"label": "a", "environment_settings": {"n_arms": 9}}]},
            InvalidArgument,
            "Panel 'a' and the study both set 'n_arms'. Leave one of the two out.",
        ),
        (
            {"panels": [{"label": "a", "curve_settings": {"scale": 1.0}}]},
            InvalidArgument,
            r"Curve 'GLM-TSL \(informal\)' and panel 'a' both set 'scale'\. Leave one of the two out\.",
        ),
        ({"panels": [LITTLE | {"curve_settings": {"rigde": 1}}]}, UnknownName, "Did you mean 'ridge'"),
        (
            {"panels": [LITTLE | {"curve_settings": {"ridge": -1}}]},
            InvalidArgument,
            "ridge must be a finite number of at least 0, got -1",
        ),
    ],
)
def test_bad_panels_are_explained(change, error, message):
    with pytest.raises(error, match=message):
        from_settings(BY_PANELS | change)


def test_settings_that_are_no_table():
    with pytest.raises(InvalidArgument, match="settings must be a table, got 3"):
        from_settings(3)


def test_what_is_missing_is_named():
    assert isinstance(from_settings(GOOD), Study)
    for name in ("environment", "rounds", "curves"):
        with pytest.raises(InvalidArgument, match=f"The settings of the study lack '{name}'"):
            from_settings({key: value for key, value in GOOD.items() if key != name})


def test_the_family_is_recorded_and_cannot_be_another():
    counts, clicks = from_settings(COUNTS), from_settings(GOOD)
    assert (counts.settings()["family"], clicks.settings()["family"]) == ("poisson", "bernoulli")
    assert from_settings(counts.settings()) == counts
    assert dataclasses.replace(clicks, environment="poisson") == counts
    with pytest.raises(InvalidArgument, match=r"family must be 'poisson', .* got 'bernoulli'\. Leave it out"):
        from_settings(COUNTS | {"family": "bernoulli"})


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        (logistic.quick(dims=[2], policies=["uniform"]), logistic.Figure1),
        (deep.quick(policies=["uniform"]), deep.Figure2),
        *((theorems.quick(environment=name), theorems.Theorems) for name in theorems.KINDS),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_experiment_is_recognized_by_name_environment_and_measure(own, kind, tmp_path):
    found = from_settings(own.settings())
    assert type(found) is kind
    assert found == own
    for change in ({"name": "mine"}, {"measure": {"regret": "reward", "reward": "regret"}[own.measure]}):
        other = from_settings(own.settings() | change)
        assert type(other) is Study
        assert other.stem == "figure1"
    record.write_manifest(tmp_path, record.manifest(own.settings(), seed=0, started=datetime.now(UTC)))
    assert study_in(tmp_path) == own


def test_a_study_in_a_directory_needs_a_manifest_that_a_run_can_have_written(tmp_path):
    with pytest.raises(InvalidArgument, match=r"manifest\.json cannot be used: .*\. Give the directory of a run"):
        study_in(tmp_path / "nowhere")
    settings = logistic.study().settings() | {"rounds": "many"}
    record.write_manifest(tmp_path, record.manifest(settings, seed=0, started=datetime.now(UTC)))
    with pytest.raises(
        InvalidArgument, match=r"manifest\.json cannot be used: rounds must be .*, got .many.\. Run the study once"
    ):
        study_in(tmp_path)
