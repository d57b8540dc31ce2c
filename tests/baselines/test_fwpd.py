"""FWPD k-means against the dissimilarity computed entry by entry."""

import numpy as np
import pytest

from mnarkmeans.baselines import FWPDKMeans
from mnarkmeans.baselines._fwpd import dissimilarity, observed_means, prepare
from mnarkmeans.metrics import clustering_error_rate

nan = np.nan
X = np.array([[1.0, 2.0, nan], [4.0, nan, 6.0], [nan, 2.0, 9.0], [1.0, 6.0, 5.0]])


def test_dissimilarity_by_hand():
    table = prepare(X, None)
    assert table.alpha == pytest.approx(3 / 12)
    np.testing.assert_array_equal(table.weights, [3, 3, 3])
    # rows 2 and 3 share features 1 and 2: sqrt(4^2 + 4^2) is the largest of all pairs
    assert table.dmax == pytest.approx(np.sqrt(32))
    centre = np.array([[1.0, nan, 6.0]])
    # row 0 shares feature 0 with it (distance 0) and misses features 1, 2: 6 of 9 weights
    # row 1 shares 0 and 2: |(3, 0)| = 3, misses 1; row 2 shares 2: 3, misses 0, 1;
    # row 3 shares 0 and 2: |(0, 1)| = 1, misses 1
    expected = 0.75 * np.array([0, 3, 3, 1]) / np.sqrt(32) + 0.25 * np.array([6, 3, 6, 3]) / 9
    np.testing.assert_allclose(dissimilarity(table, centre)[:, 0], expected)


def test_centres_are_observed_means():
    centers = observed_means(prepare(X, None), np.array([0, 1, 1, 0]), 2)
    np.testing.assert_allclose(centers, [[1, 4, 5], [4, 2, 7.5]])
    centers = observed_means(prepare(X, None), np.array([0, 1, 1, 1]), 2)
    np.testing.assert_array_equal(centers[0], [1, 2, nan])


def test_alpha_is_at_most_one_half():
    holes = np.where(np.random.default_rng(0).random((30, 4)) < 0.8, nan, 1.0)
    assert prepare(holes, None).alpha == 0.5


def test_finds_separated_clusters_with_gaps_at_random():
    rng = np.random.default_rng(0)
    target = rng.integers(3, size=150)
    data = rng.normal(size=(150, 4)) + 8 * target[:, None]
    data[rng.random(data.shape) < 0.1] = nan
    data = data[~np.isnan(data).all(axis=1)]
    model = FWPDKMeans(3, random_state=0).fit(data)
    assert clustering_error_rate(target[: len(data)], model.labels_) < 0.05
    assert model.inertia_ == pytest.approx(
        dissimilarity(prepare(data, None), model.cluster_centers_).min(axis=1).sum()
    )


def test_no_cluster_stays_empty_and_k_is_checked():
    data = np.array([[0.0], [0.0], [0.0], [5.0]])
    model = FWPDKMeans(2, n_init=5, random_state=0).fit(data)
    assert set(model.labels_) == {0, 1}
    with pytest.raises(ValueError, match="n_clusters=9, but X has 4 rows"):
        FWPDKMeans(9).fit(data)
