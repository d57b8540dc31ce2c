"""Corners of a fit: empty clusters, rows and features never observed, ties, one row."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mnarkmeans import MissingDataWarning, MNARKMeans


@pytest.fixture
def X(three_groups):
    return three_groups


def test_an_empty_cluster_takes_the_costliest_row():
    X = np.array([[0.0], [0.1], [0.2], [9.0]])
    model = MNARKMeans(2, lam=1.0, init=[[0.1], [100.0]]).fit(X)
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 1])
    np.testing.assert_allclose(model.cluster_centers_, [[0.1], [9.0]])


def test_many_empty_clusters_never_give_nan():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    init = np.full((6, 3), 1e3)
    for lam in (0.0, 0.5):
        model = MNARKMeans(6, lam=lam, init=init).fit(X)
        assert np.isfinite(model.cluster_centers_).all()
        assert len(np.unique(model.labels_)) == 6


def test_lam_zero_keeps_a_coordinate_that_nobody_observes():
    nan = np.nan
    X = np.array([[0.0, nan], [0.2, nan], [5.0, 1.0], [5.2, 3.0]])
    model = MNARKMeans(2, lam=0.0, init=[[0.0, 7.0], [5.0, 0.0]]).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, [[0.1, 7.0], [5.1, 2.0]])


def test_a_feature_never_observed_has_the_reference_as_centre(X):
    X = np.column_stack([X, np.full(len(X), np.nan)])
    with pytest.warns(MissingDataWarning, match=r"1 feature\(s\) have no observed value \(4\)"):
        model = MNARKMeans(3, lam=0.5, reference=2.5, random_state=0).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_[:, 4], 2.5)


def test_a_row_never_observed_is_left_out(X):
    more = np.vstack([X, np.full((2, 4), np.nan)])
    with pytest.warns(MissingDataWarning, match=r"2 row\(s\) have no observed value"):
        with_rows = MNARKMeans(3, lam=0.5, random_state=0).fit(more)
    without = MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    np.testing.assert_allclose(with_rows.cluster_centers_, without.cluster_centers_)
    assert with_rows.inertia_ == pytest.approx(without.inertia_)
    nearest = np.argmin(np.sum(without.cluster_centers_**2, axis=1))
    np.testing.assert_array_equal(with_rows.labels_[-2:], nearest)
    np.testing.assert_array_equal(without.predict(np.full((1, 4), np.nan)), [nearest])
    assert not np.isnan(without.impute(np.full((1, 4), np.nan))).any()


def test_fewer_distinct_rows_than_clusters_warns():
    X = np.ones((10, 2))
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\)"):
        model = MNARKMeans(3, lam=1.0, random_state=0).fit(X)
    assert np.isfinite(model.cluster_centers_).all()


def test_one_cluster_and_one_row():
    with pytest.warns(MissingDataWarning, match="feature"):
        model = MNARKMeans(1, lam=0.5).fit([[1.0, np.nan]])
    np.testing.assert_allclose(model.cluster_centers_, [[1.0, 0.0]])
    assert model.inertia_ == 0.0


def test_ties_go_to_the_first_centre():
    model = MNARKMeans(2, lam=1.0, init=[[-1.0], [1.0]], max_iter=1).fit([[-1.0], [0.0], [1.0]])
    assert model.predict([[model.cluster_centers_.mean()]])[0] == 0
