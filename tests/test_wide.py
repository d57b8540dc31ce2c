"""Few rows with many features: partitions that predict rows left out, and the lam they lead to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import pdist, squareform

from mnarkmeans import MNARKMeans
from mnarkmeans._penalty.choice import choose_penalty
from mnarkmeans._penalty.partitions import Partitions, distinct
from mnarkmeans._penalty.ward import ward_labels
from mnarkmeans._selection.agreement import adjusted_rand
from mnarkmeans._solver import STARTS
from mnarkmeans._validation import observe
from mnarkmeans.metrics import clustering_error_rate
from mnarkmeans.missingness import ampute

SETTINGS = dict(max_iter=100, tol=1e-5, threads=1)


def same_partition(a, b, k):
    return adjusted_rand(a, b, np.ones(len(a), bool), k) == 1.0


def table(n, p, mechanism, seed=0):
    """Three unequal classes that differ in a third of the features."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(3, size=n, p=(0.6, 0.25, 0.15))
    centers = np.where(rng.random((3, p)) < 0.3, rng.normal(size=(3, p)), 0.0)
    X = centers[classes] + rng.normal(size=(n, p))
    return ampute(X, mechanism, fraction=0.3, rng=rng), classes


def choice_of(X, k, reference=0.0, weight=None, whole=True):
    observed = observe(X, reference=reference, sample_weight=weight)
    starts = STARTS["k-means++"](observed, 10, k, np.random.RandomState(0), 1)
    return choose_penalty(observed, starts, **SETTINGS, whole=whole)


# --- Ward


@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_ward_is_the_one_of_scipy(k):
    points = np.random.default_rng(k).normal(size=(30, 4))
    ours = ward_labels(squareform(pdist(points, "sqeuclidean")), np.ones(30), k)
    assert len(np.unique(ours)) == k
    assert same_partition(ours, fcluster(ward(pdist(points)), k, "maxclust") - 1, k)


def test_a_weight_of_two_is_the_point_twice():
    points = np.random.default_rng(3).normal(size=(20, 3))
    weights = np.repeat([1.0, 2.0], 10)
    twice = np.repeat(points, weights.astype(int), axis=0)
    once = ward_labels(squareform(pdist(points, "sqeuclidean")), weights, 4)
    doubled = ward_labels(squareform(pdist(twice, "sqeuclidean")), np.ones(30), 4)
    assert same_partition(np.repeat(once, weights.astype(int)), doubled, 4)


# --- partitions


def left_out_by_hand(X, labels, k, penalty):
    """The definition, row by row: fit everything anew without the row."""
    weight = np.where(np.isnan(X), penalty, 1.0)
    values = np.nan_to_num(X)
    rest, away = np.zeros_like(X), np.zeros_like(X)
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        mean = np.average(values[others], axis=0, weights=weight[others])
        own = others & (labels == labels[i])
        center = np.average(values[own], axis=0, weights=weight[own]) if own.any() else mean
        rest[i], away[i] = values[i] - mean, center - mean
    agree = np.maximum((weight * rest * away).sum(axis=0), 0.0)
    gain = agree**2 / (weight * away**2).sum(axis=0)
    share = gain / (weight * rest**2).sum(axis=0)
    return gain.sum(), -0.5 * len(X) * np.log(1.0 - share).sum()


def test_what_is_predicted_is_its_definition():
    X, classes = table(25, 40, "mnar0")
    observed = observe(X, reference=0.0)
    labels = np.stack([classes, np.arange(25) % 3])
    found = Partitions(observed, labels, 3).predicted([0, 1], 0.7)
    expected = [left_out_by_hand(X, own, 3, 0.7) for own in labels]
    np.testing.assert_allclose(found.T, expected, rtol=1e-10)
    assert (found[:, 0] > 2.0 * found[:, 1]).all()


