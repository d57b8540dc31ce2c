"""Around the reference or below a limit? What values close to the reference say."""

import math

import numpy as np
import pytest

from mnarkmeans import MNARKMeans
from mnarkmeans._penalty.rare import RARE, rare_at_reference, rare_below_reference
from mnarkmeans._penalty.reference import Explained
from mnarkmeans._validation import observe
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.missingness import ampute


def two_groups(seed=0, n=400):
    """Values on both sides of zero."""
    rng = np.random.default_rng(seed)
    return rng.choice([0.0, 3.0], size=(n, 1)) + rng.normal(size=(n, 3))


def lost(X, mechanism, **options):
    X = ampute(X, mechanism, rng=0, **options)
    return X[~np.isnan(X).all(axis=1)]


@pytest.mark.parametrize("mechanism", ["mnar0", "mnar2"])
def test_values_close_to_the_reference_are_rare_where_they_get_lost(mechanism):
    X = lost(two_groups(), mechanism, fraction=0.3)
    assert rare_at_reference(observe(X, reference=0.0)) > RARE


@pytest.mark.parametrize("mechanism", ["mcar", "limit"])
def test_values_close_to_the_reference_are_not_rare_otherwise(mechanism):
    X = lost(two_groups() - 1.5, mechanism, fraction=0.3)
    assert rare_at_reference(observe(X, reference=0.0)) < 0.0


def test_the_ratio_of_a_third_and_a_fifth():
    # The root mean square is 1: two values within .15, four more within .45.
    X = np.array([0.1, -0.1, 0.2, -0.2, 0.3, 0.4, -1.2, -1.4, 1.3, np.nan])[:, None]
    X = X / np.sqrt(np.nanmean(X**2))
    X = np.hstack([X, np.arange(10.0)[:, None]])  # complete: says nothing
    within = int((np.abs(X[:-1, 0]) < 0.15).sum())
    around = int((np.abs(X[:-1, 0]) < 0.45).sum())
    expected = within * math.log(3 / 5) + (around - within) * math.log(6 / 5)
    assert rare_at_reference(observe(X, reference=0.0)) == pytest.approx(expected)


def test_a_weight_counts_like_so_many_rows():
    X = lost(two_groups(), "mnar0", fraction=0.3)
    weights = np.random.default_rng(0).integers(1, 4, size=len(X))
    weighed = observe(X, reference=0.0, sample_weight=weights.astype(float))
    repeated = observe(np.repeat(X, weights, axis=0), reference=0.0)
    for question in (rare_at_reference, rare_below_reference):
        assert question(weighed) == pytest.approx(question(repeated))


def test_sparse_tables_say_the_same():
    sparse = pytest.importorskip("scipy.sparse")
    X = lost(two_groups(), "mnar0", fraction=0.3)
    stored = observe(sparse.csr_array(np.nan_to_num(X, nan=0.0)), reference=0.5)
    assert rare_at_reference(stored) == pytest.approx(rare_at_reference(observe(X, reference=0.5)))


def test_what_lies_below_a_limit_gets_rarer_away_from_it():
    X = lost(two_groups(), "limit", fraction=0.3, softness=0.5)
    told = np.nanquantile(X, 0.04, axis=0)
    assert rare_below_reference(observe(X, reference=told)) < 0.0
    assert rare_below_reference(observe(X, reference="min")) == 0.0  # nothing is there
    around = lost(two_groups() + 1.0, "mnar2", fraction=0.4)
    assert rare_below_reference(observe(around, reference=0.0)) > 0.0


@pytest.mark.parametrize(
    ("k", "side", "strength", "seed"),
    [(2, 2, 0.1, 5000), (2, 3, 0.5, 5006), (3, 2, 2.0, 3018), (4, 2, 1.0, 2032)],
)
def test_rows_put_by_their_gaps_do_not_make_a_limit(k, side, strength, seed):
    # Fits with a penalty group the gaps of these tables as a limit would; the one without does not.
    table = make_gaussian_clusters(
        100 * k, 2, k, separation=side, mechanism="mnar0", strength=strength, random_state=seed
    )
    model = MNARKMeans(k, random_state=seed // 1000).fit(table.data)
    assert model.missingness_.mechanism in ("decay", "threshold")
    assert model.lam_ > 0.1


def test_few_values_below_the_reference_may_have_got_lost_there():
    table = make_gaussian_clusters(
        400, 2, 4, separation=3, mechanism="mnar2", strength=0.5, random_state=17
    )
    seen = table.data[~np.isnan(table.data)]
    assert 0.01 < np.mean(seen < 0) < 0.05
    model = MNARKMeans(4, random_state=0).fit(table.data)
    assert model.missingness_.mechanism in ("decay", "threshold")


def test_a_limit_among_the_values_is_still_seen():
    rng = np.random.default_rng(0)
    X = 1.5 * rng.normal(size=(3, 6))[rng.integers(3, size=600)] + rng.normal(size=(600, 6))
    found = MNARKMeans(3, random_state=0).fit(lost(X, "limit", fraction=0.3)).missingness_
    assert found.mechanism == "limit"
    assert found.lam == 0.0  # no penalty towards zero makes up for it


@pytest.mark.parametrize(
    ("ahead", "falls", "rare", "tails", "is_limit"),
    [
        (0.0, 0.0, -1.0, 0.9, True),  # lower tails are shorter, and nothing speaks against a limit
        (0.0, 0.0, -1.0, 1.0, False),
        (0.0, 25.0, -1.0, 1.0, True),  # the fit without a penalty says so
        (20.0, 0.0, -9.0, 1.0, True),  # values close to zero are as frequent as others
        (20.0, 0.0, -1.0, 1.0, False),  # that is not clear: heavy tails feign a lead
        (0.0, 0.0, -9.0, 1.0, False),  # nobody leads
        (10.0, -9.0, -9.0, 1.0, False),  # the fit without a penalty says no
        (20.0, -9.0, -9.0, 1.0, True),  # and that is less than what leads
        (0.0, -10.0, -1.0, 0.5, True),  # lower tails are cut off
    ],
)
def test_a_limit_must_be_spoken_for_the_more_the_longer_the_lower_tails(
    ahead, falls, rare, tails, is_limit
):
    zero = Explained(limit=-90.0, decay=-100.0, falls=falls, below=0.3, rare=rare, tails=tails)
    limit = zero._replace(limit=-90.0 + ahead)
    assert limit.rather_than(zero) is is_limit
    assert not limit.rather_than(zero._replace(rare=5.0))


@pytest.mark.parametrize(
    ("ahead", "tails", "is_limit"), [(60.0, 0.7, True), (20.0, 0.7, False), (60.0, 1.2, False)]
)
def test_few_values_close_to_zero_veto_a_limit_unless_it_leads_by_far(ahead, tails, is_limit):
    zero = Explained(limit=-90.0, decay=-100.0, falls=0.0, below=0.3, rare=4.0, tails=tails)
    assert zero._replace(limit=-90.0 + ahead).rather_than(zero) is is_limit
