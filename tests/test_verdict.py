"""What is said about clusters: separate or not, how sure a row is, which annotation they follow."""

import json
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from mnarkmeans import MNARKMeans, MNARKMeansCV, MNARMixture, report
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import confidence, verdict
from mnarkmeans.metrics._annotations import agreement


def fit(X, k, **settings):
    return MNARKMeans(k, **{"lam": 0.0, "random_state": 0} | settings).fit(X)


def assert_calibrated(confidence, right, *bins):
    """Of rows with a confidence near c a share near c is right."""
    for low, high in bins:
        rows = (confidence > low) & (confidence <= high)
        assert rows.sum() >= 50
        assert right[rows].mean() == pytest.approx(confidence[rows].mean(), abs=0.07)


def one_factor():
    """A gradient, values lost below a limit, no groups."""
    rng = np.random.default_rng(1)
    X = rng.normal(25, 2, 2000)[:, None] + rng.normal(0, 0.5, (2000, 24))
    X[rng.random(X.shape) < 1 / (1 + np.exp(2 * (X - 22.5)))] = np.nan
    return X[~np.isnan(X[:, :8]).all(axis=1)]


@pytest.mark.parametrize("k", [2, 3, 6])
def test_slices_of_a_gradient_are_no_groups(k):
    X = one_factor()
    found = verdict(X, fit(X, k))
    assert (found.kind, found.headline) == ("continuum", "Reproducible slices of one continuum.")
    assert np.isnan(found.confidence).all()
    assert found.agreement.mean() > 0.75


def test_groups_are_separate_in_any_form_with_the_same_verdict_for_the_same_seed(three_groups):
    steps, verdicts = [], []
    for table in (three_groups, three_groups, sp.csr_array(np.nan_to_num(three_groups))):
        found = verdict(table, fit(table, 3), progress=lambda *step: steps.append(step))
        assert found.kind == "separate"
        assert sorted(map(tuple, found.groups)) == [(0,), (1,), (2,)]
        assert found.sentence.startswith("All 3 clusters are groups of their own")
        assert all(pair.high < 1 for pair in found.pairs)
        assert "pairs" not in repr(found)
        assert len(repr(found)) < 300
        json.dumps(found.to_dict(), allow_nan=False)
        verdicts.append(found)
    np.testing.assert_array_equal(verdicts[0].confidence, verdicts[1].confidence)
    assert verdicts[0].pairs == verdicts[1].pairs
    assert steps == 3 * [(i, 10) for i in range(1, 11)]
    mixture = MNARMixture(3, mechanism="mcar", random_state=0).fit(three_groups)
    with pytest.raises(TypeError, match="k-means of this package"):
        verdict(three_groups, mixture)
    sure = mixture.predict_proba(three_groups).max(axis=1)
    np.testing.assert_array_equal(confidence(three_groups, mixture), sure)


def test_a_group_cut_in_two_is_one_group():
    rng = np.random.default_rng(0)
    X = 6.0 * np.eye(2, 6)[np.arange(600) % 2] + rng.normal(size=(600, 6))
    X[rng.random(X.shape) < 0.2] = np.nan
    model = fit(X, 3)
    found = verdict(X, model)
    assert found.kind == "separate"
    assert len(found.groups) == 2
    halves = next(group for group in found.groups if len(group) == 2)
    assert "Clusters that form one group" in found.sentence
    in_halves = np.isin(model.labels_, halves)
    np.testing.assert_array_equal(np.isnan(found.confidence), in_halves)
    X[0] = 500.0
    with pytest.warns(UserWarning, match="single row"):
        found = verdict(X, fit(X, 3))
    assert found.kind == "separate"
    assert "For 1 of the clusters there are too few rows" in found.sentence


def test_pairs_are_those_with_no_other_centre_in_the_ball_between_them():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [20.0, 0.0], [10.0, 8.0], [30.0, 25.0], [8.0, 30.0]])
    X = np.repeat(centers, 40, axis=0) + rng.normal(size=(200, 2))
    model = fit(X, 5, init=centers)
    found = {pair.clusters for pair in verdict(X, model).pairs}
    mu = model.cluster_centers_
    for a, b in combinations(range(5), 2):
        middle, radius = (mu[a] + mu[b]) / 2, np.linalg.norm(mu[a] - mu[b]) / 2
        inside = [np.linalg.norm(mu[c] - middle) < radius for c in range(5) if c not in (a, b)]
        assert ((a, b) in found) == (not any(inside))


CLOUDS = {
    "wide": lambda rng: rng.normal(size=(30, 500)),
    "t": lambda rng: rng.standard_t(3, (800, 1)) + 0.3 * rng.normal(size=(800, 5)),
    "log-normal": lambda rng: np.exp(rng.normal(size=(800, 1))) + 0.1 * rng.normal(size=(800, 5)),
    "uniform": lambda rng: rng.uniform(size=(800, 2)),
}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_clouds_of_any_shape_are_no_groups(cloud):
    rng = np.random.default_rng(0)
    for k in (2, 3, 4):
        X = CLOUDS[cloud](rng)
        assert verdict(X, fit(X, k)).kind != "separate"
    assert verdict(X[:6], fit(X[:6], 2)).kind == "too few"
    only = verdict(X, fit(X, 1))
    assert only.kind == "one cluster"
    assert np.isnan(only.confidence).all()


