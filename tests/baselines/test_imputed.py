"""Imputation + k-means: fills computed by hand, and chained equations against scikit-learn's."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  makes the next line work
from sklearn.impute import IterativeImputer

from mnarkmeans.baselines import BASELINES, ImputedKMeans
from mnarkmeans.baselines._mice import mice_draws

nan = np.nan


def test_zero_and_mean_fill_by_hand():
    X = np.array([[1.0, nan], [3.0, 4.0], [nan, 8.0], [5.0, 6.0]])
    zero = ImputedKMeans(2, imputation="zero", random_state=0).fit(X)
    np.testing.assert_array_equal(zero.imputed_, [[1, 0], [3, 4], [0, 8], [5, 6]])
    mean = ImputedKMeans(2, imputation="mean", random_state=0).fit(X)
    np.testing.assert_array_equal(mean.imputed_, [[1, 6], [3, 4], [3, 8], [5, 6]])


def test_knn_fills_with_the_mean_of_the_ten_nearest_rows():
    # Eleven rows observe the feature; the farthest, with value 1000, is not among the ten.
    first = np.array([0.0, *(0.1 * i for i in range(1, 11)), 50.0])
    second = np.array([nan, *range(1, 11), 1000.0])
    model = ImputedKMeans(2, imputation="knn", random_state=0).fit(np.column_stack([first, second]))
    assert model.imputed_[0, 1] == pytest.approx(5.5)


@pytest.mark.parametrize("name", ["zero", "mean", "knn", "mice"])
def test_complete_data_is_plain_kmeans(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 5 * rng.integers(3, size=(60, 1))
    model = BASELINES[name](3, random_state=0).fit(X)
    plain = KMeans(3, n_init=100, random_state=1).fit(X)
    assert model.inertia_ == pytest.approx(plain.inertia_)
    centers = [X[model.labels_ == label].mean(axis=0) for label in range(3)]
    np.testing.assert_allclose(model.cluster_centers_, centers)


@pytest.mark.parametrize("name", ["zero", "mean", "knn", "mice"])
def test_seeded_and_complete(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    X[rng.random(X.shape) < 0.3] = nan
    X[:, 3] = nan
    before = X.copy()
    one, two = (BASELINES[name](3, random_state=7).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.imputed_, two.imputed_)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert np.isfinite(one.imputed_).all()
    np.testing.assert_array_equal(one.imputed_[~np.isnan(X)], X[~np.isnan(X)])
    np.testing.assert_array_equal(X, before)


def test_sparse_entries_not_stored_are_gaps():
    X = np.array([[1.0, nan], [3.0, 4.0], [nan, 8.0]])
    seen = ~np.isnan(X)
    sparse = sp.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)
    model = ImputedKMeans(2, imputation="mean", random_state=0).fit(sparse)
    np.testing.assert_array_equal(model.imputed_, [[1, 6], [3, 4], [2, 8]])


def test_unknown_imputation_is_named():
    with pytest.raises(ValueError, match="found 'magic'"):
        ImputedKMeans(2, imputation="magic").fit(np.eye(3))


def test_chained_equations_draw_as_iterative_imputer_does():
    """Mean and spread of the draws of every gap agree with scikit-learn's posterior sampling."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(5, 5))
    complete = rng.normal(size=(150, 5)) @ mixing + [1, -2, 0, 3, 5]
    X = complete.copy()
    X[rng.random(X.shape) < 0.2] = nan
    gaps = np.isnan(X)

    ours = np.array(mice_draws(X, 40, 6, np.random.default_rng(1)))[:, gaps]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sampling does not converge
        theirs = np.array(
            [
                IterativeImputer(sample_posterior=True, max_iter=6, random_state=s).fit_transform(X)
                for s in range(40)
            ]
        )[:, gaps]
    spread = theirs.std(axis=0)
    difference = (ours.mean(axis=0) - theirs.mean(axis=0)) / spread
    assert np.abs(difference.mean()) < 0.05
    assert difference.std() < 2 * np.sqrt(2 / 40)  # two means of 40 draws each
    assert np.median(ours.std(axis=0) / spread) == pytest.approx(1, abs=0.1)


def test_chained_equations_find_an_exact_relation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    X = np.column_stack([x, 2 * x + 1])
    X[:40, 1] = nan
    filled = mice_draws(X, 1, 5, np.random.default_rng(0))[0]
    np.testing.assert_allclose(filled[:40, 1], 2 * x[:40] + 1, atol=0.01)
