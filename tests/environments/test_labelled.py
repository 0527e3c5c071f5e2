"""A data set as a bandit: what is on offer, what it pays, and that the data is there only once.

Statistical tests have fixed seeds; each one's false-alarm rate is at most FALSE_ALARM = 1e-6.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import explorax
from explorax import datasets, environments
from explorax.environments.labelled import classification, optimum
from explorax.errors import InvalidArgument, UnknownName
from explorax.simulation import ARMS, instance_keys
from tests.statistics import FALSE_ALARM

KEY = jax.random.key(7)
SMALL_X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
SMALL_Y = np.array(["b", "a", "c", "a", "b", "b", "c", "a", "b", "b", "a", "b"])  # 6 of b, 4 of a, 2 of c


ROUNDS = 4000


@functools.cache
def digits():
    return classification(data="digits")


@functools.cache
def small(**settings):
    """12 examples of three labels, three of them on offer, as they are."""
    return classification(data=(SMALL_X, SMALL_Y), n_arms=3, intercept=False, **settings)


@functools.partial(jax.jit, static_argnames="offer")
def offers(offer, instance, key):
    return jax.vmap(offer, (None, None, 0))(key, instance, jnp.arange(ROUNDS))


def rounds(environment, instance, key=KEY):
    """What is on offer in many rounds; one program for all data of one shape, so that tests have data of one shape."""
    return jax.tree.map(np.asarray, offers(environment.offer, instance, key))


def examples_of(arms):
    """The index of the example that each arm is; its features tell, and must be exactly those."""
    matches = np.all(np.asarray(arms)[..., None, :] == SMALL_X, axis=-1)
    np.testing.assert_array_equal(matches.sum(axis=-1), 1)
    return np.argmax(matches, axis=-1)


# What is on offer


def test_digits_on_offer_are_scaled_rows_whose_label_says_what_they_pay():
    environment, data = digits(), datasets.load("digits")
    assert (environment.name, environment.n_features, environment.arms_change) == ("classification", 64, True)
    offer = rounds(environment, environment.draw(KEY, 3))
    assert offer.arms.shape == (ROUNDS, 10, 64)
    assert offer.means.shape == offer.scores.shape == (ROUNDS, 10)
    assert {part.dtype for part in offer} == {np.dtype("float32")}
    known = {row.tobytes(): label for row, label in zip(data.features, data.labels, strict=True)}
    pixels = offer.arms.reshape(-1, 64) * 16
    np.testing.assert_array_equal(pixels, np.round(pixels))
    labels = np.array([known[row.tobytes()] for row in pixels.astype(np.uint8)]).reshape(ROUNDS, 10)
    np.testing.assert_allclose(offer.means, np.where(labels == 3, 0.75, 0.25), rtol=1e-6)
    np.testing.assert_allclose(offer.scores, np.where(labels == 3, np.log(3), -np.log(3)), rtol=1e-6)
    assert stats.binomtest(int(np.sum(labels == 3)), labels.size, np.mean(data.labels == 3)).pvalue > FALSE_ALARM


def test_one_key_serves_all_rounds():
    instance = small().draw(KEY)
    drawn = examples_of(rounds(small(), instance).arms)
    np.testing.assert_array_equal(drawn[17], examples_of(small().offer(KEY, instance, 17).arms))
    other = examples_of(rounds(small(), instance, jax.random.key(8)).arms)
    for first, second in ((drawn[1:], drawn[:-1]), (drawn, other)):
        # As different as independent draws are: three equal examples by a chance of 12⁻³.
        same = int(np.sum(np.all(first == second, axis=1)))
        assert stats.binomtest(same, len(first), 12**-3, "greater").pvalue > FALSE_ALARM / 2


def test_examples_are_uniform_and_independent():
    drawn = examples_of(rounds(small(), small().draw(KEY)).arms)
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=12)).pvalue > FALSE_ALARM / 3
    for first, second in ((drawn[:, 0], drawn[:, 1]), (drawn[:-1, 0], drawn[1:, 0])):  # in a round, and in the next
        table = np.zeros((12, 12))
        np.add.at(table, (first, second), 1)
        assert stats.chi2_contingency(table).pvalue > FALSE_ALARM / 3


REWARD_KEYS = jax.random.split(jax.random.key(9), ROUNDS)


@pytest.mark.parametrize(("high", "low"), [(0.75, 0.25), (0.9, 0.4)])
def test_rewards_are_bernoulli_with_the_mean_of_the_arm(high, low):
    environment, arm = small(high=high, low=low), 1
    offer = rounds(environment, environment.draw(KEY, 1))
    rewards = np.asarray(jax.jit(jax.vmap(environment.reward, (0, 0, None)))(REWARD_KEYS, offer, arm))
    assert set(rewards) == {0.0, 1.0}
    pays = SMALL_Y[examples_of(offer.arms[:, arm])] == "b"
    for group, mean in ((pays, high), (~pays, low)):
        np.testing.assert_allclose(offer.means[:, arm][group], mean, rtol=1e-6)
        assert stats.binomtest(int(rewards[group].sum()), int(group.sum()), mean).pvalue > FALSE_ALARM / 2


def test_labels_take_turns_unless_one_is_given():
    numbers = jnp.arange(7)
    keys = jax.random.split(KEY, 7)

    def targets(environment):
        return jax.vmap(environment.draw, out_axes=environment.axes)(keys, numbers).target

    np.testing.assert_array_equal(targets(small()), [0, 1, 2, 0, 1, 2, 0])
    np.testing.assert_array_equal(targets(small(target="c")), [2] * 7)
    np.testing.assert_array_equal(targets(digits()), np.arange(7))
    np.testing.assert_array_equal(targets(classification(data="digits", target=4)), [4] * 7)
    offer = rounds(small(target="c"), small(target="c").draw(KEY, 5))
    np.testing.assert_array_equal(offer.means > 0.5, SMALL_Y[examples_of(offer.arms)] == "c")


def test_instances_of_a_batch_share_the_data():
    environment = digits()
    batch = jax.vmap(environment.draw, out_axes=environment.axes)(jax.random.split(KEY, 500), jnp.arange(500))
    data = datasets.load("digits")
    assert batch.features.shape == data.features.shape
    assert batch.features.dtype == np.uint8
    assert batch.labels.shape == data.labels.shape
    assert batch.scale.shape == ()
    assert batch.target.shape == (500,)
    assert batch.scores.shape == (500, 2)
    again = environment.draw(KEY)
    assert again.features is environment.draw(KEY, 3).features


# The best possible reward


@pytest.mark.parametrize(("high", "low"), [(0.75, 0.25), (0.9, 0.4)])
def test_the_optimum_is_that_of_all_possible_offers(high, low):
    data = datasets.load((SMALL_X, SMALL_Y))
    best = []
    for target in range(3):
        means = np.where(data.labels == target, high, low)
        best.append(np.mean([max(offer) for offer in itertools.product(means, repeat=3)]))
    assert optimum(data, 3, high, low) == pytest.approx(np.mean(best), rel=1e-12)


def test_the_optimum_of_ten_equal_labels():
    labels = np.repeat(np.arange(10), 5)
    assert optimum(datasets.load((np.ones((50, 1)), labels))) == pytest.approx(0.5757, abs=5e-5)
    assert optimum(datasets.load((np.ones((50, 1)), labels)), 1) == pytest.approx(0.3, rel=1e-12)


# Playing


class BestKnown:
    """Plain Python that knows how well the examples of each label have paid."""

    def __init__(self, features, rng):
        assert features == 3
        self.rng, self.counts, self.sums, self.seen = rng, np.ones(3), np.ones(3), []

    def act(self, arms, t):
        labels = self.labels(arms)
        self.seen.append(arms)
        return int(np.argmax((self.sums / self.counts)[labels] + 1e-6 * self.rng.random(len(labels))))

    def update(self, arm, x, reward):
        (label,) = self.labels(x[None])
        self.counts[label] += 1
        self.sums[label] += reward

    @staticmethod
    def labels(arms):
        return np.searchsorted(["a", "b", "c"], SMALL_Y[examples_of(arms)])


@functools.cache
def simulated(world, **settings):
    """14 rounds of a network."""
    policy = explorax.make("deep_fpl", hidden=(4,), batch=4)
    return explorax.simulate(policy, world, rounds=14, seed=2, checkpoints=14, **settings)


def assert_same(one, other):
    for name, first, second in zip(one._fields, one, other, strict=True):
        np.testing.assert_array_equal(first, second, err_msg=name)


def part(records, instances):
    fields = (each if name == "rounds" else each[list(instances)] for name, each in records._asdict().items())
    return type(records)(*fields)


def test_a_network_plays_the_same_however_the_run_is_split():
    records = simulated(small(), instances=60, chunk=50)  # two blocks of a CPU's
    assert np.all(records.unconverged == 0)
    assert len(np.unique(records.digest)) > 50
    assert_same(simulated(small(), instances=60, chunk=7), records)
    assert_same(simulated(small(), instances=5, first=48, chunk=50), part(records, range(48, 53)))


def test_plain_python_plays_the_same_instances():
    made = []

    def make(features, rng):
        made.append(BestKnown(features, rng))
        return made[-1]

    plain = explorax.simulate(make, small(), rounds=ROUNDS // 20, instances=2, seed=2, checkpoints=1)
    for i, player in enumerate(made):
        # What is on offer to whoever plays instance i: `simulate` has a key for it.
        key = instance_keys(2, range(i, i + 1), ARMS)[0]
        offer = rounds(small(), small().draw(key, i), key)
        np.testing.assert_array_equal(np.stack(player.seen), offer.arms[: len(player.seen)])
        np.testing.assert_array_equal(np.sum(player.sums) - 3, plain.reward[i, -1])
        # Labels take turns, and a policy that can tell them apart finds the one that pays.
        assert np.argmax(player.counts) == i


def test_one_label_pays_always():
    environment = classification(data=(SMALL_X, np.zeros(12, int)), n_arms=3)
    np.testing.assert_allclose(rounds(environment, environment.draw(KEY, 5)).means, 0.75, rtol=1e-6)
    assert optimum(datasets.load((SMALL_X, np.zeros(12, int)))) == pytest.approx(0.75)


def test_features_that_do_not_vary_are_no_obstacle():
    constant = classification(data=(np.ones((12, 3)), SMALL_Y), n_arms=3)
    records = simulated(constant, instances=60, chunk=50)
    assert np.all(records.unconverged == 0)
    # Nothing can be learned, and ties go to the first arm: the arms pulled are those of everybody.
    assert len(np.unique(records.digest)) == 1
    assert 0 < np.mean(records.regret[:, -1]) < 0.5 * 14


def test_a_table_of_ones_own(tmp_path):
    path = tmp_path / "flowers.csv"
    path.write_text("length,color,kind\n" + "1.0,red,rose\n2.0,blue,iris\n3.0,red,rose\n6.0,blue,lily\n" * 3)
    environment = environments.make("classification", data=str(path), label="kind", n_arms=3)
    assert environment.n_features == 3  # length, and one for each color
    lengths = (np.array([1.0, 2.0, 3.0, 6.0]) - 3) / np.sqrt(3.5)
    rows = np.column_stack([lengths, [0, 1, 0, 1], [1, 0, 1, 0]])  # blue comes before red
    for number, kind in enumerate([(1,), (3,), (0, 2)]):  # iris, lily, rose
        offer = rounds(environment, environment.draw(KEY, number))
        which = np.argmin(np.abs(offer.arms[..., 0, None] - lengths), axis=-1)
        np.testing.assert_allclose(offer.arms, rows[which], rtol=0, atol=1e-6)
        np.testing.assert_allclose(offer.means, np.where(np.isin(which, kind), 0.75, 0.25), rtol=1e-6)
    with pytest.raises(UnknownName, match="must be one of color, kind, length"):
        environments.make("classification", data=str(path), label="species")


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"n_arms": 0}, InvalidArgument, "n_arms must be a whole number of at least 1, got 0"),
        ({"n_arms": 2.0}, InvalidArgument, "n_arms must be a whole number of at least .*, got 2.0"),
        ({"n_arms": 10**11}, InvalidArgument, "arms times features must be at most"),
        ({"high": 1.5}, InvalidArgument, "high must be a probability between 0 and 1, both excluded, got 1.5"),
        ({"high": 1}, InvalidArgument, "high must be a probability between 0 and 1, both excluded, got 1"),
        ({"low": "x"}, InvalidArgument, "low must be a probability between 0 and 1, both excluded, got 'x'"),
        ({"low": 0.0}, InvalidArgument, "low must be a probability between 0 and 1, both excluded, got 0.0"),
        ({"target": "d"}, UnknownName, "target in the data set 'arrays' must be one of a, b, c, got 'd'"),
        ({"target": 1}, UnknownName, "target in the data set 'arrays' must be one of .*, got '1'"),
        ({"data": "digit"}, UnknownName, "data set must be one of .*, got 'digit'. Did you mean 'digits'?"),
        ({"data": 3}, InvalidArgument, "source must be a data set, got 3"),
        ({"label": "kind"}, InvalidArgument, "label must be left out .*, got 'kind'"),
        ({"lable": "kind"}, UnknownName, "Did you mean 'label'?"),
    ],
)
def test_bad_settings(settings, error, words):
    with pytest.raises(error, match=words.replace("?", r"\?")):
        environments.make("classification", **{"data": (SMALL_X, SMALL_Y), **settings})


def test_a_round_is_a_count():
    instance = small().draw(KEY)
    for t in (-1, 1.0):
        with pytest.raises(
            InvalidArgument,
            match=rf"t must be a whole number of at least 0, the count of rounds before this one, got {t}",
        ):
            small().offer(KEY, instance, t)


# A feature that is 1

KINDS = np.eye(3, dtype=np.float32)[np.arange(12) % 3]  # of a column of text: zeros and ones that add up to 1


@pytest.mark.parametrize(
    ("features", "lacking"),
    [
        (SMALL_X, True),
        (SMALL_X - SMALL_X.mean(axis=0), True),
        (1e4 * SMALL_X + 1, True),
        (np.zeros((12, 2)), True),
        (np.c_[SMALL_X, np.ones(12)], False),
        (np.c_[SMALL_X, SMALL_X, np.full(12, 1e-4)], False),
        (np.c_[KINDS, 1e4 * SMALL_X], False),
        (np.c_[KINDS, KINDS, SMALL_X], False),
        (np.c_[KINDS[:, :2], SMALL_X], True),
    ],
)
def test_numbers_get_a_feature_that_is_1_where_none_of_their_scores_is_constant(features, lacking):
    environment = classification(data=(features, SMALL_Y), n_arms=3)
    assert environment.n_features == features.shape[1] + lacking
    offer = environment.offer(KEY, environment.draw(KEY), 0)
    assert offer.arms.shape == (3, environment.n_features)
    if lacking:
        np.testing.assert_array_equal(offer.arms[:, -1], 1)
        plain = classification(data=(features, SMALL_Y), n_arms=3, intercept=False)
        np.testing.assert_array_equal(plain.offer(KEY, plain.draw(KEY), 0).arms, offer.arms[:, :-1])


def test_tables_of_numbers_get_one_and_those_with_text_and_images_do_not(tmp_path):
    numbers, text = tmp_path / "numbers.csv", tmp_path / "text.csv"
    numbers.write_text("a,b,label\n1,2,x\n3,5,y\n4,4,x\n9,1,y\n")
    text.write_text("a,b,label\n1,u,x\n3,v,y\n4,u,x\n9,v,y\n")
    assert [classification(data=path).n_features for path in (numbers, text)] == [3, 3]  # a, b, 1; a, b=u, b=v
    assert classification(data=text, intercept=True).n_features == 4
    images = classification(data="digits", intercept=True)
    assert (digits().n_features, images.n_features) == (64, 65)
    np.testing.assert_array_equal(images.offer(KEY, images.draw(KEY), 0).arms[:, -1], 1)
    with pytest.raises(InvalidArgument, match=r"intercept must be True, False or None, got 1\. Leave it out"):
        classification(data=text, intercept=1)


def test_a_glm_loses_less_where_it_can_say_that_most_examples_pay_little():
    """26 labels in 16 standardized columns, one label pays: rewards are 0.27 on average, not the ½ of scores around 0.

    Compared on the same 50 instances.  A power, not a law: the difference is more than twice what is asked for.
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 26, 2000)
    rows = rng.normal(size=(26, 16))[labels] + rng.normal(size=(2000, 16))
    data = ((rows - rows.mean(axis=0)) / rows.std(axis=0), labels)
    policy = explorax.make("glm_tsl", memory="constant", tolerance=1e-3)
    plain, given = (
        explorax.simulate(policy, classification(data=data, **settings), rounds=600, instances=50, checkpoints=1).regret
        for settings in ({"intercept": False}, {})
    )
    assert stats.ttest_rel(plain[:, 0], given[:, 0], alternative="greater").pvalue < 1e-3
