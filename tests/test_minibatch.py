"""MiniBatchMNARKMeans: averages that forget nothing, exact in lam, close to the full loss."""

from __future__ import annotations

import numpy as np
import pytest
from backends import grouped_rows
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans


def clusters(n=3000, p=4, k=3, seed=0, spread=5.0):
    return grouped_rows(n, p, k=k, apart=spread, seed=seed)


@pytest.mark.parametrize("lam", [0.0, 0.4, 5.0, np.array([0.0, 0.4, 5.0, 1.0])])
@pytest.mark.parametrize("reference", [0.0, 2.5])
def test_centres_are_the_exact_averages_of_all_batches(lam, reference):
    model = MiniBatchMNARKMeans(3, lam=lam, reference=reference, random_state=0)
    rows, labels = [], []
    for seed in range(6):
        X = clusters(200, seed=seed)
        model.partial_fit(X)
        rows.append(X)
        labels.append(model.labels_)
    X, z = np.vstack(rows), np.concatenate(labels)
    for l in range(3):
        own = X[z == l]
        seen = ~np.isnan(own)
        pull = lam * (~seen).sum(axis=0)
        oracle = (np.nansum(own, axis=0) + pull * reference) / (seen.sum(axis=0) + pull)
        assert_allclose(model.cluster_centers_[l], oracle, rtol=1e-10)


def test_sums_far_from_zero_keep_their_digits():
    X = clusters(1000)
    near = MiniBatchMNARKMeans(3, lam=0.5, init=np.nan_to_num(X[:3]))
    far = MiniBatchMNARKMeans(3, lam=0.5, init=np.nan_to_num(X[:3]) + 2.0**30, reference=2.0**30)
    for part in np.array_split(np.round(X * 1024) / 1024, 5):
        near.partial_fit(part)
        far.partial_fit(part + 2.0**30)
    assert_array_equal(far.labels_, near.labels_)
    assert_allclose(far.cluster_centers_ - 2.0**30, near.cluster_centers_, atol=1e-6)


def test_one_cluster_in_batches_is_the_fit_of_the_whole():
    X = clusters(1000)
    batches = MiniBatchMNARKMeans(1, lam=0.3, reference="min")
    for part in np.array_split(X, 7):
        batches.partial_fit(part)
    whole = MNARKMeans(1, lam=0.3, reference="min").fit(X)
    assert_allclose(batches.reference_, whole.reference_)
    assert_allclose(batches.cluster_centers_, whole.cluster_centers_, rtol=1e-10)


def test_sparse_and_dense_batches_may_alternate():
    X = clusters(900)
    dense, mixed = (MiniBatchMNARKMeans(3, lam=0.5, random_state=0) for _ in range(2))
    for number, part in enumerate(np.array_split(X, 6)):
        dense.partial_fit(part)
        mixed.partial_fit(sparse.csr_array(np.nan_to_num(part)) if number % 2 else part)
    assert_allclose(mixed.cluster_centers_, dense.cluster_centers_, rtol=1e-9)


def test_weight_two_is_the_row_twice():
    X = clusters(400)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    options = dict(lam=0.5, init=np.nan_to_num(X[:3]), random_state=0)
    weighted = MiniBatchMNARKMeans(3, **options).partial_fit(X, sample_weight=weights)
    repeated = MiniBatchMNARKMeans(3, **options).partial_fit(np.repeat(X, weights, axis=0))
    assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse", "single"])
def test_fit_comes_close_to_the_full_loss(kind):
    X = clusters(8000, p=6, k=5)
    full = MNARKMeans(5, lam=0.5, random_state=0, n_init=3, algorithm="lloyd").fit(X)
    if kind == "sparse":
        X = sparse.csr_array(np.nan_to_num(X))
    elif kind == "single":
        X = X.astype(np.float32)
    mini = MiniBatchMNARKMeans(5, lam=0.5, batch_size=500, random_state=0).fit(X)
    assert mini.inertia_ <= 1.02 * full.inertia_
    assert mini.inertia_ == pytest.approx(-mini.score(X), rel=1e-6)
    assert_array_equal(mini.predict(X), mini.labels_)
    assert mini.cluster_centers_.dtype == X.dtype
    assert len(mini.loss_path_) == mini.n_iter_ < 1000


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_batches_begin_where_the_best_of_the_starts_ended(init):
    X = clusters(500, k=8, spread=2.0)
    options = dict(lam=0.5, init=init, n_init=10, max_iter=1, batch_size=500, random_state=0)
    model = MiniBatchMNARKMeans(8, **options).fit(X)
    assert len(model.start_losses_) == 10
    assert model.inertia_ <= 1.01 * model.start_losses_.min()


