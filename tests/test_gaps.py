"""A gap is NaN or the code that was named, wherever a table is read, in any precision."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnarkmeans import MNARKMeans
from mnarkmeans._observed import code_in, seen_in, with_nan
from mnarkmeans._validation import observe
from mnarkmeans.displays import CentersDisplay
from mnarkmeans.metrics import cluster_markers

CODE = 0.1  # which no binary number is: float32 and float64 have different ones


@pytest.fixture(params=[np.float32, np.float64])
def tables(request):
    """With NaN, and the same with the code in every second gap."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype(request.param)
    X[:30] += 4
    X[rng.random(X.shape) < 0.3] = np.nan
    coded = X.copy()
    gaps = np.flatnonzero(np.isnan(X.ravel()))
    coded.ravel()[gaps[::2]] = CODE
    return X, coded


def stored(X):
    """Every entry of a table, gaps too, in a CSR matrix."""
    n, p = X.shape
    return sp.csr_array((X.ravel(), np.tile(np.arange(p), n), np.arange(n + 1) * p), shape=X.shape)


def test_a_code_is_a_gap_in_the_precision_of_the_table(tables):
    X, coded = tables
    missing = code_in(coded.dtype, CODE)
    np.testing.assert_array_equal(seen_in(coded, missing), ~np.isnan(X))
    np.testing.assert_array_equal(with_nan(coded, CODE), X)
    np.testing.assert_array_equal(with_nan(stored(coded), CODE).toarray(), X)
    assert with_nan(X, np.nan) is X


def test_a_table_tells_what_it_observes(tables):
    X, coded = tables
    observed = observe(coded, missing_values=CODE)
    np.testing.assert_array_equal(observed.seen(), ~np.isnan(X))
    np.testing.assert_array_equal(observed.seen(slice(3, 9)), ~np.isnan(X[3:9]))
    np.testing.assert_array_equal(observed.filled_and_gaps()[1], np.isnan(X))


@pytest.mark.parametrize("form", [np.asarray, stored])
def test_markers_and_figures_see_the_gaps_that_the_fit_saw(tables, form):
    X, coded = tables
    model = MNARKMeans(2, lam=0.5, missing_values=CODE, random_state=0).fit(form(coded))
    labels = MNARKMeans(2, lam=0.5, random_state=0).fit_predict(X)
    np.testing.assert_array_equal(model.labels_, labels)
    expected = cluster_markers(X, labels)
    found = cluster_markers(form(coded), labels, missing_values=CODE)
    np.testing.assert_allclose(found.effect, expected.effect, rtol=1e-5)
    shown = CentersDisplay.from_estimator(model, form(coded)).missing_share
    np.testing.assert_allclose(shown.mean(axis=0), _share_by_cluster(X, labels).mean(axis=0))


def _share_by_cluster(X, labels):
    return np.stack([np.isnan(X[labels == l]).mean(axis=0) for l in (0, 1)])
