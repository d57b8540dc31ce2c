"""Rows that cannot change cluster are passed over, and nothing else changes."""

import numpy as np
import pytest
from scipy import sparse

from mnarkmeans import MNARKMeans, _kernels
from mnarkmeans._data.observed import Csr, Dense
from mnarkmeans._solver import solvers
from mnarkmeans._solver.bounds import Bounds
from mnarkmeans._solver.loss import csr_tables, dense_tables, zero_stats


def table(rng, n=30_000, p=20, k=6, spread=1.0, share=0.3):
    centers = spread * rng.normal(size=(k, p))
    X = centers[rng.integers(k, size=n)] + rng.normal(size=(n, p))
    X[rng.random((n, p)) < share] = np.nan
    return X, np.nan_to_num(X[:k])


def fit(X, start, lam, **options):
    options = {"algorithm": "lloyd", "max_iter": 60, "tol": 0.0} | options
    return MNARKMeans(len(start), lam=lam, init=start, **options).fit(X)


@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0, 5.0])
@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_fits_are_the_same_without_bounds(monkeypatch, lam, spread):
    X, start = table(np.random.default_rng(int(10 * lam + spread)), spread=spread)
    pruned = fit(X, start, lam)
    monkeypatch.setattr(solvers, "Bounds", lambda n, k: None)
    plain = fit(X, start, lam)
    assert pruned.n_iter_ == plain.n_iter_
    np.testing.assert_array_equal(pruned.labels_, plain.labels_)
    np.testing.assert_array_equal(pruned.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_array_equal(pruned.loss_path_, plain.loss_path_)


def test_sparse_fits_are_the_same_without_bounds(monkeypatch):
    X, start = table(np.random.default_rng(4), n=6000, p=200, share=0.85)
    stored = ~np.isnan(X)
    X = sparse.csr_array((X[stored], np.nonzero(stored)), shape=X.shape)
    pruned = fit(X, start, 0.5)
    monkeypatch.setattr(solvers, "Bounds", lambda n, k: None)
    plain = fit(X, start, 0.5)
    np.testing.assert_array_equal(pruned.labels_, plain.labels_)
    np.testing.assert_array_equal(pruned.cluster_centers_, plain.cluster_centers_)


def test_empty_clusters_are_filled_alike(monkeypatch):
    X, start = table(np.random.default_rng(5), n=30_000)
    start[-1] = 1e6  # nobody's centre
    pruned = fit(X, start, 0.5)
    monkeypatch.setattr(solvers, "Bounds", lambda n, k: None)
    np.testing.assert_array_equal(pruned.labels_, fit(X, start, 0.5).labels_)
    assert len(np.unique(pruned.labels_)) == len(start)


def test_bounds_do_put_rows_to_sleep():
    """A check that could fail silently: separated clusters must not be looked at again."""
    rng = np.random.default_rng(6)
    X, start = table(rng, n=2000, spread=5.0)
    k, p = start.shape
    zero = np.zeros(p)
    tables = dense_tables(zero, start[None], np.array([0.5]), zero)
    labels = np.full((1, len(X)), -1, np.int32)
    bounds = Bounds(len(X), k)
    bounds.follow(0, start, 0.5)
    stats, weights = zero_stats(1, k, p), np.ones(len(X))
    for fresh in (True, False):
        _kernels.step(
            Dense(X, np.nan), 0, 0, weights, tables, np.arange(1), fresh, labels, stats,
            bounds.expiry, bounds.drop,
        )  # fmt: skip
    asleep = bounds.expiry > bounds.drop[labels[0]]
    assert asleep.mean() > 0.9
    bounds.follow(0, start + 100.0, 0.5)
    assert not np.any(bounds.expiry > bounds.drop[labels[0]])


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0, 3.0])
def test_gaps_never_exceed_the_true_ones(kind, lam):
    rng = np.random.default_rng(7)
    X, start = table(rng, n=1500, p=13, k=5)
    k, p = start.shape
    zero = np.zeros(p)
    stored = ~np.isnan(X)
    if kind == "dense":
        block, tables = Dense(X, np.nan), dense_tables(zero, start[None], np.array([lam]), zero)
    else:
        rows = sparse.csr_array((X[stored], np.nonzero(stored)), shape=X.shape)
        block = Csr(rows.data, rows.indices, rows.indptr)
        tables = csr_tables(zero, start[None], np.array([lam]))
    labels, bounds = np.full((1, len(X)), -1, np.int32), Bounds(len(X), k)
    _kernels.step(
        block, 0, 0, np.ones(len(X)), tables, np.arange(1), True, labels, zero_stats(1, k, p),
        bounds.expiry, bounds.drop,
    )  # fmt: skip
    filled = np.where(stored, X, 0.0)[:, None]
    near = np.sum(stored[:, None] * (filled - start) ** 2, axis=2)
    distances = np.sort(np.sqrt(near + lam * np.sum(~stored[:, None] * start**2, axis=2)), axis=1)
    true = distances[:, 1] - distances[:, 0]
    assert np.all(bounds.expiry <= true)
    assert np.median(bounds.expiry[true > 0.01] / true[true > 0.01]) > 0.99
