"""Hartigan's moves in the core, against brute force over partitions."""

import numpy as np
import oracle
import pytest
from inputs import assert_same_bits, at_every_level, starts_of, tables, with_gaps

from mnarkmeans import _core


def best_loss(X, labels, weights, lam, reference, mu):
    mu = oracle.centers_of(X, labels, mu, lam, reference, weights)[0]
    return oracle.loss_of(X, labels, mu, lam, reference, weights)


def move_slowly(X, labels, weights, lam, reference, mu, max_passes, tol):
    """Every move judged by the loss of the whole partition before and after."""
    labels, k, path = labels.copy(), len(mu), []
    now = best_loss(X, labels, weights, lam, reference, mu)
    for _ in range(max_passes):
        before, moved = now, False
        for i in range(len(X)):
            own = labels[i]
            if weights[i] == 0 or np.sum((labels == own) & (weights > 0)) <= 1:
                continue
            losses = np.full(k, np.inf)
            for l in set(range(k)) - {own}:
                labels[i] = l
                losses[l] = best_loss(X, labels, weights, lam, reference, mu)
            labels[i] = own
            if losses.min() < now - 1e-9 * now:
                labels[i], now, moved = losses.argmin(), losses.min(), True
        if not moved:
            break
        path.append(now)
        if before - now <= tol * now:
            break
    return labels, path


def starts_on(X, table, k, lam, weights, *, reference=None, seed=0, count=1, **stopping):
    """Starts as Lloyd's loop would leave them: any partition, its stats and centres."""
    n, p = X.shape
    rng = np.random.default_rng(seed)
    reference = np.zeros(p) if reference is None else reference
    starts = starts_of(
        np.zeros((count, k, p)), lam, n, reference=reference, shift=rng.normal(size=p),
        weights=(False, weights.sum()), **{"max_iter": 100, **stopping},
    )  # fmt: skip
    for r in range(count):
        labels = rng.integers(0, k, n).astype(np.int32)
        labels[:k] = np.arange(k)
        begin, lam = rng.normal(size=(k, p)), starts.lam[r]
        mu = oracle.centers_of(X, labels, begin, lam, reference, weights)[0]
        starts.labels[r], starts.mu[r] = labels, mu
        stats = _core.Stats.zeros(1, k, p)
        _core.add_rows(table, starts.centers(np.array([r])), labels, stats, 1)
        for total, part in zip(starts.stats, stats, strict=True):
            total[r] = part[0]
        starts.paths[r, 0] = oracle.loss_of(X, labels, mu, lam, reference, weights)
        starts.n_iter[r] = 1
    return starts


def moved(X, k, lam, **how):
    """Starts of a table of rows of weight 1 after Hartigan's moves in the first of them."""
    weights = np.ones(len(X))
    table = _core.Table(X, np.nan, weights)
    starts = starts_on(X, table, k, lam, weights, **how)
    _core.hartigan(table, starts, np.array([0]), 1)
    return starts


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("p", "lam"),
    [(9, 0.0), (9, 0.3), (9, 1.0), (9, 7.0), (9, "each"),
     *((p, 0.5) for p in (1, 7, 8, 256, 515))],
)  # fmt: skip
def test_moves_are_those_of_brute_force(p, lam, weighted):
    """For all threads and instruction sets; and where no move helps nothing is touched."""
    X = with_gaps(40, p, seed=1)
    X[:20] = (X[:20] + 3.0).astype(np.float32)
    rng = np.random.default_rng(2)
    weights = rng.choice([0.0, 0.1, 0.7, 1.0, 2.5], 40) if weighted else np.ones(40)
    weights[:3] = 1.0
    lam = rng.choice([0.0, 0.2, 3.0], p) if lam == "each" else np.full(p, lam)
    reference, forms = rng.normal(size=p), tables(X, weights)
    which, ends = np.array([2, 0]), []

    def run(table):
        found = []
        for threads in (1, 2):
            starts = starts_on(X, table, 3, lam, weights, reference=reference, count=3)
            _core.hartigan(table, starts, which, threads)
            arrays = starts.labels, starts.mu, starts.n_iter, starts.paths
            found.append([array.copy() for array in arrays])
            _core.hartigan(table, starts, which, threads)  # where no move helps any more
            assert_same_bits([found[-1][:3], arrays[:3]])
            ends.append(starts)
        return found

    results = [at_every_level(run, table) for table in forms.values()]
    for found in results:
        assert_same_bits(found)
        assert_same_bits([results[0][0][:3], found[0][:3]])
    begun = starts_on(X, forms["rows"], 3, lam, weights, reference=reference, count=3)
    assert np.array_equal(ends[0].labels[1], begun.labels[1])  # was not chosen
    for r in which:
        mu, begin = ends[0].mu[r], (begun.labels[r], weights, lam, reference, begun.mu[r])
        expected, path = move_slowly(X, *begin, 99, 0.0)
        assert np.array_equal(ends[0].labels[r], expected)
        assert ends[0].n_iter[r] == 1 + len(path)
        np.testing.assert_allclose(ends[0].paths[r, 1 : 1 + len(path)], path, rtol=1e-9)
        wanted = oracle.centers_of(X, expected, mu, lam, reference, weights)[0]
        np.testing.assert_allclose(mu, wanted, rtol=1e-12, atol=1e-12)
        sizes = np.bincount(expected, weights, minlength=3)
        for starts in ends:
            np.testing.assert_allclose(starts.stats.sizes[r], sizes, rtol=1e-14)


def test_it_stops_at_max_iter_and_by_tol():
    X = with_gaps(300, 6, seed=4)
    assert moved(X, 6, 0.5, max_iter=3).n_iter[0] == 3
    loose, exact = (moved(X, 6, 0.5, tol=tol) for tol in (0.05, 0.0))
    passes = loose.n_iter[0]
    assert passes < exact.n_iter[0]
    np.testing.assert_allclose(loose.paths[0, :passes], exact.paths[0, :passes], rtol=1e-12)


def test_a_loss_that_all_but_vanishes_keeps_its_digits():
    """Tight clusters mixed up: the loss falls by 18 orders of magnitude."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.array([[0.0, 0.0], [1e3, 0.0], [0.0, 1e3]]), 30, axis=0)
    X = X + 1e-6 * rng.normal(size=X.shape)
    for seed in range(10):
        starts = moved(X, 3, 0.5, seed=seed)
        true = best_loss(X, starts.labels[0], np.ones(90), 0.5, np.zeros(2), starts.mu[0])
        if true < 1e-6:
            break
    assert true < 1e-6
    assert starts.paths[0, starts.n_iter[0] - 1] == pytest.approx(true, rel=1e-6)


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_light_rows_keep_their_digits_when_a_heavy_one_leaves(lam, each_level):
    """Weights from 1e-8 to 1e8: the loss is that of the light rows beside the heavy ones."""
    rng = np.random.default_rng(3)
    X = (1e4 + rng.normal(size=(40, 5))).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.2] = np.nan
    weights = 10.0 ** rng.uniform(-8, 8, 40)
    reference = np.full(5, 1e4)
    for table in tables(X, weights).values():
        for seed in range(6):
            starts = starts_on(X, table, 32, lam, weights, reference=reference, seed=seed)
            _core.hartigan(table, starts, np.array([0]), 1)
            true = best_loss(X, starts.labels[0], weights, lam, reference, starts.mu[0])
            assert starts.paths[0, starts.n_iter[0] - 1] == pytest.approx(true, rel=1e-6)
