"""Hard limits: sharp edges, and gaps that know the other features."""

import numpy as np
import pytest
from places import to_csr
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans
from mnarkmeans._penalty.deviations import by_absolute_deviations
from mnarkmeans._penalty.edge import SHARP, edges_of
from mnarkmeans._penalty.hard import NOT_BY_CHANCE, edges_and_gaps
from mnarkmeans._penalty.others import gaps_know_others
from mnarkmeans._penalty.rows import Rows, Start
from mnarkmeans._validation import observe
from mnarkmeans.missingness import ampute


def groups(seed=0, n=300, p=6, k=3):
    rng = np.random.default_rng(seed)
    centers, classes = 1.2 * rng.normal(size=(k, p)), rng.integers(k, size=n)
    return centers[classes] + rng.standard_t(3, (n, p)) / np.sqrt(3.0), classes


def lost(X, mechanism, **options):
    X = ampute(X, mechanism, rng=0, **options)
    return X[~np.isnan(X).all(axis=1)]


def test_by_chance_gaps_know_nothing():
    together, each = [], []
    for seed in range(60):
        known = gaps_know_others(observe(lost(groups(seed)[0], "mcar", fraction=0.4)))
        together.append(known.together)
        each += list(known.each)
    assert abs(np.mean(together)) < 0.5
    assert 0.6 < np.std(together) < 1.4
    assert np.mean(np.array(together) > NOT_BY_CHANCE) < 0.06
    assert abs(np.mean(each)) < 0.2


def test_rows_that_lose_more_than_others_are_still_chance():
    X = groups()[0]
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < rng.choice([0.1, 0.7], size=(len(X), 1))] = np.nan
    assert gaps_know_others(observe(X[~np.isnan(X).all(axis=1)])).together < NOT_BY_CHANCE


@pytest.mark.parametrize("softness", [0.0, 0.5])
def test_below_a_limit_gaps_know_the_other_features(softness):
    X = lost(groups()[0], "limit", fraction=0.5, softness=softness)
    assert gaps_know_others(observe(X)).together > 2 * NOT_BY_CHANCE


def test_gaps_that_follow_a_complete_feature_know_it():
    X = groups()[0]
    X[X[:, 0] > 0.5, 1] = np.nan
    known = gaps_know_others(observe(X))
    assert known.together > NOT_BY_CHANCE
    assert known.each.shape == (1,)


def test_one_feature_alone_has_nobody_to_know():
    known = gaps_know_others(observe(np.array([[1.0], [2.0], [np.nan], [4.0]])))
    assert known.together == 0.0
    np.testing.assert_array_equal(known.each, [0.0])


def test_weights_and_sparse_tables_say_the_same():
    X = lost(groups()[0], "limit", fraction=0.4)
    weights = np.random.default_rng(0).integers(1, 4, size=len(X))
    for question in (gaps_know_others, edges_of):
        repeated = question(observe(np.repeat(X, weights, axis=0)))
        weighed = question(observe(X, sample_weight=weights.astype(float)))
        stored, dense = question(observe(to_csr(X))), question(observe(X))
        for a, b in ((repeated, weighed), (stored, dense)):
            for one, other in zip(a, b, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_only_a_hard_limit_has_a_sharp_edge():
    X = groups(n=600)[0]
    hard, soft, chance = (
        edges_of(observe(lost(X, mechanism, fraction=0.4, **options))).share()
        for mechanism, options in (("limit", {}), ("limit", {"softness": 0.5}), ("mcar", {}))
    )
    assert hard > 0.17
    assert soft < SHARP / 1.5
    assert chance < SHARP / 1.5


@pytest.mark.parametrize("noise", ["normal", "t3"])
def test_lam_is_at_most_1_below_a_soft_limit_and_at_least_1_below_a_hard_one(noise):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        centers, classes = 1.2 * rng.normal(size=(3, 6)), rng.integers(3, size=1000)
        away = rng.normal(size=(1000, 6)) if noise == "normal" else rng.standard_t(3, (1000, 6))
        X = centers[classes] + away
        soft = lost(X, "limit", fraction=0.5, softness=0.7)
        found = MNARKMeans(3, reference="min", random_state=0).fit(soft)
        assert 0.0 < np.max(found.lam_) <= 1.0
        hard = lost(X, "limit", fraction=0.3)
        assert np.max(MNARKMeans(3, reference="min", random_state=0).fit(hard).lam_) >= 1.0


@pytest.mark.parametrize("form", [np.asarray, to_csr])
def test_absolute_deviations_are_those_of_a_plain_loop(form):
    X = lost(groups(n=60)[0], "limit", fraction=0.3)
    weights = np.random.default_rng(1).integers(1, 4, size=len(X)).astype(float)
    observed = observe(form(X), sample_weight=weights, reference=-3.0)
    rows, k = Rows(observed), 3
    fits = [Start(X[:k].copy() + 3.0, 0.0), Start(X[k : 2 * k].copy() + 3.0, np.arange(6) * 0.3)]
    fits = [fit._replace(centers=np.nan_to_num(fit.centers, nan=1.0)) for fit in fits]
    expected = []
    for fit in fits:
        to_centers = np.where(
            np.isnan(X)[:, None], fit.lam * fit.centers**2, (X[:, None] + 3.0 - fit.centers) ** 2
        )
        labels, total = to_centers.sum(axis=2).argmin(axis=1), 0.0
        seen = ~np.isnan(X)
        for j in range(6):
            pooled = np.average(X[seen[:, j], j], weights=weights[seen[:, j]])
            for cluster in range(k):
                own = (labels == cluster) & seen[:, j]
                w, x = weights[own], X[own, j]
                total += (w * np.abs(x - ((w * x).sum() + pooled) / (w.sum() + 1.0))).sum()
        weight = (weights[:, None] * seen).sum()
        expected.append(-weight * np.log(total / weight / rows.root))
    np.testing.assert_allclose(by_absolute_deviations(observed, rows, fits), expected, rtol=1e-9)


def test_many_features_are_judged_by_some_of_the_others():
    X = lost(groups(n=200, p=180)[0], "limit", fraction=0.4)
    known = gaps_know_others(observe(X))
    assert known.each.shape == (180,)
    assert np.median(known.each) > NOT_BY_CHANCE


def test_half_of_a_table_below_a_hard_limit():
    found, fixed = [], []
    for seed in (6, 7, 8, 9):
        X, classes = groups(seed)
        X = ampute(X, "limit", fraction=0.5, rng=seed)
        seen = ~np.isnan(X).all(axis=1)
        model = MNARKMeans(3, reference="min", random_state=0).fit(X[seen])
        assert model.missingness_.mechanism == "limit"
        assert np.max(model.lam_) >= 1.0
        told = MNARKMeans(3, lam=1.0, reference="min", random_state=0).fit(X[seen])
        found.append(adjusted_rand_score(classes[seen], model.labels_))
        fixed.append(adjusted_rand_score(classes[seen], told.labels_))
    assert np.mean(found) > np.mean(fixed) - 0.03


def test_features_that_lose_values_by_chance_beside_a_hard_limit():
    X = groups(p=9)[0]
    X[:, :3] = ampute(X[:, :3], "mcar", fraction=0.5, rng=0)
    X[:, 3:] = ampute(X[:, 3:], "limit", fraction=0.5, rng=0)
    hard = edges_and_gaps(observe(X[~np.isnan(X).all(axis=1)], reference="min"))
    assert hard.is_believed
    np.testing.assert_array_equal(hard.features(None)[:3], False)
    assert hard.features(None)[3:].sum() >= 5
