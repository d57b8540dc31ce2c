"""mnarkmeans.dask and what cannot be right: the block, the parameter, the weights are named."""

import re

import numpy as np
import pytest
from places import grouped_rows
from scipy import sparse

import mnarkmeans

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from mnarkmeans.dask import MNARKMeans  # noqa: E402 (needs dask)

K = 4


@pytest.fixture(scope="module")
def X():
    return grouped_rows(600, 5)


def blocks(*parts):
    return da.concatenate(
        [
            da.from_delayed(
                dask.delayed(part, traverse=False), (part.shape[0], 3), meta=np.empty((0, 0))
            )
            for part in parts
        ]
    )


def test_a_bad_block_is_named():
    good, bad = np.ones((4, 3)), np.ones((4, 3))
    bad[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"Block 2 of 3 .* infinity: inf in row 2, column 1"):
        MNARKMeans(2, lam=1.0).fit(blocks(good, good, bad))
    with pytest.raises(ValueError, match=r"Block 1 of 2 .*expected 3 features .* got 2"):
        MNARKMeans(2, lam=1.0).fit(blocks(good, np.ones((4, 2))))
    with pytest.raises(ValueError, match=r"Block 1 is sparse and block 0 is dense"):
        MNARKMeans(2, lam=1.0).fit(blocks(good, sparse.csr_array(good[:3])))


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({}, np.ones(9), "Expected 2D array, got 1D array"),
        ({"init": "best"}, None, "'k-means||', 'k-means++', 'random' or an array; got 'best'"),
        ({"persist": "yes"}, None, "persist must be"),
        ({"resume": True}, None, "needs checkpoint"),
        ({"n_clusters": 50}, None, "Ask for fewer clusters"),
        ({"lam": -1.0}, None, "lam must be"),
    ],
)
def test_mistakes_are_named(options, X, message):
    table = da.ones((10, 2), chunks=5) if X is None else X
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        MNARKMeans(**{"n_clusters": 2, "lam": 1.0, **options}).fit(table)


def test_weights_that_do_not_fit(X):
    table = da.from_array(X, chunks=(100, 5))
    with pytest.raises(ValueError, match="has 3 entries where X has"):
        MNARKMeans(K, lam=1.0).fit(table, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match=r"Block 0 of .*not negative"):
        MNARKMeans(K, lam=1.0).fit(table, sample_weight=np.arange(len(X)) - 9.0)


def test_nothing_observed():
    with pytest.raises(ValueError, match="All 10 x 2 values are missing"):
        MNARKMeans(2, lam=1.0).fit(da.full((10, 2), np.nan, chunks=5))


def test_rows_without_values_are_reported(X):
    table = da.from_array(np.vstack([X, np.full((3, 5), np.nan)]), chunks=(100, 5))
    with pytest.warns(mnarkmeans.MissingDataWarning, match="3 row"):
        MNARKMeans(K, lam=1.0, random_state=0).fit(table)


def test_a_reference_far_outside_the_values_is_told(X):
    with pytest.warns(UserWarning, match=r"far outside the observed values of 5 of 5 feature"):
        MNARKMeans(K, lam=0.5, random_state=0).fit(da.from_array(X + 1000.0, chunks=(100, -1)))
