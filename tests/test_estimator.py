"""MNARKMeans as a scikit-learn estimator: its checks, the tests of KMeans, corners, impute."""

import logging
import warnings

import joblib
import numpy as np
import pytest
from backends import grouped_rows, to_csr
from sklearn.exceptions import ConvergenceWarning

from mnarkmeans import MissingDataWarning, MNARKMeans
from mnarkmeans._solver import effective_threads


@pytest.fixture
def X(three_groups):
    return three_groups


def fitted(X, k=3, sample_weight=None, **options):
    options = {"lam": 0.5, "random_state": 0} | options
    return MNARKMeans(k, **options).fit(X, sample_weight=sample_weight)


def test_every_fitted_attribute(X):
    model = fitted(X + 20, n_init=4, reference="min")
    assert model.cluster_centers_.shape == (3, 4)
    assert model.labels_.shape == (150,)
    assert model.labels_.dtype == np.int32
    assert isinstance(model.inertia_, float)
    assert model.loss_path_.shape == (model.n_iter_,)
    assert model.start_losses_.shape == (4,)
    assert model.start_losses_.min() == pytest.approx(model.inertia_, rel=1e-4)
    assert model.lam_ == 0.5
    np.testing.assert_array_equal(model.reference_, np.nanmin(X + 20, axis=0))
    np.testing.assert_array_equal(fitted(X).reference_, np.zeros(4))
    assert model.n_features_in_ == 4


def test_init_given_as_array_callable_and_name(X):
    given = np.nan_to_num(X[:3])
    by_array = fitted(X, init=given)
    assert by_array.start_losses_.shape == (1,)
    calls = []

    def init(table, n_clusters, random_state):
        calls.append((table is X, n_clusters))
        return given

    by_callable = fitted(X, init=init, n_init=2)
    assert calls == [(True, 3)] * 2
    np.testing.assert_array_equal(by_callable.cluster_centers_, by_array.cluster_centers_)
    assert fitted(X, init="random").inertia_ > 0


def test_given_centres_and_several_starts_are_warned_of():
    X, start = [[0.0], [1.0], [9.0], [8.0]], [[0.0], [9.0]]
    with pytest.warns(RuntimeWarning, match="n_init=5 is not used"):
        model = MNARKMeans(2, lam=0.5, init=start, n_init=5).fit(X)
    assert len(model.start_losses_) == 1
    for silent in ({}, {"n_init": 1}, {"n_init": 10}):
        MNARKMeans(2, lam=0.5, init=start, **silent).fit(X)


@pytest.mark.parametrize("n_jobs", [1, 3, -1, -2, -50])
def test_a_number_of_jobs_means_what_it_means_in_joblib(n_jobs):
    assert effective_threads(n_jobs) == joblib.effective_n_jobs(n_jobs)


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize("form", [np.asarray, to_csr])
def test_float_precision(algorithm, form):
    """scikit-learn's test of KMeans: both precisions draw the same starts and end alike."""
    X = grouped_rows(200, 6, k=5, apart=5.0, share=0.2)
    options = {"lam": 0.5, "n_init": 1, "algorithm": algorithm}
    for seed in range(5):
        double, single = (
            MNARKMeans(5, **options, random_state=seed).fit(form(X.astype(dtype)))
            for dtype in (np.float64, np.float32)
        )
        assert single.cluster_centers_.dtype == np.float32
        np.testing.assert_array_equal(single.labels_, double.labels_)
        assert single.n_iter_ == double.n_iter_
        assert single.inertia_ == pytest.approx(double.inertia_, rel=1e-5)
        np.testing.assert_allclose(
            single.cluster_centers_, double.cluster_centers_, rtol=1e-4, atol=1e-5
        )


def test_the_logger_hears_of_every_start_and_verbose_prints_them(X, capsys, caplog):
    assert logging.getLogger("mnarkmeans").handlers == []
    for verbose, printed in ((0, 0), (1, 6)):
        caplog.clear()
        with caplog.at_level("INFO", logger="mnarkmeans"):
            fitted(X, n_init=6, verbose=verbose)
        assert sum(r.getMessage().startswith("start ") for r in caplog.records) == 6
        lines = capsys.readouterr().out.splitlines()
        assert sum(line.startswith("start ") for line in lines) == printed


def test_callbacks_of_scikit_learn_see_the_fit_and_its_starts(X):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9")
    seen = []

    class Record(callback.FitCallback):
        def setup(self, estimator, context):
            seen.append("setup")

        def on_fit_task_begin(self, estimator, context):
            seen.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context):
            seen.append(f"end {context.task_name}")

        def teardown(self, estimator, context):
            seen.append("teardown")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn announces that callbacks are new
        MNARKMeans(3, lam=0.5, n_init=6, random_state=0).set_callbacks(Record()).fit(X)
    starts = ["begin start", "end start"] * 6
    assert seen == ["setup", "begin fit", *starts, "end fit", "teardown"]


# --- corners --------------------------------------------------------------------------------------


def test_fewer_distinct_rows_than_clusters_warns():
    X = np.ones((10, 2))
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\)"):
        model = MNARKMeans(3, lam=1.0, random_state=0).fit(X)
    assert np.isfinite(model.cluster_centers_).all()


def test_one_cluster_and_one_row():
    with pytest.warns(MissingDataWarning, match=r"1 feature\(s\) have no observed value \(1\)"):
        model = MNARKMeans(1, lam=0.5, reference=2.5).fit([[1.0, np.nan]])
    np.testing.assert_array_equal(model.cluster_centers_, [[1.0, 2.5]])
    assert model.inertia_ == 0.0
