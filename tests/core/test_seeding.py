"""Greedy k-means++ in the core, against a plain loop over filled rows."""

import contextlib

import numpy as np
import pytest
from backends import chunks, to_csr
from inputs import tables, with_gaps

from mnarkmeans import _core


def means_of(X, weights):
    seen = _core.first_pass(_core.Table(X, np.nan, weights), 1)
    return seen.sums / np.where(seen.counts > 0, seen.counts, 1.0)


def draw(mass, u):
    reached = np.cumsum(mass)
    beyond = (reached > u * reached[-1]) | (reached == reached[-1])
    return np.argmax(beyond)


def seed(X, weights, means, draws):
    """The rule, one start at a time."""
    filled = np.where(np.isnan(X), means, X)
    centers = np.empty((*draws.shape[:2], X.shape[1]))
    for r, own in enumerate(draws):
        nearest = np.ones(len(X))
        for l, shares in enumerate(own):
            mass = weights * nearest
            mass = mass if mass.sum() > 0 else weights
            rows = [draw(mass, u) for u in (shares[:1] if l == 0 else shares)]
            before = np.inf if l == 0 else nearest
            lowered = [np.minimum(before, ((filled - filled[i]) ** 2).sum(axis=1)) for i in rows]
            best = np.argmin([weights @ low for low in lowered])
            nearest = lowered[best]
            centers[r, l] = filled[rows[best]]
    return centers


def problem(n, p, k, n_starts, trials, weighted=False):
    X = with_gaps(n, p)
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weighted else np.ones(n)
    weights[0] = 1.0
    return X, weights, means_of(X, weights), rng.random((n_starts, k, trials))


def check_rule(X, weights, means, draws):
    expected = seed(X, weights, means, draws)
    for name, table in tables(X, weights).items():
        for threads in (1, 2) if name in ("rows", "csr") else (2,):
            found = _core.seed(table, means, draws, threads)
            assert np.array_equal(found, expected), (name, threads)
    return expected


WHOLE = [
    (1, 1, 1, 1, 2), (5, 3, 5, 3, 3), (300, 50, 3, 10, 3), (300, 50, 3, 37, 3), (129, 7, 10, 5, 4),
    (64, 130, 4, 9, 3), (65, 9, 1, 3, 2),
]  # fmt: skip
IN_CHUNKS = [(2_000, 30, 6, 3, 3), (4_000, 15, 3, 17, 3)]


@pytest.mark.parametrize("case", WHOLE + IN_CHUNKS)
@pytest.mark.parametrize("weighted", [False, True])
def test_seeding_follows_the_rule(case, weighted, each_level):
    with chunks(10_000) if case in IN_CHUNKS else contextlib.nullcontext():
        check_rule(*problem(*case, weighted=weighted))


def test_where_all_rows_are_taken_the_weights_alone_count(each_level):
    X = np.repeat([[0.0, 1.0], [np.nan, 5.0]], 4, axis=0)
    weights = np.array([1.0, 0, 2, 3, 1, 1, 0.5, 4])
    draws = np.random.default_rng(0).random((20, 5, 3))
    check_rule(X, weights, means_of(X, weights), draws)


def test_rows_that_nearly_agree_are_told_apart(each_level):
    """Two tight pairs far apart: what separates a pair is not rounding."""
    X = np.array([[1e8], [1e8 + 1e-4], [-1e8], [-1e8 - 1e-4], [1e8], [-1e8]])
    weights, draws = np.ones(6), np.random.default_rng(0).random((50, 4, 3))
    expected = seed(X, weights, np.zeros(1), draws)
    assert len(np.unique(expected[0])) == 4
    for form in (X, to_csr(X)):
        table = _core.Table(form, np.nan, weights)
        assert np.array_equal(_core.seed(table, np.zeros(1), draws, 1), expected)
