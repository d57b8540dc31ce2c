"""Starting centres: the same for every form of the same table."""

import numpy as np
import pytest
from places import to_csr

from mnarkmeans._data.validation import observe
from mnarkmeans._solver.solve import run_starts
from mnarkmeans._solver.starts import STARTS


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
    together = run_starts(observed, centers, lams, threads=2, **how)
    for r, lam in enumerate(lams):
        alone = run_starts(observed, centers[[r]], np.array([lam]), threads=1, **how)
        assert np.array_equal(together.centers[r], alone.centers[0])
        assert np.array_equal(together.paths[r], alone.paths[0])
