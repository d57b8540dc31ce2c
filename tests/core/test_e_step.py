"""The E-step of mixtures (mixture.h) against a slow twin, at every level."""

import contextlib

import numpy as np
import pytest
from backends import chunks
from inputs import assert_same_bits, at_every_level, tables
from scipy.special import logsumexp
from scipy.stats import t as student_t

from mnarkmeans import _core
from mnarkmeans._core import Mixture, soft_rows, soft_sums


def problem(n, p, k, seed=0, freedom=0.0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, p)) + 3.0).astype(np.float32).astype(np.float64)
    X[rng.random((n, p)) < 0.3] = np.nan
    weights = rng.random(n)
    weights[: n // 10] = 0.0
    mixture = Mixture(
        np.log(rng.dirichlet(np.ones(k))),
        rng.normal(size=(k, p)) + 3.0,
        rng.random((k, p)) + 0.3,
        -rng.random((k, p)),
        -rng.random((k, p)),
        freedom,
    )
    return X, weights, mixture


def by_definition(X, weights, mixture, shift):
    """The formulas in mixture.h, one array for each."""
    log_weight, mean, variance, log_missing, log_observed, freedom = mixture
    seen = ~np.isnan(X)
    away = (X[:, None] - mean) ** 2 / variance
    if freedom:
        density = student_t.logpdf(X[:, None], freedom, mean, np.sqrt(variance))
        pull = np.where(seen[:, None], (freedom + 1) / (freedom + away), 0.0)
    else:
        density = -0.5 * (away + np.log(2 * np.pi * variance))
        pull = np.repeat(seen[:, None], len(mean), axis=1)
    parts = np.where(seen[:, None], density + log_observed, log_missing)
    logits = parts.sum(axis=2) + log_weight
    rows = logsumexp(logits, axis=1)
    memberships = np.exp(logits - rows[:, None])
    soft, values = memberships * weights[:, None], np.where(seen, X - shift, 0.0)
    pulled = soft[:, :, None] * pull
    sums = (
        soft.sum(axis=0), (pulled * values[:, None]).sum(axis=0), soft.T @ seen,
        (pulled * values[:, None] ** 2).sum(axis=0), weights @ rows,
    )  # fmt: skip
    if freedom:
        sums = (*sums, pulled.sum(axis=0))
    return sums, (memberships, rows, logits.argmax(axis=1))


@pytest.mark.parametrize("entries", [100, None])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (130, 5, 3), (300, 70, 9), (129, 200, 2), (700, 8, 17)]
)
@pytest.mark.parametrize("freedom", [0.0, 1.5, 7.0])
def test_an_e_step_is_its_formula(shape, freedom, entries):
    """And the same bits for any number of threads and every instruction set, also in chunks."""
    X, weights, mixture = problem(*shape, freedom=freedom)
    shift = np.full(shape[1], 2.5)
    sums, rows = by_definition(X, weights, mixture, shift)

    def run(table):
        return [
            (*soft_sums(table, mixture, shift, threads)[: len(sums)],
             *soft_rows(table, mixture, threads))
            for threads in (1, 2, 3)
        ]  # fmt: skip

    with chunks(entries) if entries else contextlib.nullcontext():
        forms = tables(X, weights).values()
    for table in forms:
        found = at_every_level(run, table)
        assert_same_bits(found)
        for value, expected in zip(found[0], (*sums, *rows), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("freedom", [0.0, 3.0])
def test_far_away_rows_and_tiny_variances_stay_finite(freedom, each_level):
    X = np.array([[1e8], [-1e8], [0.0], [np.nan]])
    mixture = Mixture(
        np.log([0.5, 0.5]), np.array([[0.0], [1.0]]), np.full((2, 1), 1e-12),
        np.full((2, 1), -1e5), None, freedom,
    )  # fmt: skip
    memberships, rows, labels = soft_rows(_core.Table(X, np.nan, np.ones(4)), mixture, 1)
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(memberships.sum(axis=1), 1.0)
    np.testing.assert_array_equal(labels[:3], [1, 0, 0])
