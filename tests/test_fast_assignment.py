"""The fast kernels give the labels of the plain float64 loop, exactly, on every input."""

import numpy as np
import pytest
from scipy import sparse

from mnarkmeans import _csr_lanes as csr_lanes
from mnarkmeans import _kernels as kernels
from mnarkmeans import _panel_rows as panel_rows
from mnarkmeans import _panels as panels
from mnarkmeans._data.observed import Csr, Dense
from mnarkmeans._solver.loss import csr_tables, dense_tables


def both(X, centers, lam, shift, reference=0.0, missing=np.nan):
    """Labels (n, R) of the plain kernel and of the panels for centers (R, k, p), and the doubts."""
    groups, k, p = centers.shape
    shift = np.broadcast_to(np.asarray(shift, np.float64), p).copy()
    tables = dense_tables(shift, centers - shift, np.full(groups, lam), reference - shift)
    block = Dense(X, missing)
    plain, fast, raw = np.full((3, groups, len(X)), -7, np.int32)
    rows = np.arange(len(X))
    kernels.assign_by_rows(block, rows, len(X), tables, k, plain)
    kernels.assign_block(block, 0, tables, k, fast)
    tiles = panels.make_tiles(tables, k)
    panel = panel_rows.make_panel(p)
    nearest, gaps = np.empty((groups, panel_rows.MOST_ROWS), np.int32), np.empty(0, np.float32)
    for part in np.split(rows, rows[:: panel_rows.MOST_ROWS])[1:]:
        panels.label_panels(X, missing, part, len(part), shift, tiles, panel, k, nearest, gaps)
        raw[:, part] = nearest[:, : len(part)]
    kept = np.full_like(fast, -7)
    packed = panel_rows.pack(X, missing, shift, tables.filling)
    kernels.assign_block(packed, 0, tables, k, kept)
    np.testing.assert_array_equal(kept, fast)  # panels that are kept give the same
    return plain.T, fast.T, raw.T


def both_csr(X, centers, lam, reference):
    """The same for a CSR matrix; its shift is the reference."""
    groups, k, p = centers.shape
    shift = np.broadcast_to(np.asarray(reference, np.float64), p).copy()
    tables = csr_tables(shift, centers - shift, np.full(groups, lam))
    block = Csr(X.data, X.indices, X.indptr)
    plain, fast, raw = np.full((3, groups, X.shape[0]), -7, np.int32)
    n, rows, gaps = X.shape[0], np.arange(X.shape[0]), np.empty(0, np.float32)
    kernels.assign_by_rows(block, rows, n, tables, k, plain)
    kernels.assign_block(block, 0, tables, k, fast)
    strips = csr_lanes.make_strips(tables.A, tables.B, tables.const)
    csr_lanes.label_csr(X.data, X.indices, X.indptr, rows, n, shift, strips, k, raw, gaps)
    return plain.T, fast.T, raw.T


def data(rng, n, p, share=0.3):
    X = rng.normal(size=(n, p))
    X[rng.random((n, p)) < share] = np.nan
    return X


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_labels_equal_the_plain_ones_for_every_shape(dtype, share):
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, p, k, groups = rng.integers((1, 1, 1, 1), (100, 71, 34, 4))
        X = data(rng, n, p, share).astype(dtype)
        centers = rng.normal(size=(groups, k, p))
        plain, fast, raw = both(X, centers, rng.choice([0.0, 0.5, 1.0, 8.0]), rng.normal(size=p))
        np.testing.assert_array_equal(fast, plain)
        sure = raw != panels.UNSURE
        np.testing.assert_array_equal(raw[sure], plain[sure])


