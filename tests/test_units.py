"""Other units, another origin, another order: results follow, in every kernel and every mixture."""

import warnings

import joblib
import numpy as np
import oracle
import pytest
from backends import chunks, to_csr, two_clusters

from mnarkmeans import MNARKMeans, MNARMixture
from mnarkmeans._solver import effective_threads

MECHANISMS = ["mcar", "decay", "threshold", "limit", "class"]


@pytest.mark.parametrize("tails", ["normal", "t"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mixtures_follow_units_origin_and_order(mechanism, tails):
    X, _ = two_clusters(mechanism, n=120, p=4, seed=2)

    def fit(X, columns=slice(None), scale=1.0, shift=0.0):
        start = scale * np.array([[-0.5] * 4, [2.0] * 4]) + shift
        model = MNARMixture(
            2, mechanism=mechanism, tails=tails, means_init=start, weights_init=[0.5, 0.5],
            reference=shift, reg_covar=1e-6 * scale**2, temper=1.0, max_iter=12, tol=0.0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X[:, columns])

    base, turned = fit(X), fit(X, slice(None, None, -1))
    np.testing.assert_allclose(turned.means_[:, ::-1], base.means_, atol=1e-5)
    np.testing.assert_allclose(turned.covariances_[:, ::-1], base.covariances_, rtol=1e-4)
    for scale, shift in ((8.0, 0.0), (1.0, 512.0)):
        table = scale * X + shift
        other = fit(table, scale=scale, shift=shift)
        np.testing.assert_allclose((other.means_ - shift) / scale, base.means_, atol=1e-4)
        np.testing.assert_allclose(other.covariances_ / scale**2, base.covariances_, rtol=1e-3)
        np.testing.assert_allclose(other.predict_proba(table), base.predict_proba(X), atol=1e-3)
        seen = np.isfinite(X).sum(axis=1) * np.log(scale)
        np.testing.assert_allclose(
            other.score_samples(table) + seen, base.score_samples(X), atol=1e-3
        )
        filled = (other.impute(table) - shift) / scale
        np.testing.assert_allclose(filled, base.impute(X), atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_width_gives_the_centres_and_the_loss_of_the_oracle(dtype, each_level):
    """Vectors of features end somewhere: rows of clusters in order or not, few and many."""
    rng = np.random.default_rng(6)
    for p in (2, 7, 8, 9, 17, 64, 65, 73, 136):
        n, k, lam = 60 + p, 3, 0.4
        X = rng.normal(size=(n, p)) + 2.0 * rng.integers(k, size=(n, 1))
        X[rng.random(X.shape) < 0.3] = np.nan
        X[np.isnan(X).all(axis=1), 0] = 1.0
        X, weights = X.astype(dtype), rng.integers(1, 4, n).astype(float)
        init = (rng.normal(size=(k, p)) + 2.0 * np.arange(k)[:, None]).astype(dtype)
        reference = rng.normal(size=p)
        mu, path = init.astype(float), []
        for _ in range(4):
            labels = oracle.labels(X, mu, lam, reference)
            mu, _ = oracle.centers_of(X, labels, mu, lam, reference, weights)
            path.append(oracle.loss_of(X, labels, mu, lam, reference, weights))
        for table in (X, to_csr(X)):
            model = MNARKMeans(k, lam=lam, reference=reference, init=init, algorithm="lloyd",
                               max_iter=4, tol=0.0)  # fmt: skip
            model.fit(table, sample_weight=weights)
            np.testing.assert_allclose(model.cluster_centers_, mu, atol=1e-5)
            np.testing.assert_array_equal(model.labels_, oracle.labels(X, mu, lam, reference))
            np.testing.assert_allclose(model.loss_path_, path[: model.n_iter_], rtol=1e-6)


def test_many_starts_of_a_large_table_all_count(monkeypatch):
    """Memory may hold a few starts at a time."""
    X = np.random.default_rng(0).normal(size=(200, 6))
    X[::7, 1] = np.nan
    settings = {"lam": 0.5, "n_init": 7, "algorithm": "lloyd", "random_state": 3}
    with chunks():  # the table is cut, as large ones are
        whole = MNARKMeans(4, **settings).fit(X)
        monkeypatch.setattr("mnarkmeans._solver.BYTES_OF_LABELS", 3 * 4 * len(X))
        parts = MNARKMeans(4, **settings).fit(X)
    np.testing.assert_array_equal(parts.start_losses_, whole.start_losses_)
    assert len(parts.start_losses_) == 7
    np.testing.assert_array_equal(parts.cluster_centers_, whole.cluster_centers_)


@pytest.mark.parametrize("n_jobs", [1, 3, -1, -2, -50])
def test_a_number_of_jobs_means_what_it_means_in_joblib(n_jobs):
    assert effective_threads(n_jobs) == joblib.effective_n_jobs(n_jobs)
