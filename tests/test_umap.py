"""UMAP of a table with missing values. umap-learn compiles itself for a minute: the real one runs
in CI, and elsewhere a stand-in shows what it would be given."""

import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from mnarkmeans._embedding import embed


def assert_plane(X):
    embedding = embed(X, 0.5, method="umap")
    assert embedding.points.shape == (60, 2)
    assert np.isfinite(embedding.points).all()
    assert embedding.axis_names == ("UMAP 1", "UMAP 2")


@pytest.fixture
def X():
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[X > 1.5] = np.nan
    return X


def test_it_gets_complete_rows_and_a_seed(X, monkeypatch):
    given = {}

    class UMAP:
        def __init__(self, **settings):
            given.update(settings)

        def fit_transform(self, points):
            assert np.isfinite(points).all()
            return points[:, :2]

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    assert_plane(X)
    assert given["random_state"] is not None


@pytest.mark.skipif("CI" not in os.environ, reason="umap-learn takes a minute; set CI to run it")
@pytest.mark.filterwarnings("ignore")  # umap-learn and what it imports
def test_two_coordinates_per_row(X):
    pytest.importorskip("umap", reason="umap-learn is not installed")
    assert_plane(X)
