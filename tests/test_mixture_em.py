"""EM of MNARMixture: scikit-learn's on complete data, an EM of plain loops on data with gaps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mixture_data import make
from scipy.special import ndtr
from scipy.stats import t as student_t
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from mnarkmeans import MNARMixture
from mnarkmeans._em.mechanisms import MECHANISMS

NAMES = tuple(MECHANISMS)


@pytest.fixture
def complete():
    rng = np.random.default_rng(1)
    return np.vstack([rng.normal(2.5 * i, 1 + 0.3 * i, (80, 4)) for i in range(3)])


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
@pytest.mark.parametrize("mechanism", ["auto", *NAMES])
def test_complete_data_is_gaussian_mixture(complete, covariance_type, mechanism):
    shared = {"tol": 1e-12, "max_iter": 2000, "random_state": 0}
    theirs = GaussianMixture(3, covariance_type=covariance_type, **shared).fit(complete)
    start = theirs.means_ + 0.1
    theirs = GaussianMixture(3, covariance_type=covariance_type, means_init=start, **shared)
    theirs.fit(complete)
    ours = MNARMixture(
        3, mechanism=mechanism, covariance_type=covariance_type, means_init=start, **shared
    ).fit(complete)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(ours.lower_bound_, theirs.lower_bound_, atol=1e-9)
    np.testing.assert_allclose(
        ours.predict_proba(complete), theirs.predict_proba(complete), atol=1e-6
    )
    np.testing.assert_allclose(
        ours.score_samples(complete), theirs.score_samples(complete), atol=1e-6
    )
    assert ours.bic(complete) == pytest.approx(theirs.bic(complete))
    assert ours.aic(complete) == pytest.approx(theirs.aic(complete))


# --- an independent EM: integrals over a fine grid, loops over rows, clusters and features -----


def lost_on_grid(model, x, l, j):
    """P(missing | x) of one feature on a grid of values."""
    name, theta = model.mechanism_, model.missingness_.parameters
    if name in ("mcar", "class"):
        return np.full(len(x), theta["rates"][l if name == "class" else 0, j])
    if name == "decay":
        return theta["c"] * np.exp(-theta["t"] * x**2)
    if name == "threshold":
        return (np.abs(x) < theta["tau"][j]).astype(float)
    assert name == "limit"
    return ndtr((theta["c"][j] - x) / theta["zeta"][j])


def log_density(model, x, l, j):
    """Of values x in cluster l, and how much each pulls."""
    mu, v, t = model.means_[l, j], model.covariances_[l, j], model.degrees_of_freedom_
    if math.isinf(t):
        return -0.5 * (np.log(2 * math.pi * v) + (x - mu) ** 2 / v), np.ones(len(x))
    return student_t.logpdf(x, t, mu, math.sqrt(v)), (t + 1) / (t + (x - mu) ** 2 / v)


def slow_round(model, X):
    """Log-likelihood of each row, memberships, expected values in gaps, next means, variances."""
    (n, p), k = X.shape, model.n_components
    P, E, U, UX, UXX = (np.zeros((k, p)) for _ in range(5))
    log_f, pull = np.zeros((n, k)), np.ones((n, k, p))
    for l in range(k):
        for j in range(p):
            sd = math.sqrt(model.covariances_[l, j])
            x = model.means_[l, j] + sd * np.sinh(np.linspace(-12, 12, 400_001))
            log, u = log_density(model, x, l, j)
            f = np.exp(log) * lost_on_grid(model, x, l, j) * np.gradient(x)
            P[l, j] = f.sum()
            E[l, j] = (f * x).sum() / P[l, j]
            U[l, j], UX[l, j] = (f * u).sum() / P[l, j], (f * u * x).sum() / P[l, j]
            UXX[l, j] = (f * u * x**2).sum() / P[l, j]
    empty = sum(model.weights_[l] * np.prod(P[l]) for l in range(k))
    for i in range(n):
        for l in range(k):
            log_f[i, l] = math.log(model.weights_[l])
            for j in range(p):
                if np.isnan(X[i, j]):
                    log_f[i, l] += math.log(P[l, j])
                    continue
                log, u = log_density(model, X[i, j : j + 1], l, j)
                seen = 1 - lost_on_grid(model, X[i, j : j + 1], l, j)[0]
                log_f[i, l] += math.log(seen) + log[0]
                pull[i, l, j] = u[0]
    each = np.log(np.exp(log_f).sum(axis=1))
    rho = np.exp(log_f - each[:, None])
    means, variances = np.zeros((k, p)), np.zeros((k, p))
    for l in range(k):
        hidden = n * model.weights_[l] * np.prod(P[l]) / (1 - empty)
        for j in range(p):
            seen = ~np.isnan(X[:, j])
            gaps = rho[~seen, l].sum() + hidden
            own, x = rho[seen, l] * pull[seen, l, j], X[seen, j]
            mu = (own @ x + gaps * UX[l, j]) / (own.sum() + gaps * U[l, j])
            square = own @ (x - mu) ** 2
            square += gaps * (UXX[l, j] - 2 * mu * UX[l, j] + mu**2 * U[l, j])
            means[l, j], variances[l, j] = mu, square / (rho[seen, l].sum() + gaps)
    return each - math.log(1 - empty), rho, rho @ E, means, variances


@pytest.mark.parametrize("tails", ["normal", "t"])
@pytest.mark.parametrize("name", NAMES)
def test_slow_em_agrees_and_stays_where_ours_ended(name, tails):
    X, _ = make(name, heavy=tails == "t")
    model = MNARMixture(
        2, mechanism=name, tails=tails, variance_prior=0.0, temper=1.0, tol=1e-9,
        max_iter=3000, reg_covar=0.0, random_state=0,
    ).fit(X)  # fmt: skip
    each, rho, expected, means, variances = slow_round(model, X)
    slack = 1.0 if tails == "normal" else 100.0  # heavy: integrals from a few nodes
    np.testing.assert_allclose(model.score_samples(X), each, atol=2e-4 * slack)
    np.testing.assert_allclose(model.predict_proba(X), rho, atol=2e-4 * slack)
    np.testing.assert_allclose(model.means_, means, atol=2e-3 * slack)
    np.testing.assert_allclose(model.covariances_, variances, atol=2e-3 * slack)
    filled = model.impute(X)
    gaps = np.isnan(X)
    np.testing.assert_array_equal(filled[~gaps], X[~gaps])
    np.testing.assert_allclose(filled[gaps], expected[gaps], atol=1e-3 * slack)


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
@pytest.mark.parametrize("tails", ["auto", "normal", "t"])
@pytest.mark.parametrize("name", NAMES)
def test_no_iteration_lowers_what_is_maximised(name, tails, covariance_type):
    X, _ = make("decay", n=60)
    model = MNARMixture(
        3, mechanism=name, tails=tails, covariance_type=covariance_type, tol=0.0, temper=1.0,
        random_state=0,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning):
        ends = [model.set_params(max_iter=i).fit(X).lower_bound_ for i in (1, 2, 4, 8, 40)]
    assert np.diff(ends).min() >= -1e-9
    assert np.diff(model.lower_bounds_).min() >= -1e-9
    np.testing.assert_allclose(ends, [model.lower_bounds_[i - 1] for i in (1, 2, 4, 8, 40)])
