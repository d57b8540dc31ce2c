"""Every rival has the same face."""

import numpy as np
import pytest

from mnarkmeans.baselines import BASELINES
from mnarkmeans.datasets import make_gaussian_clusters


@pytest.mark.parametrize("name", BASELINES)
def test_labels_and_centres_in_data_units(name):
    toy = make_gaussian_clusters(60, 4, 2, separation=9, fraction=0.1, random_state=0)
    data = toy.data + 4 if name != "scimpute" else np.abs(toy.data) * 50
    before = data.copy()
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


def test_kpod_centres_are_the_observed_means_of_their_rows():
    toy = make_gaussian_clusters(200, 3, 3, fraction=0.3, random_state=1)
    model = BASELINES["kpod"](3, random_state=0).fit(toy.data)
    means = [np.nanmean(toy.data[model.labels_ == label], axis=0) for label in range(3)]
    np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-3)
