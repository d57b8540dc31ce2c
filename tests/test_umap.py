"""UMAP needs umap-learn and nothing else: coordinates come without a drawing."""

import numpy as np
import pytest

from mnarkmeans._embedding import embed

pytest.importorskip("umap", reason="umap-learn is not installed")


@pytest.mark.filterwarnings("ignore")  # umap-learn and what it imports
def test_two_coordinates_per_row_of_a_table_with_gaps():
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[X > 1.5] = np.nan
    embedding = embed(X, 0.5, method="umap")
    assert embedding.points.shape == (60, 2)
    assert np.isfinite(embedding.points).all()
    assert embedding.axis_names == ("UMAP 1", "UMAP 2")