def test_few_labels_are_unsure_on_ordinary_data():
    rng = np.random.default_rng(1)
    _, _, raw = both(data(rng, 5000, 50), rng.normal(size=(1, 10, 50)), 0.5, 0.0)
    assert np.mean(raw == panels.UNSURE) < 0.001
    _, _, wide = both(data(rng, 200, 4000), rng.normal(size=(1, 3, 4000)) / 8, 0.5, 0.0)
    assert np.mean(wide == panels.UNSURE) < 0.02


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ties_go_to_the_lowest_label(dtype):
    rng = np.random.default_rng(2)
    X = np.round(data(rng, 300, 9)).astype(dtype)
    X[:20] = np.nan  # rows that say nothing
    centers = np.round(rng.normal(size=(2, 12, 9)))
    centers[:, 6:] = centers[:, :6]
    plain, fast, _ = both(X, centers, 0.5, 0.0)
    np.testing.assert_array_equal(fast, plain)
    assert fast.max() < 6


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("scale", "offset"),
    [(1.0, 1e3), (1.0, 1e8), (1e-30, 0.0), (1e-44, 0.0), (1e30, 0.0), (1e60, 0.0), (1e-160, 0.0)],
)
def test_any_magnitude(scale, offset, lam):
    """Numbers beyond float32, or lost in its rounding, are told by the plain loop."""
    rng = np.random.default_rng(3)
    X = data(rng, 200, 13) * scale + offset
    centers = rng.normal(size=(1, 7, 13)) * scale + offset
    for shift in (0.0, offset):
        plain, fast, raw = both(X, centers, lam, shift)
        np.testing.assert_array_equal(fast, plain)
        sure = raw != panels.UNSURE
        np.testing.assert_array_equal(raw[sure], plain[sure])


def test_one_huge_value_does_not_mislead_its_neighbours():
    rng = np.random.default_rng(4)
    X = data(rng, 200, 20)
    X[::7, 3] = 1e39
    X[::11, 5] = 1e20
    plain, fast, _ = both(X, rng.normal(size=(1, 9, 20)), 0.5, 0.0)
    np.testing.assert_array_equal(fast, plain)


@pytest.mark.parametrize("lam", [0.7, 1.0])
def test_a_number_may_mark_the_gaps(lam):
    rng = np.random.default_rng(5)
    X = data(rng, 150, 21)
    centers = rng.normal(size=(3, 4, 21))
    _, expected, _ = both(X, centers, lam, 0.3)
    for code in (0.0, -999.0):
        coded = np.where(np.isnan(X), code, X)
        np.testing.assert_array_equal(both(coded, centers, lam, 0.3, missing=code)[1], expected)


def test_read_only_rows_are_accepted():
    rng = np.random.default_rng(6)
    X = data(rng, 40, 10)
    X.setflags(write=False)
    plain, fast, _ = both(X, rng.normal(size=(1, 3, 10)), 0.5, 0.0)
    np.testing.assert_array_equal(fast, plain)


# --- CSR --------------------------------------------------------------------------------------


def csr_data(rng, n, p, share=0.5, dtype=np.float64):
    return sparse.random_array(
        (n, p), density=1 - share, format="csr", rng=rng, dtype=dtype, data_sampler=rng.normal
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_csr_labels_equal_the_plain_ones_for_every_shape(dtype, share):
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, p, k, groups = rng.integers((1, 1, 1, 1), (60, 150, 40, 4))
        X = csr_data(rng, n, p, share).astype(dtype)
        centers = rng.normal(size=(groups, k, p))
        plain, fast, raw = both_csr(X, centers, rng.choice([0.0, 0.5, 1.0, 8.0]), 0.3)
        np.testing.assert_array_equal(fast, plain)
        sure = raw != panels.UNSURE
        np.testing.assert_array_equal(raw[sure], plain[sure])


def test_few_csr_labels_are_unsure_on_ordinary_data():
    rng = np.random.default_rng(1)
    X = csr_data(rng, 1000, 2000, 0.9)
    _, _, raw = both_csr(X, rng.normal(size=(1, 10, 2000)), 0.5, 0.0)
    assert np.mean(raw == panels.UNSURE) < 0.005


@pytest.mark.parametrize("lam", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("scale", [1e-160, 1e-44, 1e-30, 1e18, 1e30, 1e60])
def test_csr_any_magnitude_and_ties(scale, lam):
    rng = np.random.default_rng(3)
    X = csr_data(rng, 200, 13)
    centers = rng.normal(size=(1, 8, 13))
    centers[0, 5] = centers[0, 2]
    for x_scale in (1.0, scale):
        for c_scale in (1.0, scale):
            plain, fast, raw = both_csr(X * x_scale, centers * c_scale, lam, 0.0)
            np.testing.assert_array_equal(fast, plain)
            sure = raw != panels.UNSURE
            np.testing.assert_array_equal(raw[sure], plain[sure])
