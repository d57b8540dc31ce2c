"""Every rival has the same face."""

import pickle

import numpy as np
import pytest

from mnarkmeans.baselines import BASELINES
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import clustering_error_rate


@pytest.mark.parametrize("name", BASELINES)
def test_labels_and_centres_in_data_units(name):
    toy = make_gaussian_clusters(60, 4, 2, separation=9, fraction=0.1, random_state=0)
    data = toy.data + 4 if name != "scimpute" else np.abs(toy.data) * 50
    before = data.copy()
    if name.startswith("gmm"):
        pytest.importorskip("stepmix")
    model = BASELINES[name](2, random_state=0)
    labels = model.fit_predict(data)
    assert labels.shape == (len(data),)
    assert set(labels) <= {0, 1}
    np.testing.assert_array_equal(labels, model.labels_)
    assert model.cluster_centers_.shape == (2, 4)
    low, high = np.nanmin(data) - 1, np.nanmax(data) + 1
    centers = model.cluster_centers_
    assert ((centers > low) & (centers < high) | np.isnan(centers)).all()
    np.testing.assert_array_equal(data, before)


@pytest.mark.parametrize("name", BASELINES)
def test_number_of_clusters_and_seed_are_given_by_place_or_by_name(name):
    for model in (BASELINES[name](3, 7), BASELINES[name](n_clusters=3, random_state=7)):
        assert (model.n_clusters, model.random_state) == (3, 7)
    assert pickle.loads(pickle.dumps(BASELINES[name]))(3, 7).get_params() == model.get_params()


def test_kpod_centres_are_the_observed_means_of_their_rows():
    toy = make_gaussian_clusters(200, 3, 3, fraction=0.3, random_state=1)
    model = BASELINES["kpod"](3, random_state=0).fit(toy.data)
    means = [np.nanmean(toy.data[model.labels_ == label], axis=0) for label in range(3)]
    np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-3)


def test_qrilc_draws_below_and_recovers_the_mean():
    from mnarkmeans.baselines._left import minprob, qrilc

    rng = np.random.default_rng(0)
    whole = rng.normal(3.0, 1.5, (4000, 2))
    low = np.quantile(whole, 0.3, axis=0)
    X = np.where(whole < low, np.nan, whole)
    filled = qrilc(X, 0)
    np.testing.assert_allclose(filled.mean(axis=0), 3.0, atol=0.1)
    np.testing.assert_allclose(filled.std(axis=0), 1.5, atol=0.1)
    assert (filled[np.isnan(X)] < low.max() + 0.1).all()
    around = minprob(X, 0)[np.isnan(X)]
    assert abs(around.mean() - np.nanquantile(X, 0.01, axis=0).mean()) < 0.1


def test_regularised_kpod_without_penalty_is_kpod_and_shrinks_noise_with_one():
    from mnarkmeans.baselines import RegularizedKPOD

    rng = np.random.default_rng(0)
    label = rng.integers(2, size=300)
    X = rng.normal(size=(300, 4))
    X[:, 0] += 6 * label
    X[rng.random(X.shape) < 0.2] = np.nan
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    X = X[~np.isnan(X).all(axis=1)]
    plain = RegularizedKPOD(2, lam=0.0, random_state=0).fit(X)
    kpod = BASELINES["kpod"](2, random_state=0).fit(X)
    assert clustering_error_rate(plain.labels_, kpod.labels_) == 0.0
    shrunk = RegularizedKPOD(2, lam=0.1, random_state=0).fit(X).cluster_centers_
    apart = np.ptp(shrunk, axis=0)
    assert apart[0] > 1.0
    assert apart[1:].max() < 0.1