def test_noise_predicts_next_to_nothing_although_it_fits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 800))
    fitted = MNARKMeans(3, lam=0.0, random_state=0).fit(X).labels_
    partitions = Partitions(observe(X, reference=0.0), fitted[None], 3)
    fits = -partitions.losses(0.0)[0] - 40 * (X.mean(axis=0) ** 2).sum()
    assert fits > 0.05 * (X**2).sum()
    assert partitions.predicted([0], 1.0)[0, 0] < 0.4 * fits


def test_weights_are_rows_more_than_once():
    X, classes = table(25, 40, "mnar1", seed=1)
    weights = np.where(np.arange(25) < 10, 2.0, 1.0)
    twice = np.repeat(np.arange(25), weights.astype(int))
    by_weight = Partitions(observe(X, reference=0.0, sample_weight=weights), classes[None], 3)
    by_rows = Partitions(observe(X[twice], reference=0.0), classes[twice][None], 3)
    np.testing.assert_allclose(by_weight.losses(0.5), by_rows.losses(0.5), rtol=1e-10)
    np.testing.assert_allclose(
        by_weight.predicted([0], 0.5), by_rows.predicted([0], 0.5), rtol=1e-10
    )


def test_the_loss_and_the_centers_are_those_of_the_fit():
    X, _ = table(30, 50, "mnar0", seed=2)
    model = MNARKMeans(3, lam=2.0, random_state=0).fit(X)
    partitions = Partitions(observe(X, reference=0.0), model.labels_[None], 3)
    assert partitions.losses(2.0)[0] + np.nansum(X**2) == pytest.approx(model.inertia_, rel=1e-9)
    np.testing.assert_allclose(partitions.centers(0, 2.0), model.cluster_centers_, atol=1e-9)


def test_partitions_that_differ_by_names_are_one():
    labels = np.array([[0, 0, 1, 2], [2, 2, 0, 1], [0, 1, 1, 2], [1, 1, 1, 1]], np.int32)
    np.testing.assert_array_equal(distinct(labels, 3), labels[[0, 2, 3]])


# --- the choice


def test_tables_with_enough_rows_are_left_alone():
    X, _ = table(90, 60, "mnar0")
    assert choice_of(X, 3).centers is None


def test_a_sample_of_the_rows_is_not_a_small_table():
    X, _ = table(40, 300, "mnar0")
    assert choice_of(X, 3).centers is not None
    assert choice_of(X, 3, whole=False).centers is None


def test_gaps_by_chance_give_lam_0_in_wide_tables_too():
    X, _ = table(40, 300, "mcar")
    assert choice_of(X, 3).missingness.lam == 0.0


def test_the_penalty_never_falls_below_that_of_the_gaps():
    for seed in range(3):
        X, _ = table(30, 200, "mnar0", seed=seed)
        assert choice_of(X, 3).missingness.lam >= choice_of(X, 3, whole=False).missingness.lam


def test_one_cluster_needs_no_partition():
    X, _ = table(30, 200, "mnar0")
    assert choice_of(X, 1).centers is None


def test_the_fit_starts_from_what_the_choice_has_found():
    X, classes = table(40, 400, "mnar0", seed=4)
    model = MNARKMeans(3, n_init=2, random_state=0).fit(X)
    assert model.start_losses_.shape == (2,)
    assert clustering_error_rate(classes, model.labels_) < 0.05
    again = MNARKMeans(3, n_init=2, random_state=0).fit(X[::-1])
    assert same_partition(model.labels_[::-1], again.labels_, 3)


def test_given_centers_stay_the_only_start():
    X, _ = table(40, 400, "mnar0", seed=4)
    init = np.nan_to_num(X[:3])
    model = MNARKMeans(3, init=init).fit(X)
    alone = MNARKMeans(3, init=init, lam=model.lam_).fit(X)
    assert model.start_losses_.shape == (1,)
    assert model.inertia_ == pytest.approx(alone.inertia_)
