"""MNARKMeans among scikit-learn's own: pipelines, searches, routing, persistence, HTML."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import clustering_error_rate


@pytest.fixture(scope="module")
def toy():
    return make_gaussian_clusters(150, 4, 3, separation=5, fraction=0.25, random_state=0)


def kmeans(k=3, **kwargs):
    return MNARKMeans(k, **{"lam": 0.5, "random_state": 0, "n_init": 3, **kwargs})


def test_a_pipeline_routes_weights_and_equals_scaling_by_hand(toy):
    weights = np.arange(len(toy.data)) % 3.0
    with sklearn.config_context(enable_metadata_routing=True):
        asking = kmeans().set_fit_request(sample_weight=True)
        pipe = make_pipeline(MaxAbsScaler(), asking).fit(toy.data, sample_weight=weights)
    scaled = toy.data / np.nanmax(np.abs(toy.data), axis=0)
    by_hand = kmeans().fit(scaled, sample_weight=weights)
    np.testing.assert_array_equal(pipe.predict(toy.data), by_hand.labels_)
    assert pipe.score(toy.data) == pytest.approx(by_hand.score(scaled))


def test_centring_moves_the_reference_and_the_reference_can_follow(toy):
    """StandardScaler turns the value 0 into -mean/sd: that is the reference to hand over."""
    scaler = StandardScaler().fit(toy.data)
    follow = scaler.transform(np.zeros((1, 4)))[0]
    centred = kmeans(reference=follow).fit(scaler.transform(toy.data))
    divided = kmeans().fit(toy.data / scaler.scale_)
    assert clustering_error_rate(centred.labels_, divided.labels_) == 0
    assert centred.inertia_ == pytest.approx(divided.inertia_)
    unmoved = kmeans().fit(scaler.transform(toy.data))
    assert unmoved.inertia_ != pytest.approx(divided.inertia_)


def test_as_a_column_transformer_step_distances_get_names(toy):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(toy.data, columns=list("abcd"))
    step = ColumnTransformer([("near", kmeans(), ["a", "b", "c"])], remainder="passthrough")
    out = step.set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == [
        "near__mnarkmeans0", "near__mnarkmeans1", "near__mnarkmeans2",
        "remainder__d",
    ]  # fmt: skip


def test_grid_search_clones_and_fits(toy):
    grid = {"n_clusters": [2, 3], "lam": [0.1, 1.0]}
    search = GridSearchCV(kmeans(), grid, cv=2).fit(toy.data)
    assert set(search.best_params_) == {"n_clusters", "lam"}
    again = clone(search.best_estimator_)
    assert again.get_params() == search.best_estimator_.get_params()
    assert not hasattr(again, "labels_")


def test_skops_persistence_asks_to_trust_this_class_only(toy):
    skops = pytest.importorskip("skops.io")
    fitted = make_pipeline(MaxAbsScaler(), kmeans()).fit(toy.data)
    written = skops.dumps(fitted)
    untrusted = skops.get_untrusted_types(data=written)
    assert untrusted == ["mnarkmeans._kmeans.MNARKMeans"]
    back = skops.loads(written, trusted=untrusted)
    np.testing.assert_array_equal(back.predict(toy.data), fitted.predict(toy.data))
