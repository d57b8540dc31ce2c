"""Scores against scikit-learn on complete data, and against slow loops on data with gaps."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.metrics as skm
from backends import to_csr

from mnarkmeans import MNARKMeans
from mnarkmeans.metrics import (
    calinski_harabasz_score,
    center_mse,
    clustering_error_rate,
    silhouette_score,
)

SCORES = [silhouette_score, calinski_harabasz_score]


class Fitted(MNARKMeans):
    """A model with given centres, penalty and reference, and given labels for any rows."""

    def predict(self, X):
        return self._labels


def fitted(centers, labels, lam=1.0, reference=0.0):
    model = Fitted()
    model.cluster_centers_ = np.asarray(centers, dtype=float)
    model.n_features_in_ = model.cluster_centers_.shape[1]
    model.lam_ = lam
    model.reference_ = np.broadcast_to(np.asarray(reference, float), model.n_features_in_)
    model._labels = np.asarray(labels)
    return model


@pytest.fixture(params=[0.0, 0.4, 6.0, [0.0, 0.4, 1.0, 6.0]], ids=str)
def lam(request):
    """One penalty, or one for each of four features."""
    return request.param if np.ndim(request.param) == 0 else np.array(request.param)


@pytest.fixture
def case(lam):
    """60 rows with gaps around three centres, one row without any value."""
    rng = np.random.default_rng(0)
    truth = np.array([[0, 0, 0, 0], [3, 0, 0, 1], [1, 3, 0, 2.0]])
    labels = rng.integers(3, size=60)
    X = truth[labels] + rng.normal(size=(60, 4))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[7] = np.nan
    reference = np.array([0.3, -0.2, 0.0, 0.1])
    return X, fitted(truth, labels, lam, reference)


def slow_row_to_point(x, y, lam, c):
    lam = np.broadcast_to(lam, len(x))
    return sum(
        lam[j] * (y[j] - c[j]) ** 2 if np.isnan(x[j]) else (x[j] - y[j]) ** 2 for j in range(len(x))
    )


def slow_centre(rows, lam, c):
    centre, lam = np.array(c, dtype=float), np.broadcast_to(lam, len(c))
    for j in range(rows.shape[1]):
        seen = rows[~np.isnan(rows[:, j]), j] - c[j]
        pull = len(seen) + lam[j] * (len(rows) - len(seen))
        if pull > 0:
            centre[j] += seen.sum() / pull
    return centre


def seen_rows(X, model):
    seen = ~np.isnan(X).all(axis=1)
    return X[seen], model.predict(X)[seen]


def test_cer_counts_the_pairs_judged_differently():
    rng = np.random.default_rng(0)
    one, two = rng.integers(4, size=40), rng.integers(3, size=40)
    differ = [(one[i] == one[j]) != (two[i] == two[j]) for i, j in combinations(range(40), 2)]
    assert clustering_error_rate(one, two) == pytest.approx(np.mean(differ))
    assert clustering_error_rate([1], [5]) == 0.0
    with pytest.raises(ValueError, match="inconsistent numbers"):
        clustering_error_rate([1, 2], [1, 2, 3])


def test_center_mse_sums_over_true_centres():
    assert center_mse([[0, 0], [4, 0]], [[0, 1], [0, 3]]) == pytest.approx(1 + 17)
    with pytest.raises(ValueError, match="centers_true has 2 features"):
        center_mse([[0, 0]], [[0, 0, 0]])


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_complete_data_give_scikit_learns_values(lam, offset):
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=80)
    X = rng.normal(size=(80, 4)) + 2 * labels[:, None] + offset
    model = fitted([X[labels == g].mean(axis=0) for g in range(3)], labels, lam)
    assert silhouette_score(X, labels) == pytest.approx(skm.silhouette_score(X, labels))
    expected = skm.calinski_harabasz_score(X, labels)
    assert calinski_harabasz_score(X, model) == pytest.approx(expected)


def test_simplified_silhouette_on_gaps(case, lam):
    X, model = case
    values = []
    for x, label in zip(*seen_rows(X, model), strict=True):
        d = [
            np.sqrt(slow_row_to_point(x, y, lam, model.reference_)) for y in model.cluster_centers_
        ]
        a, b = d.pop(label), min(d)
        values.append((b - a) / max(a, b))
    assert silhouette_score(X, model) == pytest.approx(np.mean(values))


def test_calinski_harabasz_on_gaps(case, lam):
    X, model = case
    rows, labels = seen_rows(X, model)
    c = model.reference_

    def loss(members, centre):
        return sum(slow_row_to_point(x, centre, lam, c) for x in members)

    within = sum(loss(rows[labels == g], model.cluster_centers_[g]) for g in range(3))
    expected = (loss(rows, slow_centre(rows, lam, c)) - within) / 2 / (within / (len(rows) - 3))
    assert calinski_harabasz_score(X, model) == pytest.approx(expected)


@pytest.mark.parametrize("score", SCORES)
def test_sparse_and_coded_gaps_equal_nan(case, score):
    X, model = case
    expected = score(X, model)
    seen = ~np.isnan(X)
    sparse = sp.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)
    assert score(sparse, model) == pytest.approx(expected)
    model.missing_values = -999.0
    assert score(np.where(seen, X, -999.0), model) == pytest.approx(expected)


def test_a_row_alone_in_its_cluster_counts_0():
    X = np.array([[0.0], [0.2], [9.0]])
    labels = [0, 0, 1]
    assert silhouette_score(X, labels) == pytest.approx(skm.silhouette_score(X, labels))
    assert silhouette_score(X, fitted([[0.1], [9.0]], labels)) == pytest.approx(
        (2 - 0.1 / 9.0 - 0.1 / 8.8) / 3
    )


def test_mistakes_are_named(case):
    X, _ = case
    one_cluster = fitted(np.zeros((1, 4)), np.zeros(60, int))
    for score in SCORES:
        with pytest.raises(ValueError, match=r"fall into 1 cluster\(s\)"):
            score(X, one_cluster)


def test_labels_alone_are_judged_with_gaps_at_the_means(case):
    X, model = case
    rows, labels = seen_rows(X, model)
    filled = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    names = np.array(["a", "b", "c"])[labels]
    for ours in SCORES:
        theirs = getattr(skm, ours.__name__)
        for form in (rows, pd.DataFrame(rows), to_csr(rows)):
            assert ours(form, names) == pytest.approx(theirs(filled, labels))
    with pytest.raises(ValueError, match="one label per row"):
        silhouette_score(rows, names[:-1])
