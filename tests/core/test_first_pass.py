"""The first pass over a table, and rows with their gaps filled, against plain NumPy."""

from operator import attrgetter

import numpy as np
import pytest
from inputs import assert_same_bits, at_every_level, tables, with_gaps

from mnarkmeans import _core

SHAPES = [(1, 1), (3, 7), (33, 8), (70, 50), (40, 65), (20_000, 30), (1, 3000)]


def look(X, weights):
    """What a first look should say."""
    gaps, judged = np.isnan(X), weights > 0
    shown = np.where(gaps, 0.0, X)
    low, high = np.where(gaps, np.inf, X), np.where(gaps, -np.inf, X)
    return {
        "counts": weights @ ~gaps,
        "sums": weights @ shown,
        "lowest": low[judged].min(axis=0, initial=np.inf),
        "highest": high[judged].max(axis=0, initial=-np.inf),
        "observed": (~gaps).sum(axis=0),
        "row_counts": (~gaps).sum(axis=1),
    }


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_first_pass_tells_what_is_there(shape, weighted):
    """The same bits in every form of a table, for all threads and instruction sets."""
    X, rng = with_gaps(*shape, seed=shape[0]), np.random.default_rng(1)
    weights = rng.random(len(X)) * rng.choice([0.0, 1.0], len(X)) if weighted else np.ones(len(X))
    forms, expected = tables(X, weights).values(), look(X, weights)
    fields = attrgetter(*expected, "infinite")
    found = at_every_level(
        lambda: [fields(_core.first_pass(table, threads)) for table in forms for threads in (1, 2)]
    )
    assert_same_bits(found)
    for value, wanted in zip(found[0], (*expected.values(), -1), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("row", "weight", "value"), [(0, 1.0, -np.inf), (40, 0.0, np.inf), (29_999, 1.0, np.inf)]
)
def test_first_pass_finds_the_first_infinite_row(row, weight, value, each_level):
    X = with_gaps(30_000, 20)
    weights = np.ones(len(X))
    weights[row] = weight
    X[row, 3] = value
    X[-1, 5] = np.inf
    for name, table in tables(X, weights).items():
        assert _core.first_pass(table, 2).infinite == row, name


def test_first_pass_takes_sums_that_overflow_for_finite_values():
    X = np.full((10, 2), 1.7e308)
    found = _core.first_pass(_core.Table(X, np.nan, np.ones(10)), 1)
    assert found.infinite == -1
    assert np.isinf(found.sums).all()


@pytest.mark.parametrize("shape", [(1, 1), (50, 13), (30_000, 20)])
def test_gaps_are_filled_by_feature_or_from_the_centre_of_the_label(shape, each_level):
    X, rng = with_gaps(*shape), np.random.default_rng(3)
    n, p = shape
    fill, mu = rng.normal(size=p), rng.normal(size=(4, p))
    rows, labels = rng.integers(n, size=5), rng.integers(4, size=n).astype(np.int32)
    by_feature, by_label = (np.where(np.isnan(X), values, X) for values in (fill, mu[labels]))
    for name, table in tables(X).items():
        assert np.array_equal(_core.fill_rows(table, rows, fill), by_feature[rows]), name
        filled = _core.impute(table, mu, labels, 2)
        assert filled.dtype == table.source.dtype
        assert np.array_equal(filled, by_label.astype(filled.dtype)), name