@pytest.mark.parametrize("correlated", [False, True])
def test_confidence_is_the_share_of_rows_in_their_group(correlated):
    """Also where features are not independent, and confidence from single entries would be 1."""
    rng = np.random.default_rng(0)
    n, p = 4000, 60
    truth = np.arange(n) % 2
    shift = np.where(rng.random(p) < 0.5, 1.0, -1.0)
    noise = rng.normal(size=(n, p))
    if correlated:
        noise += 0.5 * rng.normal(size=(n, 1)) * shift
    X = noise + (1.8 if correlated else 0.45) / 2 * np.outer(2 * truth - 1, shift)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = fit(X, 2)
    found = verdict(X, model)
    assert found.kind == "separate"
    right = model.labels_ == truth
    right = right if right.mean() > 0.5 else ~right
    assert_calibrated(found.confidence, right, (0.5, 0.7), (0.7, 0.9), (0.9, 1.0))
    new = confidence(X[:500], model, noise=found.noise, odds=found.odds)
    np.testing.assert_allclose(new, found.confidence[:500], atol=0.1)


def test_between_a_large_group_and_a_small_one_most_rows_belong_to_the_large_one():
    rng = np.random.default_rng(1)
    truth = (rng.random(20_000) < 0.25).astype(int)
    X = rng.normal(size=(20_000, 10)) + 4.3 / np.sqrt(10) * truth[:, None]
    model = fit(X, 2, init=np.array([X[truth == g].mean(axis=0) for g in (0, 1)]))
    sure, right = verdict(X, model).confidence, model.labels_ == truth
    small = model.labels_ == 1
    assert_calibrated(sure[small], right[small], (0.2, 0.5), (0.5, 0.8), (0.8, 0.95))
    assert sure[~small].min() > 0.5


def test_a_third_group_says_nothing_of_the_other_two():
    """Nor does a row that observes only a constant feature, in which no centres differ."""
    rng = np.random.default_rng(0)
    labels = np.arange(900) % 3
    centers = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [2.0, 40.0, 0.0]])
    X = centers[labels] + rng.normal(size=(900, 3)) * [1, 1, 0]
    X[0, :2] = np.nan
    two = labels < 2
    alone = verdict(X[two], fit(X[two], 2, init=centers[:2])).confidence
    beside = verdict(X, fit(X, 3, init=centers)).confidence[two]
    assert np.isfinite(alone).all()
    np.testing.assert_allclose(beside[1:], alone[1:], atol=0.1)


def test_groups_that_lose_values_near_zero_or_below_a_limit_are_separate_and_those_of_chance_not():
    """With a large penalty and a far reference, rows that lack a feature lie apart in the loss."""
    for mechanism in ("mnar0", "mnar2", "limit"):
        settings = {"separation": 6, "mechanism": mechanism, "fraction": 0.3, "random_state": 1}
        X = make_gaussian_clusters(300, 4, 3, **settings).data
        assert verdict(X, MNARKMeans(3, random_state=0).fit(X)).kind == "separate"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 8))
    X[rng.random(X.shape) < 0.3] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    for k in (2, 4):
        found = verdict(X, fit(X, k, lam=4.0, reference="min"))
        assert found.kind in ("continuum", "undecided")
        assert np.isnan(found.confidence).all()


def test_a_batch_is_told_from_what_chance_gives():
    rng = np.random.default_rng(0)
    batch = np.repeat(["a", "b"], 60)
    split = np.arange(120) // 30  # every batch cut in two
    notes = {
        "batch": batch, "chance": rng.integers(0, 3, 120), "id": [f"s{i}" for i in range(120)],
        "order": np.arange(120) + 0.5, "constant": ["x"] * 120,
    }  # fmt: skip
    found = {name: agreement(name, values, split) for name, values in notes.items()}
    assert [name for name, one in found.items() if np.isnan(one.nested)] == ["id", "constant"]
    assert [name for name, one in found.items() if one.warns] == ["batch", "order"]
    assert found["batch"].nested == pytest.approx(1.0)
    assert found["batch"].ari < 0.6
    assert "--batch batch" in found["batch"].sentence
    with pytest.raises(ValueError, match="one per row"):
        agreement("batch", batch[:3], split)
    for times, warns in ((2, False), (20, True)):  # a few rows may agree by chance
        few = agreement("run", ["a", "b"] * times, np.array([0, 1] * times))
        assert (few.ari, few.warns, few.p < 0.01) == (1.0, warns, warns)
    gaps = agreement("batch", ["b", "a", None], np.array([0, 0, 1]))
    assert (gaps.groups, gaps.counts.tolist(), gaps.unknown) == (["a", "b"], [[1, 1], [0, 0]], 1)


def test_equally_stable_numbers_of_clusters_are_named():
    centers = np.array([[0.0, 0.0], [0.0, 9.0], [30.0, 0.0], [30.0, 9.0]])
    X = np.repeat(centers, 30, axis=0) + np.random.default_rng(0).normal(size=(120, 2))
    gradient = one_factor()[:, :8] - 25.0
    for table, ks, text in (
        (X, [2, 4], "k = 2 and 4 are equally stable (instability 0.000); k = 4 was chosen."),
        (gradient, [2, 3], "slices of one continuum: no number of clusters is better supported"),
    ):
        search = MNARKMeansCV(ks, lams=[0.0], n_splits=4, n_init=2, random_state=0).fit(table)
        assert text in report(search, table).page["lam_text"]
