"""Scores against scikit-learn on complete data, and against slow loops on data with gaps."""

from copy import copy
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as skm
from backends import to_csr
from sklearn.exceptions import ConvergenceWarning

from mnarkmeans import MissingDataWarning, MNARKMeans
from mnarkmeans.metrics import (
    calinski_harabasz_score,
    center_mse,
    clustering_error_rate,
    davies_bouldin_score,
    silhouette_score,
)

SCORES = [silhouette_score, calinski_harabasz_score, davies_bouldin_score]


@pytest.fixture(params=[0.4, [0.0, 0.4, 1.0, 6.0]], ids=str)
def case(request):
    """60 rows with gaps around three centres, one without any value; one penalty or four."""
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0, 0, 0], [3, 0, 0, 1], [1, 3, 0, 2.0]])
    X = centers[rng.integers(3, size=60)] + rng.normal(size=(60, 4))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[7] = np.nan
    lam = request.param if np.ndim(request.param) == 0 else np.array(request.param)
    model = MNARKMeans(3, lam=lam, reference=[0.3, -0.2, 0.0, 0.1], init=centers, max_iter=2)
    with pytest.warns((MissingDataWarning, ConvergenceWarning)):  # row 7, and few iterations
        return X, model.fit(X)


def test_cer_counts_the_pairs_judged_differently_and_center_mse_sums_over_true_centres():
    rng = np.random.default_rng(0)
    one, two = rng.integers(4, size=40), rng.integers(3, size=40)
    differ = [(one[i] == one[j]) != (two[i] == two[j]) for i, j in combinations(range(40), 2)]
    assert clustering_error_rate(one, two) == pytest.approx(np.mean(differ))
    assert clustering_error_rate([1], [5]) == 0.0
    with pytest.raises(ValueError, match="inconsistent numbers"):
        clustering_error_rate([1, 2], [1, 2, 3])
    assert center_mse([[0, 0], [4, 0]], [[0, 1], [0, 3]]) == pytest.approx(1 + 17)
    with pytest.raises(ValueError, match="Incompatible dimension"):
        center_mse([[0, 0]], [[0, 0, 0]])


def test_simplified_silhouette_on_gaps(case):
    X, model = case
    values, lam, seen = [], np.broadcast_to(model.lam_, 4), ~np.isnan(X).all(axis=1)
    for x, label in zip(X[seen], model.labels_[seen], strict=True):
        gaps = np.isnan(x)
        apart = [
            np.where(gaps, lam * (mu - model.reference_) ** 2, (x - mu) ** 2).sum() ** 0.5
            for mu in model.cluster_centers_
        ]
        a, b = apart.pop(label), min(apart)
        values.append((b - a) / max(a, b))
    assert silhouette_score(X, model) == pytest.approx(np.mean(values))


def test_a_row_alone_in_its_cluster_counts_0():
    X = np.array([[0.0], [0.2], [9.0]])
    labels = [0, 0, 1]
    assert silhouette_score(X, labels) == pytest.approx(skm.silhouette_score(X, labels))
    model = MNARKMeans(2, lam=1.0, init=[[0.1], [9.0]])
    found = silhouette_score(X, model.fit(X))
    assert found == pytest.approx((1 - 0.1 / 9.0 + 1 - 0.1 / 8.8) / 3)


@pytest.mark.parametrize("score", SCORES)
def test_labels_are_judged_with_gaps_at_the_means(case, score):
    X, model = case
    seen = ~np.isnan(X).all(axis=1)
    rows, labels = X[seen], model.labels_[seen]
    filled = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    names = np.array(["a", "b", "c"])[labels]
    expected = getattr(skm, score.__name__)(filled, labels)
    for form in (rows, pd.DataFrame(rows), to_csr(rows)):
        assert score(form, names) == pytest.approx(expected)
    of_model = score(X, model)
    if score is not silhouette_score:  # that of a model is the simplified one
        assert of_model == pytest.approx(expected)
    assert score(filled + 1e4, labels) == pytest.approx(expected)
    assert score(to_csr(X), model) == pytest.approx(of_model)
    coded = copy(model)
    coded.missing_values = -999.0
    assert score(np.nan_to_num(X, nan=-999.0), coded) == pytest.approx(of_model)
    with pytest.raises(ValueError, match="one label per row"):
        score(rows, names[:-1])
    for single in (MNARKMeans(1, lam=1.0).fit(rows), np.zeros(len(rows))):
        with pytest.raises(ValueError, match=r"one cluster|Number of labels is 1"):
            score(rows, single)
