"""save and load: the files of the command line, from Python."""

from __future__ import annotations

import errno
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import mnarkmeans
from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, MNARKMeansCV, MNARMixture
from mnarkmeans._model_files import ModelFileError
from mnarkmeans.datasets import make_gaussian_clusters

X = make_gaussian_clusters(90, 4, 3, separation=5.0, strength=1.0, random_state=0).data
MODELS = {
    "kmeans": MNARKMeans(3, random_state=0),
    "generator": MNARKMeans(3, random_state=np.random.RandomState(0)),
    "per feature": MNARKMeans(3, lam=[0.1, 0.2, 0.3, 0.4], reference="min", random_state=0),
    "search": MNARKMeansCV([2, 3], lams=[0.1, 1.0], n_splits=3, random_state=0),
    "whole numbers": MNARKMeans(3, reference=np.array([0, 1, 0, 0]), init=np.eye(3, 4, dtype=int)),
    "batches": MiniBatchMNARKMeans(3, lam=0.5, random_state=0),
    "mixture": MNARMixture(3, random_state=0),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_does_the_same_after_it_was_saved(tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the search, about its choice
        model = MODELS[name].fit(X)
    model.save(tmp_path / "new" / "folder")
    again = mnarkmeans.load(tmp_path / "new" / "folder")
    assert isinstance(again, MNARMixture if name == "mixture" else MNARKMeans)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.impute(X), model.impute(X))
    assert again.score(X) == model.score(X)
    again.save(tmp_path / "new" / "folder")  # replaced
    np.testing.assert_array_equal(
        mnarkmeans.load(tmp_path / "new" / "folder").predict(X), again.predict(X)
    )


@pytest.mark.parametrize("lam", ["auto", 0.5])
def test_a_model_of_blocks_is_saved_with_what_it_was_told(tmp_path, lam):
    dask = pytest.importorskip("mnarkmeans.dask")
    model = dask.MNARKMeans(3, lam=lam, max_iter=7, tol=1e-3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seven iterations may be few
        model.fit(X)
    model.save(tmp_path)
    again = mnarkmeans.load(tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert (again.lam, again.lam_) == (lam, model.lam_)
    assert (again.max_iter, again.tol, again.n_init) == (7, 1e-3, 3)
    assert again.algorithm == "lloyd"  # on a cluster no single rows are moved
    assert again.init == "k-means++"  # k-means|| is for clusters


@pytest.mark.parametrize("full_at", [1, 2])
def test_a_full_disk_leaves_the_old_model_whole(tmp_path, monkeypatch, full_at):
    old, new = (MNARKMeans(3, lam=lam, random_state=0).fit(X) for lam in (0.0, 1.0))
    old.save(tmp_path)
    write, written = Path.write_bytes, []

    def full(path, content):
        written.append(path)
        if len(written) == full_at:
            write(path, content[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        new.save(tmp_path)
    np.testing.assert_array_equal(mnarkmeans.load(tmp_path).cluster_centers_, old.cluster_centers_)
    assert {path.name for path in tmp_path.iterdir()} == {"model.json", "model.npz"}


def test_names_of_columns_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    MNARKMeans(3, lam=0.5, random_state=0).fit(frame).save(tmp_path)
    again = mnarkmeans.load(tmp_path)
    assert list(again.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"a": "z"}))


def test_mistakes_are_told(tmp_path):
    with pytest.raises(NotFittedError):
        MNARKMeans().save(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(ModelFileError, match="there is no model"):
        mnarkmeans.load(tmp_path)
    by_hand = MNARKMeans(2, init=lambda X, k, random_state: X[:k], lam=1.0).fit(np.eye(3))
    with pytest.raises(ModelFileError, match="params/init is a function"):
        by_hand.save(tmp_path)
