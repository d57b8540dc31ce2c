"""lam="auto": what the likelihood of the missing pattern must find, and what must not change it."""

import numpy as np
import pytest
from scipy import sparse

from mnarkmeans import MNARKMeans
from mnarkmeans import _likelihood as likelihood
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import clustering_error_rate


def gaussian(mechanism, strength, n=600, p=10, seed=0, k=3):
    return make_gaussian_clusters(
        n, p, k, separation=4.0, mechanism=mechanism, strength=strength, random_state=seed
    )


def auto(X, k=3, **parameters):
    return MNARKMeans(k, random_state=0, **parameters).fit(X)


def log_likelihood_by_loops(theta, squares, weights, gaps, residual):
    """The formula at the head of the module, term by term."""
    t, s = np.exp(theta[:2])
    c, r = 1 / (1 + np.exp(-theta[2:]))
    d = 2 * s * t + 1
    total = -0.5 * residual / s - 0.5 * sum(weights) * np.log(2 * np.pi * s)
    for x2, w in zip(squares, weights, strict=True):
        total += w * np.log(1 - c * (r + (1 - r) * np.exp(-t * x2)))
    for mu2, w in gaps.T:
        q = d**-0.5 * np.exp(-t * mu2 / d)
        total += w * np.log(c * (r + (1 - r) * q))
    return total


def test_log_likelihood_is_the_formula_and_the_gradient_is_its_derivative():
    rng = np.random.default_rng(0)
    squares, weights, gaps = rng.exponential(size=8), rng.random(8), rng.random((2, 6))
    observed, residual = float(weights.sum()), 3.0
    data = (squares, weights, gaps, observed, residual)
    for _ in range(5):
        theta = rng.normal(size=4)
        gradient, other = np.empty(4), np.empty(4)
        value = likelihood._log_likelihood(theta, *data, gradient)
        assert value == pytest.approx(log_likelihood_by_loops(theta, squares, weights, gaps, 3.0))
        for j in range(4):
            step = np.zeros(4)
            step[j] = 1e-6
            rise = likelihood._log_likelihood(theta + step, *data, other)
            fall = likelihood._log_likelihood(theta - step, *data, other)
            assert gradient[j] == pytest.approx((rise - fall) / 2e-6, rel=1e-5, abs=1e-6)


def test_extreme_parameters_do_not_overflow():
    magnitudes = likelihood.Magnitudes.of(np.array([0.0, 1e-200, 1e150, 1.0]), np.ones(4))
    theta = likelihood.fit_theta(magnitudes, np.array([[0.0, 30.0]]), np.ones((1, 2)), 4.0)
    assert np.isfinite(theta.vector).all()


@pytest.mark.parametrize(("strength", "theory"), [(0.5, 0.5), (1.0, 2 / 3), (2.0, 0.8)])
def test_theory_is_recovered(strength, theory):
    model = auto(gaussian("mnar0", strength, n=1500).data)
    assert model.missingness_.lam_theory == pytest.approx(theory, abs=0.04)
    assert model.missingness_.sigma2 == pytest.approx(1.0, abs=0.1)
    assert model.missingness_.lam_star == pytest.approx(strength, rel=0.2)
    assert model.missingness_.log_likelihood > model.missingness_.log_likelihood_mcar + 50


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_gaps_at_random_give_a_penalty_near_zero(share):
    bunch = gaussian("mcar", share, n=900, p=4)
    model = auto(bunch.data)
    assert model.lam_ < 0.05
    kpod = MNARKMeans(3, lam=0.0, random_state=0).fit(bunch.data)
    errors = [clustering_error_rate(bunch.target, m.labels_) for m in (model, kpod)]
    assert errors[0] == pytest.approx(errors[1], abs=0.01)


@pytest.mark.parametrize(
    ("mechanism", "strength"), [("mnar0", 1.0), ("mnar1", 1.5), ("mnar2", 0.3)]
)
def test_close_to_the_best_penalty(mechanism, strength):
    bunch = gaussian(mechanism, strength, n=900, p=4)
    error = clustering_error_rate(bunch.target, auto(bunch.data).labels_)
    models = [MNARKMeans(3, lam=lam, random_state=0) for lam in (0.0, 0.3, 0.6, 0.8, 1.0, 2.0)]
    fixed = [clustering_error_rate(bunch.target, m.fit_predict(bunch.data)) for m in models]
    assert error <= min(fixed) + 0.01


def test_complete_data_need_no_penalty():
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = auto(X)
    assert model.lam_ == 0.0
    np.testing.assert_array_equal(
        model.labels_, MNARKMeans(3, lam=0.0, random_state=0).fit_predict(X)
    )


def test_shift_and_scale_leave_lam_alone():
    X = gaussian("mnar0", 1.0, n=300, p=3).data
    lam = auto(X).lam_
    assert auto(X + 25.0, reference=25.0).lam_ == pytest.approx(lam, abs=1e-6)
    assert auto(X * 1000.0).lam_ == pytest.approx(lam, abs=1e-6)


def test_sparse_equals_dense_and_weight_two_is_the_row_twice():
    X = gaussian("mnar0", 1.0, n=200, p=4).data
    stored = sparse.csr_array(np.nan_to_num(X))
    assert auto(stored).lam_ == pytest.approx(auto(X).lam_, abs=1e-6)
    doubled = MNARKMeans(3, random_state=0).fit(X, sample_weight=np.full(len(X), 2.0))
    twice = MNARKMeans(3, random_state=0).fit(np.vstack([X, X]))
    assert doubled.lam_ == pytest.approx(twice.lam_, abs=1e-6)


def test_row_order_does_not_matter_even_when_rows_are_sampled(monkeypatch):
    monkeypatch.setattr("mnarkmeans._auto.ENTRIES_OF_SAMPLE", 1000)
    X = gaussian("mnar0", 1.0, n=800, p=4).data
    mixed = np.random.default_rng(1).permutation(len(X))
    assert auto(X).lam_ == pytest.approx(auto(X[mixed]).lam_, abs=1e-6)
    assert auto(X).missingness_.lam_theory == pytest.approx(2 / 3, abs=0.15)


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, np.nan], [np.nan, 2.0]],
        [[0.0, np.nan], [0.0, 0.0], [np.nan, 0.0]],
        [[5.0, np.nan], [5.0, 5.0], [np.nan, 5.0], [4.0, 4.0]],
        [[1e-300, np.nan], [1e-300, 3e-300], [np.nan, 1e-300]],
    ],
)
def test_tiny_and_degenerate_data_settle(X):
    model = MNARKMeans(1, random_state=0).fit(X)
    assert 0.0 <= model.lam_ <= 1.0
    assert np.isfinite(model.cluster_centers_).all()


def test_detection_limit_data():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(22, 1, (80, 6)), rng.normal(27, 1, (80, 6))])
    X[:, 1:][rng.random((160, 5)) < 1 / (1 + np.exp(2 * (X[:, 1:] - 21.5)))] = np.nan
    model = auto(X, k=2, reference="min")
    assert 0.0 <= model.lam_ <= 1.0
    assert clustering_error_rate(np.repeat([0, 1], 80), model.labels_) < 0.02
