"""Sparse matrices that are not what they say, or say it in an odd way."""

import numpy as np
import pytest
from places import grouped_rows, to_csr
from scipy import sparse

from mnarkmeans import MNARKMeans

nan = np.nan


def table():
    return grouped_rows(200, 6, apart=4.0)


def test_a_matrix_that_points_outside_is_refused():
    X = to_csr(table())
    for feature in (6, 10**6, -1):
        wrong = X.copy()
        wrong.indices[40] = feature
        with pytest.raises(ValueError, match=f"an entry in feature {feature}"):
            MNARKMeans(2, lam=0.5).fit(wrong)
    wrong = X.copy()
    wrong.indptr[7], wrong.indptr[8] = wrong.indptr[8] + 5, wrong.indptr[7]
    with pytest.raises(ValueError, match="do not rise"):
        MNARKMeans(2, lam=0.5).fit(wrong)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_order_and_duplicates_of_stored_entries_do_not_matter(index):
    X = to_csr(table())
    expected = MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    rng = np.random.default_rng(0)
    data, indices = X.data.copy(), X.indices.astype(index)
    for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order = begin + rng.permutation(end - begin)
        data[begin:end], indices[begin:end] = data[order], indices[order]
    shuffled = sparse.csr_array((data, indices, X.indptr.astype(index)), shape=X.shape)
    stale = shuffled.copy()
    stale.has_sorted_indices = stale.has_canonical_format = True  # believed, and wrong
    twice = sparse.csr_array(
        (np.repeat(data / 2, 2), np.repeat(indices, 2), 2 * X.indptr.astype(index)), shape=X.shape
    )
    for other in (shuffled, stale, twice):
        before = other.data.copy()
        found = MNARKMeans(3, lam=0.5, random_state=0).fit(other)
        assert np.array_equal(found.labels_, expected.labels_)
        assert np.array_equal(found.cluster_centers_, expected.cluster_centers_)
        assert np.array_equal(other.data, before)


def test_stored_gaps_are_gaps():
    X = table()
    stored = np.where(np.isnan(X), nan, X)
    full = sparse.csr_array(
        (stored.ravel(), np.tile(np.arange(6), len(X)), 6 * np.arange(len(X) + 1)), shape=X.shape
    )
    expected = MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    found = MNARKMeans(3, lam=0.5, random_state=0).fit(full)
    assert np.array_equal(found.labels_, expected.labels_)
    coded = full.copy()
    coded.data[np.isnan(coded.data)] = -7.0
    found = MNARKMeans(3, lam=0.5, random_state=0, missing_values=-7.0).fit(coded)
    assert np.array_equal(found.labels_, expected.labels_)