def test_a_starved_centre_moves_to_where_rows_are():
    X = clusters(4000, spread=20.0)
    start = np.nan_to_num(X[:1]) + np.array([[0.0], [1e4], [2e4]])  # two centres nobody is close to
    options = dict(lam=0.5, batch_size=200, random_state=0, tol=0.0, max_iter=100)
    fed = MiniBatchMNARKMeans(3, init=start, **options).fit(X)
    assert np.bincount(fed.labels_, minlength=3).min() > 0.05 * len(X)
    with pytest.warns(UserWarning, match="distinct clusters"):
        left = MiniBatchMNARKMeans(3, init=start, reassignment_ratio=0.0, **options).fit(X)
    assert fed.inertia_ < 0.5 * left.inertia_


def test_a_small_group_is_not_starved():
    """A centre is, with fewer rows than reassignment_ratio (0.01) of what it would have of all."""
    rng = np.random.default_rng(0)
    group = (np.arange(3000) % 40 == 0) * 30.0
    X = rng.normal(size=(3000, 2)) + group[:, None] + 3.0 * rng.integers(0, 3, size=(3000, 1))
    options = dict(lam=0.5, init=[[0.0, 0.0], [3.0, 3.0], [6.0, 6.0], [33.0, 33.0]], tol=0.0,
                   batch_size=200, max_iter=30, random_state=0)  # fmt: skip
    some = [MiniBatchMNARKMeans(4, **options, reassignment_ratio=r).fit(X) for r in (0.0, 0.01)]
    assert_array_equal(some[1].cluster_centers_, some[0].cluster_centers_)


def test_a_starved_centre_never_moves_to_a_row_of_no_weight_or_next_to_none():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(220, 2)) + 8.0 * rng.integers(0, 2, size=(220, 1))
    weights = np.ones(220)
    X[200:], weights[200:210], weights[210:] = 1e4, 0.0, 1e-14
    start = np.array([[0.0, 0.0], [8.0, 8.0], [-1e6, -1e6]])
    model = MiniBatchMNARKMeans(3, lam=0.5, init=start, random_state=0)
    for _ in range(15):
        model.partial_fit(X, sample_weight=weights)
    assert np.abs(model.cluster_centers_).max() < 20.0


def test_later_batches_may_be_small_or_empty_of_values():
    model = MiniBatchMNARKMeans(3, lam=0.5, random_state=0).partial_fit(clusters(300))
    before = model.cluster_centers_.copy()
    model.partial_fit(np.full((2, 4), np.nan))
    assert_allclose(model.cluster_centers_, before)
    model.partial_fit(clusters(1))
    assert model.n_iter_ == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be"),
        ({"n_clusters": 80}, "fewer clusters"),
        ({"lam": [1.0, 2.0]}, "lam must be one number or one per feature"),
    ],
)
def test_mistakes(options, message):
    model = MiniBatchMNARKMeans(**{"lam": 1.0} | options)
    for fit in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            fit(clusters(50))


@pytest.mark.parametrize(("init", "n_batches"), [("k-means++", 3), ([[-40, -30], [50, 30]], 4)])
def test_a_fit_ends_after_three_batches_that_change_nothing(init, n_batches):
    X = np.repeat([[0.0, 0.0], [6.0, 6.0]], 50, axis=0)
    X += np.random.default_rng(0).normal(size=X.shape)  # one batch: only the first step moves
    assert MiniBatchMNARKMeans(2, lam=0.5, init=init, random_state=0).fit(X).n_iter_ == n_batches
