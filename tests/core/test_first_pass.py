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
def test_first_pass_tells_what_is_there(shape, weighted, each_level):
    X = with_gaps(*shape, seed=shape[0])
    weights = np.ones(len(X))
    if weighted:
        weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(X))
    expected = look(X, weights)
    first = None
    for name, table in tables(X, weights).items():
        for threads in (1, 2):
            found = _core.first_pass(table, threads)
            assert found.infinite == -1
            first = first or found
            for field, value in expected.items():
                np.testing.assert_allclose(
                    getattr(found, field), value, rtol=1e-12, atol=1e-12, err_msg=f"{name} {field}"
                )
                assert np.array_equal(getattr(found, field), getattr(first, field)), (name, field)


def test_first_pass_gives_the_same_bits_at_every_level():
    X = with_gaps(30_000, 21, seed=5)
    weights = np.random.default_rng(2).random(len(X))
    table = _core.Table(X, np.nan, weights)
    fields = [*look(X, weights)]
    assert_same_bits(at_every_level(lambda: [attrgetter(*fields)(_core.first_pass(table, 2))]))


@pytest.mark.parametrize("row", [0, 40, 29_999])
@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
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


def test_fill_rows_fills_the_gaps(each_level):
    X = with_gaps(50, 13)
    fill = np.arange(13.0)
    rows = np.array([4, 0, 4, 49])
    expected = np.where(np.isnan(X), fill, X)[rows]
    for name, table in tables(X).items():
        assert np.array_equal(_core.fill_rows(table, rows, fill), expected), name


@pytest.mark.parametrize("shape", [(1, 1), (40, 9), (30_000, 20)])
def test_impute_fills_gaps_from_the_centre_of_the_label(shape, each_level):
    X = with_gaps(*shape)
    mu = np.random.default_rng(3).normal(size=(4, shape[1]))
    labels = np.random.default_rng(4).integers(0, 4, shape[0]).astype(np.int32)
    expected = np.where(np.isnan(X), mu[labels], X)
    for name, table in tables(X).items():
        filled = _core.impute(table, mu, labels, 2)
        assert filled.dtype == table.source.dtype
        assert np.array_equal(filled, expected.astype(filled.dtype)), name
