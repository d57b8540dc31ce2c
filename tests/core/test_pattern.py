"""magnitudes.h, shares.h, around.h and em.h against slow, obvious twins, at every level."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_ndtr

from mnarkmeans import _core
from mnarkmeans._core.likelihood import hidden_rows, lost_around
from mnarkmeans._core.pattern import distances_from, fit_shares
from mnarkmeans._core.rounds import Until
from mnarkmeans._penalty.common import Problem
from mnarkmeans._penalty.mechanisms import AROUND
from mnarkmeans._penalty.rows import Rows, Start
from mnarkmeans._validation import observe


def kinds(X, weights):
    """The same table as the core may meet it."""
    seen = ~np.isnan(X)
    coded = np.asfortranarray(np.where(seen, X, -99.0).astype(X.dtype))
    yield _core.Table(X, np.nan, weights)
    yield _core.Table(coded, -99.0, weights)
    yield _core.Table(np.repeat(X, 2, axis=1)[:, ::2], np.nan, weights)
    yield _core.Table(sparse.csr_array(np.where(seen, X, 0.0)), np.nan, weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_from_the_reference_are_collected(dtype, each_level):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 7)).astype(dtype)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 2] = 1.5
    X[:, 5] = np.nan
    weights, reference = rng.random(40), np.linspace(-1.0, 1.0, 7)
    has_gaps, bins = np.arange(7) != 2, 12
    away, seen = X - reference, ~np.isnan(X)
    square, w = np.where(seen, away**2, 0.0), weights[:, None] * seen
    total = w.sum()
    u = np.maximum(square / ((w * square).sum() / total), 1e-2)[seen & has_gaps]
    logs, w_of_u = np.log(u), np.broadcast_to(weights[:, None], X.shape)[seen & has_gaps]
    edges = np.linspace(logs.min(), logs.max() + 1e-9, bins + 1)
    for table in kinds(X, weights):
        found = distances_from(table, reference, has_gaps, bins, 1e-2)
        np.testing.assert_array_equal(found.per_row, seen.sum(axis=1))
        least = np.where(seen, np.abs(away), np.inf).min(axis=0)
        np.testing.assert_array_equal(found.least, least)
        assert found.total == pytest.approx(total)
        assert found.square == pytest.approx((w * square).sum())
        assert found.below == pytest.approx(w[seen & (away < 0)].sum())
        np.testing.assert_allclose(found.weights, np.histogram(logs, edges, weights=w_of_u)[0])
        by_log = np.histogram(logs, edges, weights=w_of_u * logs)[0]
        np.testing.assert_allclose(found.logs, by_log, atol=1e-12)


def test_an_empty_table_has_no_distances(each_level):
    table = _core.Table(np.full((3, 2), np.nan), np.nan, np.ones(3))
    found = distances_from(table, np.zeros(2), np.ones(2, bool), 4, 1e-12)
    assert (found.total, found.square, found.below, found.weights.sum()) == (0.0,) * 4
    assert np.isinf(found.least).all()


def test_the_normal_tails_of_a_threshold_are_those_of_scipy(each_level):
    mean = np.concatenate([np.linspace(0.0, 12.0, 400), [30.0, 1e3]])[None]
    p = mean.shape[1]
    log_p = lost_around(mean, np.ones((1, 1)), np.ones(p, bool), tau=np.full(p, 2.0))[0]
    near, far = log_ndtr(2.0 - np.maximum(mean, 1e-4)), log_ndtr(-2.0 - np.maximum(mean, 1e-4))
    expected = near + np.log(-np.expm1(far - near))
    np.testing.assert_allclose(log_p, np.maximum(expected, -600.0), rtol=1e-11, atol=1e-13)


def test_features_without_gaps_lose_nothing(each_level):
    mean, variance = np.array([[1.0, 2.0]]), np.array([[0.5, 0.7]])
    for curve in ({"t": 1.0, "c": 0.5, "r": 1e-6}, {"tau": np.ones(2)}):
        lost = lost_around(mean, variance, np.array([True, False]), **curve)
        assert lost[0, 0, 0] < 0.0
        np.testing.assert_array_equal(lost[:, 0, 1], [0.0, 2.0, 0.7])


def test_rows_that_lose_everything(each_level):
    share, parts = hidden_rows(np.array([0.25, 0.75]), np.log([[0.5, 0.1], [0.2, 0.4]]))
    np.testing.assert_allclose(parts, [0.25 * 0.05, 0.75 * 0.08])
    assert share == pytest.approx(parts.sum())
    share, parts = hidden_rows(np.array([0.5, 0.5]), np.zeros((2, 3)))
    assert share == pytest.approx(0.95)
    np.testing.assert_allclose(parts, 0.475)


def test_shares_are_fitted_where_the_gradient_vanishes(each_level):
    rng = np.random.default_rng(1)
    gaps, observed = rng.integers(0, 30, size=(2, 4, 3, 11)).astype(float)
    z = rng.normal(size=(4, 3, 11))
    g, n = gaps + 0.25, gaps + observed + 0.5
    found = fit_shares(gaps, observed, z, 12)
    logits = found.alphas[:, None] - found.slopes[:, None, None] * z
    off = g - n / (1.0 + np.exp(-logits))
    np.testing.assert_allclose(off.sum(axis=1), 0.0, atol=1e-2)
    np.testing.assert_allclose((off * z).sum(axis=(1, 2)), 0.0, atol=1e-2)
    value = g * logits - n * np.logaddexp(0.0, logits)
    np.testing.assert_allclose(found.values, value.sum(axis=(1, 2)))
    np.testing.assert_allclose(found.each, value.sum(axis=1))
    flat = fit_shares(gaps, observed, z, 0)
    np.testing.assert_array_equal(flat.slopes, 0.0)
    np.testing.assert_allclose(flat.alphas, np.log(g.sum(axis=1) / (n - g).sum(axis=1)))


@pytest.mark.parametrize("family", AROUND)
def test_rounds_are_the_same_bits_for_all_threads_and_instruction_sets(family):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(9000, 70)) + 2.0 * rng.integers(2, size=(9000, 1))
    X[rng.random(X.shape) < np.exp(-(X**2))] = np.nan
    observed = observe(X)
    fit = Start(np.repeat([[0.0], [2.0]], 70, axis=1), 0.5)
    found, before = [], _core.level()
    for level in _core.available_levels():
        _core.set_level(level)
        for threads in (1, 3):
            rows = Rows(observed, threads)
            state = Problem(rows).begin(fit, family, Until(4, 0.0), equal_sizes=False)
            found.append(np.append(state.looked.whole, state.bound))
    _core.set_level(before)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
