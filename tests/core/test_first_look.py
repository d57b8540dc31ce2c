"""The first look at a table, and rows with their gaps filled, against plain NumPy."""

import numpy as np
import pytest
from kinds import kinds, tables, with_gaps
from places import to_csr

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
        "least": low[judged].min(axis=0, initial=np.inf),
        "most": high[judged].max(axis=0, initial=-np.inf),
        "observed": (~gaps).sum(axis=0),
        "seen": (~gaps).sum(axis=1),
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
    before, found = _core.level(), []
    for level in _core.available_levels():
        _core.set_level(level)
        found.append(_core.first_pass(_core.Table(X, np.nan, weights), 2))
    _core.set_level(before)
    for other in found[1:]:
        for one, two in zip(found[0][:-1], other[:-1], strict=True):
            assert np.array_equal(one, two)


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
        dtype = table.source.dtype
        wanted = expected.astype(dtype)
        out = np.zeros(shape, dtype)
        _core.impute(table, mu, labels, out, 2)
        assert np.array_equal(out, wanted), name
        room = np.zeros((shape[0], shape[1] + 3), dtype)
        _core.impute(table, mu, labels, room[:, : shape[1]], 2)
        assert np.array_equal(room[:, : shape[1]], wanted), name
        assert not room[:, shape[1] :].any()


@pytest.mark.parametrize("name", ["rows", "float32", "apart", "coded"])
def test_impute_works_in_place(name):
    X = with_gaps(60, 11)
    source, code = kinds(X)[name]
    source = source if name == "apart" else source.copy()
    mu = np.random.default_rng(3).normal(size=(2, 11))
    labels = np.zeros(60, np.int32)
    expected = np.where(np.isnan(X), mu[labels], X).astype(source.dtype)
    _core.impute(_core.Table(source, code, np.ones(60)), mu, labels, source, 1)
    assert np.array_equal(source, expected)


def test_content_keys_tell_rows_by_their_values(each_level):
    X = with_gaps(200, 19, seed=7)
    X[10] = X[11]
    X[20, 3], X[21] = 0.0, X[20]
    X[21, 3] = -0.0
    shuffled = X[:, np.random.default_rng(0).permutation(19)]
    keys = _core.content_keys(_core.Table(X, np.nan, np.ones(200)), 1)
    assert keys[10] == keys[11]
    assert keys[20] == keys[21]
    assert len(np.unique(keys)) == 198
    for name, table in (tables(X) | {"shuffled": tables(shuffled)["rows"]}).items():
        assert np.array_equal(_core.content_keys(table, 2), keys), name


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 300, 5000, 70_000])
@pytest.mark.parametrize("levels", [1, 3, 10**6])
def test_content_order_sorts_by_key_and_leaves_equal_rows_as_they_stand(n, levels):
    X = np.random.default_rng(n).integers(0, levels, (n, 1)).astype(float)
    for table in (tables(X)["rows"], tables(X)["csr"]):
        keys = _core.content_keys(table, 1)
        for threads in (1, 2):
            expected = np.argsort(keys, kind="stable")
            assert np.array_equal(_core.content_order(table, threads), expected)


def test_content_keys_are_sums_of_mixed_bits():
    """The numbers stay what they were: the same seed draws the same starts as before."""

    def mixed(bits):
        z = (bits + 1) * 0x9E3779B97F4A7C15 % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    X = with_gaps(5, 6)
    keys = _core.content_keys(_core.Table(to_csr(X), np.nan, np.ones(5)), 1)
    for row, key in zip(X, keys, strict=True):
        bits = row[~np.isnan(row)].view(np.uint64).tolist()
        assert int(key) == sum(map(mixed, bits)) % 2**64
