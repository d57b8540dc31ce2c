"""Simulated clusters, the two real tables, and files that are not what they claim to be."""

from unittest import mock

import numpy as np
import pytest

from mnarkmeans import datasets
from mnarkmeans.datasets import load_lymphoma, load_usoskin, make_gaussian_clusters


def test_polygon_centres_are_the_papers_and_rows_normal_around_them():
    paper = {
        2: [(0, 0), (3, 0)],
        3: [(0, 0), (3, 0), (1.5, 1.5 * np.sqrt(3))],
        4: [(0, 0), (3, 0), (3, 3), (0, 3)],
    }
    for k, centers in paper.items():
        toy = make_gaussian_clusters(50, 5, k, separation=3.0, random_state=0)
        np.testing.assert_allclose(toy.centers, np.pad(centers, ((0, 0), (0, 3))), atol=1e-12)
    default = make_gaussian_clusters(mechanism=None, random_state=0)  # as in the paper
    assert (default.data.shape, default.centers.shape) == ((300, 2), (3, 2))
    assert np.linalg.norm(default.centers[0] - default.centers[1]) == pytest.approx(3.0)
    within = default.data - default.centers[default.target]
    assert within.std() == pytest.approx(1.0, abs=0.1)
    toy = make_gaussian_clusters(20_000, 3, 4, cluster_std=0.5, mechanism=None, random_state=0)
    residual = toy.complete - toy.centers[toy.target]
    assert residual.std() == pytest.approx(0.5, rel=0.02)
    np.testing.assert_allclose(np.bincount(toy.target) / 20_000, 0.25, atol=0.02)
    np.testing.assert_array_equal(toy.data, toy.complete)


def test_gaps_share_and_dropped_rows():
    toy, again = (make_gaussian_clusters(5000, 2, fraction=0.4, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(toy.data, again.data)
    assert len(toy.centers) == 3
    assert not np.isnan(toy.data).all(axis=1).any()
    assert np.isnan(toy.data).any(axis=1).mean() > 0.4
    assert len(toy.data) == len(toy.complete) == len(toy.target) < 5000
    observed = ~np.isnan(toy.data)
    np.testing.assert_array_equal(toy.data[observed], toy.complete[observed])


def test_centres_may_be_given():
    given = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    np.testing.assert_array_equal(make_gaussian_clusters(10, 3, given).centers, given)
    assert make_gaussian_clusters(10, 1, 2, separation=3.0).centers.tolist() == [[0], [3]]
    for arguments, options, message in (
        ((10, 2, given), {}, "n_features=2"),
        ((10, 2, 0), {}, ">= 1"),
        ((10, 1, 3), {}, "need 2 features"),
        ((10,), {"mechanism": None, "fraction": 0.2}, "mechanism=None removes nothing"),
    ):
        with pytest.raises(ValueError, match=message):
            make_gaussian_clusters(*arguments, **options)


def test_lymphoma(data_folder, monkeypatch):
    monkeypatch.setenv("MNARKMEANS_DATA", str(data_folder))
    data = load_lymphoma()
    assert data.data.shape == (62, 4026)
    np.testing.assert_array_equal(np.bincount(data.target), [42, 9, 11])
    np.testing.assert_allclose(data.data.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.data.std(axis=0, ddof=1), 1)


def test_usoskin(data_folder):
    data = load_usoskin(data_folder)  # as the paper prepares it
    assert data.data.shape == (622, 389)
    assert data.target_names.tolist() == ["NF", "NP", "PEP", "TH"]
    assert np.bincount(data.target).tolist() == [139, 169, 81, 233]
    np.testing.assert_allclose(np.nanmean(data.data, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(data.data, axis=0, ddof=1), 1)
    counts = load_usoskin(data_folder, preparation="counts", max_missing=None)
    logged = load_usoskin(data_folder, preparation="log1p", max_missing=None)
    assert counts.data.shape == logged.data.shape == (622, 452)
    gaps = np.sort((counts.data == 0).sum(axis=0))
    fewer = load_usoskin(data_folder, preparation="counts", max_missing=gaps[200])
    assert fewer.data.shape[1] == np.count_nonzero(gaps <= gaps[200])
    np.testing.assert_array_equal(np.isnan(logged.data), counts.data == 0)
    np.testing.assert_allclose(np.nan_to_num(logged.data), np.log1p(counts.data))
    with pytest.raises(ValueError, match="got 'zscore'"):
        load_usoskin(data_folder, preparation="zscore")


def test_a_download_is_checked_and_one_that_fails_says_what_to_do(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"lymphoma\.x\.txt is not in"):
        load_lymphoma(tmp_path)
    pooch, retrieve = pytest.importorskip("pooch"), mock.Mock(side_effect=ConnectionError)
    monkeypatch.delenv("MNARKMEANS_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(RuntimeError, match=r"could not be downloaded .* MNARKMEANS_DATA"):
        load_lymphoma()
    assert retrieve.call_args.args == (datasets.SOURCE + "lymphoma.x.txt",)
    sha256 = datasets.SHA256["lymphoma.x.txt"]
    assert retrieve.call_args.kwargs["known_hash"] == f"sha256:{sha256}"
