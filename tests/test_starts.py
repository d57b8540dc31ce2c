"""Starting centres: the same for every form of the same table."""

import numpy as np
import pytest
from places import to_csr
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans, _core
from mnarkmeans._solver import (
    STARTS,
    run_starts,
    run_starts_of_each,
    starts_of_each,
)
from mnarkmeans._validation import observe


def table(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = (100.0 + 3.0 * rng.normal(size=(n, p))).astype(np.float32).astype(np.float64)
    X[rng.random((n, p)) < 0.3] = np.nan
    return X


def draw(init, X, n_starts=7, k=4, threads=1, **how):
    rng = np.random.RandomState(0)
    return STARTS[init](observe(X, **how), n_starts, k, rng, threads)


@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("shape", [(300, 50), (20_000, 40)], ids=["small", "slabs"])
def test_every_form_of_a_table_draws_the_same_starts(init, shape):
    X = table(*shape)
    expected = draw(init, X)
    assert len(np.unique(expected, axis=0)) > 1
    coded = np.where(np.isnan(X), -1.0, X)
    for same in (X.astype(np.float32), np.asfortranarray(X), to_csr(X)):
        assert np.array_equal(draw(init, same), expected)
        assert np.array_equal(draw(init, same, threads=2), expected)
    assert np.array_equal(draw(init, to_csr(X.astype(np.float32))), expected)
    assert np.array_equal(draw(init, coded, missing_values=-1.0), expected)


@pytest.mark.parametrize("init", STARTS)
def test_another_precision_or_a_jitter_draws_the_same_rows(init):
    rng = np.random.default_rng(1)
    X = 25.0 + rng.normal(size=(2000, 12)) + 4.0 * rng.integers(0, 3, size=(2000, 1))
    X[rng.random(X.shape) < 0.2] = np.nan
    expected = draw(init, X)
    for near in (X.astype(np.float32), X + rng.uniform(-1e-9, 1e-9, X.shape), X * (1 + 1e-12)):
        np.testing.assert_allclose(draw(init, near), expected, rtol=1e-6)


@pytest.mark.parametrize("init", STARTS)
def test_starts_are_rows_filled_with_the_means(init):
    X = table(200, 8)
    filled = np.where(np.isnan(X), observe(X).means, X)
    for centers in draw(init, X):
        assert len(np.unique(centers, axis=0)) == 4
        for center in centers:
            assert (filled == center).all(axis=1).any()


@pytest.mark.parametrize("init", STARTS)
def test_rows_without_weight_are_never_drawn(init):
    X, weights = table(100, 5), np.ones(100)
    weights[20:] = 0.0
    filled = np.where(np.isnan(X), observe(X, sample_weight=weights).means, X)
    for center in draw(init, X, n_starts=20, k=6, sample_weight=weights).reshape(-1, 5):
        assert (filled[:20] == center).all(axis=1).any()


@pytest.mark.parametrize("init", STARTS)
def test_more_centres_than_distinct_rows_repeat_some(init):
    X = np.repeat([[0.0, 1.0], [2.0, np.nan]], 5, axis=0)
    for centers in draw(init, X, n_starts=20, k=8):
        assert len(np.unique(centers, axis=0)) == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_a_start_does_not_depend_on_how_many_there_are(threads, each_level):
    X = table(120, 9)
    many = draw("k-means++", X, n_starts=100, threads=threads)
    assert np.array_equal(many[:7], draw("k-means++", X))
    assert np.array_equal(many, draw("k-means++", to_csr(X), n_starts=100))


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
def test_a_start_ends_where_it_would_have_ended_alone(k, each_level):
    """Whatever lam the others have: with lam = 1 alone, gaps would be filled beforehand."""
    observed = observe(table(150, 70) - 100.0)
    centers = STARTS["k-means++"](observed, 9, k, np.random.RandomState(0), 1)
    lams = np.array([1.0, 1.0, 1.0, 1.0, 0.5, 2.0, 1.0, 0.0, 1.0])
    how = dict(max_iter=30, tol=0.0)
    together = run_starts(observed, centers, lams[:, None], threads=2, **how)
    for r, lam in enumerate(lams):
        alone = run_starts(observed, centers[[r]], lam, threads=1, **how)
        assert np.array_equal(together.centers[r], alone.centers[0])
        assert np.array_equal(together.path(r), alone.path(0))


@pytest.mark.parametrize("one_slab", [200, 1 << 19])
@pytest.mark.parametrize("form", [np.asarray, to_csr])
def test_starts_that_part_some_of_the_rows_alike_end_as_each_would_alone(
    form, one_slab, each_level, monkeypatch
):
    """Their sums are shared only while no row has told them apart."""
    monkeypatch.setattr(_core, "ENTRIES_OF_ONE_SLAB", one_slab)
    monkeypatch.setattr(_core, "ENTRIES_PER_SLAB", 400 * 9)
    X = np.where(np.isnan(table(800, 9)), 100.0, table(800, 9)) - 97.0
    X[260:500, ::2] = np.nan  # rows in the middle; without gaps lam makes no difference
    observed = observe(form(X))
    centers = STARTS["k-means++"](observed, 2, 3, np.random.RandomState(0), 1)
    centers, lams = np.repeat(centers, 4, axis=0), np.tile([0.0, 0.01, 0.5, 3.0], 2)
    for max_iter in (1, 20):
        how = dict(max_iter=max_iter, tol=0.0, threads=1)
        together = run_starts(observed, centers, lams[:, None], **how)
        for r, lam in enumerate(lams):
            alone = run_starts(observed, centers[[r]], lam, **how)
            assert np.array_equal(together.centers[r], alone.centers[0])
            assert np.array_equal(together.path(r), alone.path(0))


@pytest.mark.parametrize("large", [False, True])
def test_tables_that_are_solved_together_end_as_each_would_alone(large, each_level, monkeypatch):
    """Small ones in one call of the core, others one after the other."""
    if large:
        monkeypatch.setattr(_core, "ENTRIES_OF_ONE_SLAB", 200)
    tables = [observe(form(table(n, 9) - 3.0)) for n in (40, 130) for form in (np.asarray, to_csr)]
    centers = [STARTS["k-means++"](own, 9, 3, np.random.RandomState(0), 1) for own in tables]
    lams = [np.linspace(0.0, own.n_rows / 50, 9) for own in tables]
    how = dict(max_iter=30, tol=1e-5)
    for threads in (1, 2):
        together = run_starts_of_each(
            tables, centers, [lam[:, None] for lam in lams], threads=threads, **how
        )
        for own, begin, lam, found in zip(tables, centers, lams, together, strict=True):
            alone = run_starts(own, begin, lam[:, None], threads=1, **how)
            assert np.array_equal(found.centers, alone.centers)
            assert np.array_equal(found.n_iter, alone.n_iter)
            for r in range(9):
                assert np.array_equal(found.path(r), alone.path(r))


@pytest.mark.parametrize("init", list(STARTS))
def test_starts_of_several_tables_are_those_of_each(init, each_level):
    tables, seeds = [observe(table(n, 5)) for n in (30, 60)], [4, 5]
    together = starts_of_each(init, tables, 6, 3, seeds, threads=2)
    for own, seed, found in zip(tables, seeds, together, strict=True):
        assert np.array_equal(found, STARTS[init](own, 6, 3, np.random.RandomState(seed), 1))


def wide_table():
    """Six groups of unequal size among many features, half of the values missing."""
    rng = np.random.default_rng(0)
    groups = rng.choice(6, 600, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
    centers = np.where(rng.random((6, 400)) < 0.1, rng.normal(0, 2, (6, 400)), 0.0)
    X = 3.0 + centers[groups] + rng.normal(0, 1.2, (600, 400))
    X[rng.random(X.shape) < 0.5] = np.nan
    return X, groups


def test_seeds_agree_on_a_wide_table():
    X, groups = wide_table()
    fits = [MNARKMeans(6, lam=0.2, random_state=seed).fit(X) for seed in range(4)]
    for fit in fits:
        assert adjusted_rand_score(fits[0].labels_, fit.labels_) > 0.98
        assert adjusted_rand_score(groups, fit.labels_) > 0.95


@pytest.mark.parametrize("as_table", [np.asarray, to_csr])
def test_a_wide_table_gives_the_same_bits_for_any_number_of_threads(as_table):
    X = as_table(wide_table()[0])
    one, two = (MNARKMeans(6, lam=0.2, random_state=0, n_jobs=n).fit(X) for n in (1, 2))
    assert one.inertia_ == two.inertia_
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
