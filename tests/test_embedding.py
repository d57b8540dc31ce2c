"""The plane that rows are drawn in: principal components, missing values weighed as in the loss."""

import os
import sys
from unittest import mock

import numpy as np
import pytest
from backends import to_csr
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

from mnarkmeans._embedding import embed


@pytest.fixture(scope="module")
def plane():
    """80 rows that lie nearly in a plane of 7 features, far from the origin; and with gaps."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 2)) * [3.0, 1.5] @ rng.normal(size=(2, 7)) + rng.normal(size=7) * 4
    X += 0.05 * rng.normal(size=X.shape)
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.25] = np.nan
    return X, gaps


def assert_same_picture(found, expected, tolerance):
    """The same distances between rows; axes may be mirrored."""
    scale = pdist(expected).max()
    np.testing.assert_allclose(pdist(found), pdist(expected), rtol=0, atol=tolerance * scale)


def test_it_is_principal_component_analysis_that_missing_values_hardly_change(plane):
    X, gaps = plane
    theirs, ours = PCA(2).fit(X), embed(X, 0.7)
    assert_same_picture(ours.points, theirs.transform(X), 1e-6)
    np.testing.assert_allclose(ours.explained, theirs.explained_variance_ratio_, rtol=0.01)
    with_gaps = embed(gaps, 0.0)
    assert_same_picture(with_gaps.points, ours.points, 0.05)
    np.testing.assert_allclose(with_gaps.explained, ours.explained, atol=0.05)
    # With lam = 1 it is that of the table filled with the reference.
    reference = np.nanmean(gaps, axis=0) + 0.5
    filled = np.where(np.isnan(gaps), reference, gaps)
    ours, theirs = embed(gaps, 1.0, reference).points, PCA(2).fit_transform(filled)
    assert np.corrcoef(pdist(ours), pdist(theirs))[0, 1] > 0.995  # ours shrink by the noise


def test_storage_shift_and_scale_change_nothing(plane):
    gaps = plane[1].copy()
    gaps[:9, 0] = 0.0  # stored, and so observed
    lam, reference = np.array([0.0, 0.2, 0.4, 1.0, 1.0, 0.3, 2.0]), np.nanmin(gaps, axis=0)
    points = embed(gaps, lam, reference).points
    np.testing.assert_allclose(embed(to_csr(gaps), lam, reference).points, points, atol=1e-6)
    moved = embed(gaps + 5.0, lam, reference + 5.0).points
    np.testing.assert_allclose(moved, points, atol=1e-6)
    np.testing.assert_allclose(embed(3 * gaps, lam, 3 * reference).points, 3 * points, atol=1e-5)


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.filterwarnings("ignore")  # umap-learn and what it imports
def test_umap_gives_two_coordinates_per_row(plane, monkeypatch, real):
    """umap-learn compiles itself for a minute: the real one runs in CI only."""
    if not real:
        umap = mock.Mock()
        umap.UMAP.return_value.fit_transform = lambda points: points[:, :2]
        monkeypatch.setitem(sys.modules, "umap", umap)
    elif "CI" not in os.environ:
        pytest.skip("umap-learn takes a minute; set CI to run it")
    else:
        pytest.importorskip("umap")
    found = embed(plane[1], 0.5, method="umap")
    if not real:
        umap.UMAP.assert_called_once_with(random_state=0, n_jobs=1)
    assert found.points.shape == (80, 2)
    assert np.isfinite(found.points).all()
    assert found.axis_names == ("UMAP 1", "UMAP 2")
