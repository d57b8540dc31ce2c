"""MNARMixture: oracles, laws, what it finds, model files and error messages."""

from __future__ import annotations

import copy
import math
import warnings

import numpy as np
import pytest
from backends import grouped_rows, two_clusters
from scipy.optimize import brentq
from scipy.special import ndtr, xlogy
from scipy.stats import norm
from scipy.stats import t as student_t
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from mnarkmeans import MissingDataWarning, MNARMixture
from mnarkmeans._em.em import Parameters, missing_of
from mnarkmeans._em.mechanisms import MECHANISMS
from mnarkmeans._model_files import ModelFileError, load_model, save_model

NAMES = tuple(MECHANISMS)


# --- oracles ------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
@pytest.mark.parametrize("mechanism", ["auto", "limit"])
def test_complete_data_is_gaussian_mixture(covariance_type, mechanism):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(2.5 * i, 1 + 0.3 * i, (80, 4)) for i in range(3)])
    start = np.array([[0.1], [2.4], [5.2]]) + np.zeros(4)
    settings = {"tol": 1e-12, "max_iter": 2000, "means_init": start, "random_state": 0}
    theirs = GaussianMixture(3, covariance_type=covariance_type, **settings).fit(X)
    ours = MNARMixture(3, mechanism=mechanism, covariance_type=covariance_type, **settings).fit(X)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6)
    np.testing.assert_allclose(ours.lower_bound_, theirs.lower_bound_, atol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-6)
    assert ours.bic(X) == pytest.approx(theirs.bic(X))
    assert ours.aic(X) == pytest.approx(theirs.aic(X))


# Integrals over a fine grid, loops over rows, clusters and features


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
            x = model.means_[l, j] + sd * np.sinh(np.linspace(-12, 12, 60_001))
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
def test_em_agrees_with_loops_and_integrals(name, tails):
    """Likelihoods, posteriors, expected values; and one more iteration leads nowhere else."""
    X, _ = two_clusters(name, heavy=tails == "t")
    model = MNARMixture(
        2, mechanism=name, tails=tails, variance_prior=0.0, temper=1.0, tol=1e-9,
        max_iter=3000, reg_covar=0.0, random_state=0,
    ).fit(X)  # fmt: skip
    each, rho, expected, means, variances = slow_round(model, X)
    np.testing.assert_allclose(model.score_samples(X), each, atol=2e-3)
    np.testing.assert_allclose(model.predict_proba(X), rho, atol=2e-3)
    np.testing.assert_allclose(model.means_, means, atol=5e-3)
    np.testing.assert_allclose(model.covariances_, variances, atol=5e-3)
    if name != "class":  # there is no prior of anything
        assert model.lower_bound_ == pytest.approx(
            model.score(X), abs=1e-6 if name == "mcar" else 1e-3
        )
    filled, gaps = model.impute(X), np.isnan(X)
    np.testing.assert_array_equal(filled[~gaps], X[~gaps])
    np.testing.assert_allclose(filled[gaps], expected[gaps], atol=5e-3)


def missing_below(tau, mu, sd, freedom):
    mechanism = MECHANISMS["threshold"](np.array([tau]), np.array([True]))
    clusters = np.ones(1), np.array([[mu]]), np.array([[sd**2]])
    return missing_of(Parameters(*clusters, mechanism, freedom), np.zeros(1))


@pytest.mark.parametrize("tau", [1e-9, 1e-3, 3.0])
def test_a_threshold_far_from_a_narrow_cluster_gives_finite_values(tau):
    assert np.isfinite(missing_below(tau, 4.0, 1e-12, 0.0)[:3]).all()


@pytest.mark.parametrize("freedom", [0.0, 2.0, 6.0])
@pytest.mark.parametrize("tau", [1e-5, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("mu", [0.02, -0.6, 2.5])
def test_threshold_against_integrals(mu, tau, freedom):
    sd = 1.3
    own = norm(mu, sd) if freedom == 0 else student_t(freedom, mu, sd)
    found = missing_below(tau, mu, sd, freedom)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    x = tau * nodes
    rate, first, second = (tau * weights @ (x**i * own.pdf(x)) for i in (0, 1, 2))
    mean = found.mean if found.expected is None else found.expected
    if freedom == 0.0:
        variance = second / rate - (first / rate) ** 2
        assert found.variance[0, 0] == pytest.approx(variance, rel=1e-3)
    assert found.log_rate[0, 0] == pytest.approx(math.log(rate), abs=1e-4)
    assert mean[0, 0] == pytest.approx(first / rate, abs=1e-3 * tau)


@pytest.mark.parametrize("name", NAMES)
def test_criteria_are_those_of_the_definition(name):
    X, _ = two_clusters(name, n=60)
    model = MNARMixture(2, mechanism=name, temper=0.5, tails="t", random_state=0).fit(X)
    n, p = X.shape
    of_mechanism = {
        "mcar": lambda rates: len(np.unique(rates)),
        "class": lambda rates: len(np.unique(rates)),
        "decay": lambda t, c: 2,
        "threshold": lambda tau: 2 * p,  # an end point costs twice
        "limit": lambda c, zeta: p + 1,
    }[name](**model.missingness_.parameters)
    parameters = 1 + 2 * p + 2 * p + of_mechanism
    total = model.score_samples(X).sum()
    shares = model.predict_proba(X) ** 2  # undo the temper
    shares /= shares.sum(axis=1, keepdims=True)
    bic = parameters * np.log(n) - 2 * total
    assert model.score(X) == pytest.approx(total / n)
    assert model.aic(X) == pytest.approx(2 * parameters - 2 * total)
    assert model.bic(X) == pytest.approx(bic)
    assert model.icl(X) == pytest.approx(bic - 2 * xlogy(shares, shares).sum())


# --- laws -----------------------------------------------------------------------------------------


NEAR_ZERO = two_clusters("decay", n=50)[0]  # values are missing
HARD = {
    "small": NEAR_ZERO,
    "wide": grouped_rows(4, 40, apart=0.0, share=0.2),
    "constant feature": np.column_stack([np.full(len(NEAR_ZERO), 4.0), NEAR_ZERO]),
    "repeated rows": np.repeat(NEAR_ZERO[:6], 8, axis=0),
    "outlier": np.vstack([NEAR_ZERO, np.full(3, 1e6)]),
    "far from zero": 1e-3 * NEAR_ZERO - 1e3,
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::mnarkmeans.MissingDataWarning")
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("name", NAMES)
def test_no_iteration_lowers_what_is_maximised(name, kind):
    X = HARD[kind]
    for tails, covariance_type, init_params in (
        ("normal", "diag", "kmeans"), ("normal", "spherical", "random"),
        ("t", "diag", "random_from_data"), ("t", "spherical", "k-means++"),
    ):  # fmt: skip
        model = MNARMixture(
            2, mechanism=name, tails=tails, covariance_type=covariance_type, tol=0.0, temper=1.0,
            init_params=init_params, max_iter=25, random_state=0,
        ).fit(X)  # fmt: skip
        assert np.diff(model.lower_bounds_).min(initial=0.0) >= -1e-9
        assert model.lower_bound_ == model.lower_bounds_[-1]
        for found in (model.means_, model.predict_proba(X), model.score(X), model.impute(X)):
            assert np.isfinite(found).all()


@pytest.mark.parametrize("tails", ["normal", "t"])
@pytest.mark.parametrize("mechanism", NAMES)
def test_mixtures_follow_units_origin_and_order(mechanism, tails):
    X, _ = two_clusters(mechanism, n=120, p=4, seed=2)

    def fit(X, scale=1.0, shift=0.0):
        start = scale * np.array([[-0.5] * 4, [2.0] * 4]) + shift
        model = MNARMixture(
            2, mechanism=mechanism, tails=tails, means_init=start, weights_init=[0.5, 0.5],
            reference=shift, reg_covar=1e-6 * scale**2, temper=1.0, max_iter=12, tol=0.0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X)

    base, same, turned = fit(X), slice(None), slice(None, None, -1)
    for columns, scale, shift in ((turned, 1.0, 0.0), (same, 8.0, 0.0), (same, 1.0, 512.0)):
        table = scale * X[:, columns] + shift
        other = fit(table, scale, shift)
        more = np.isfinite(X).sum(axis=1) * np.log(scale)  # of the log-likelihood
        for found, expected in (
            ((other.means_ - shift) / scale, base.means_[:, columns]),
            (other.covariances_ / scale**2, base.covariances_[:, columns]),
            (other.predict_proba(table), base.predict_proba(X)),
            (other.score_samples(table) + more, base.score_samples(X)),
            ((other.impute(table) - shift) / scale, base.impute(X)[:, columns]),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_every_way_to_begin():
    X, labels = two_clusters("mcar", n=400, p=6)
    settings = {"mechanism": "mcar", "n_init": 5, "max_iter": 500, "random_state": 0}
    for init_params in ("kmeans", "k-means++", "random", "random_from_data"):
        model = MNARMixture(2, init_params=init_params, **settings).fit(X)
        assert adjusted_rand_score(labels, model.predict(X)) > 0.8


@pytest.mark.parametrize(
    ("name", "tails"), [("decay", "normal"), ("limit", "normal"), ("class", "t")]
)
def test_a_mixture_fitted_to_a_sample_of_a_mixture_is_the_same(name, tails):
    X, _ = two_clusters(name, n=1500, heavy=tails == "t")
    settings = {"mechanism": name, "tails": tails, "variance_prior": 0.0, "reference": 7.0,
                "temper": 1.0, "random_state": 0}  # fmt: skip
    model = MNARMixture(2, **settings).fit(X + 7.0)
    complete, labels = model.sample(4000)
    for l in range(2):
        np.testing.assert_allclose(complete[labels == l].mean(axis=0), model.means_[l], atol=0.15)
    drawn, _ = model.sample(4000, gaps=True)
    drawn = drawn[~np.isnan(drawn).all(axis=1)]
    again = MNARMixture(2, means_init=model.means_, max_iter=300, **settings).fit(drawn)
    np.testing.assert_allclose(again.means_, model.means_, atol=0.25)
    np.testing.assert_allclose(again.covariances_, model.covariances_, atol=0.5)
    assert again.tails_ == model.tails_
    theirs, ours = again.missingness_.parameters, model.missingness_.parameters
    for key, value in ours.items():
        np.testing.assert_allclose(theirs[key], value, rtol=0.5, atol=0.15)


def bootstrap_power(X, settings):
    """What makes posteriors as sure as those of fits to the rows in random weights."""
    plain = MNARMixture(2, temper=1.0, random_state=0, **settings).fit(X)
    own = plain.predict_proba(X)
    at = np.arange(len(X)), own.argmax(axis=1)
    rng, believed = np.random.default_rng(0), []
    for _ in range(48):
        again = copy.deepcopy(plain).set_params(warm_start=True, max_iter=10, tol=0.0)
        weights = rng.standard_gamma(np.ones(len(X)))
        with pytest.warns(ConvergenceWarning):
            again.fit(X, sample_weight=weights * len(X) / weights.sum())
        believed.append(again.predict_proba(X)[at].mean())

    def excess(power):
        raised = own**power
        return (raised / raised.sum(axis=1, keepdims=True))[at].mean() - np.mean(believed)

    return brentq(excess, 0.01, 2.0)


def test_temper_is_the_square_of_what_the_bootstrap_asks_for():
    settings = {"mechanism": "mcar", "tails": "normal", "variance_prior": 5.0}
    tables = [two_clusters("mcar", n=60, p=4, seed=seed)[0] for seed in range(3)]
    found = [MNARMixture(2, random_state=i, **settings).fit(X).temper_
             for X in tables for i in range(8)]  # fmt: skip
    powers = np.array([bootstrap_power(X, settings) for X in tables])
    assert np.mean(found) == pytest.approx(np.mean(powers**2), abs=0.05)
    assert np.mean(powers - powers**2) > 0.07  # or the test could not tell


def test_temper_changes_no_label_and_fades_with_more_rows():
    X, _ = two_clusters("mcar", n=100)
    settings = {"mechanism": "mcar", "random_state": 0}
    model = MNARMixture(2, **settings).fit(X)
    plain = MNARMixture(2, temper=1.0, **settings).fit(X)
    assert 0.3 < model.temper_ < 1.0 == plain.temper_
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    raised = plain.predict_proba(X) ** model.temper_
    np.testing.assert_allclose(model.predict_proba(X), raised / raised.sum(axis=1, keepdims=True))
    assert MNARMixture(2, **settings).fit(two_clusters("mcar", n=3000)[0]).temper_ == 1.0


def test_a_row_of_gaps_alone_counts_for_nothing():
    X, _ = two_clusters("limit", n=100)
    more, model = np.vstack([X, np.full((3, 3), np.nan)]), MNARMixture(2, random_state=0).fit(X)
    with pytest.warns(MissingDataWarning, match="most likely to have all values missing"):
        MNARMixture(2, random_state=0).fit(more)
    assert (model.score_samples(more)[-3:] == 0).all()
    for name in ("score", "bic", "aic", "icl"):
        assert getattr(model, name)(more) == pytest.approx(getattr(model, name)(X), rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(more)[-3:].sum(axis=1), 1.0)


def test_a_missing_value_where_training_had_none_says_nothing():
    X, _ = two_clusters("class", n=300)
    X[:, 0] = np.nan_to_num(X[:, 0])
    model = MNARMixture(2, mechanism="class", tails="normal", temper=1.0, random_state=0).fit(X)
    row = X[:1].copy()
    row[0, 0] = np.nan
    log_f = np.log(model.weights_)
    for j in (1, 2):
        lost, x = model.missingness_.parameters["rates"][:, j], row[0, j]
        seen = np.log1p(-lost) + np.array([log_density(model, row[0, j : j + 1], l, j)[0][0]
                                           for l in range(2)])  # fmt: skip
        log_f = log_f + (np.log(lost) if np.isnan(x) else seen)
    expected = np.exp(log_f - np.logaddexp(*log_f))
    np.testing.assert_allclose(model.predict_proba(row)[0], expected, atol=1e-9)


# --- what it finds --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_auto_finds_the_mechanism_and_the_clusters(name):
    X, labels = two_clusters(name, n=600, p=6, seed=1)
    model = MNARMixture(2, random_state=0).fit(X)
    assert model.mechanism_ == name
    assert set(model.missingness_.scores) == set(NAMES)
    given = MNARMixture(2, mechanism=name, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), given.predict(X))
    assert adjusted_rand_score(labels, model.predict(X)) > 0.75
    np.testing.assert_allclose(np.sort(model.means_.mean(axis=1)), [-0.5, 2.0], atol=0.2)


def test_heavy_tails_are_found_and_do_no_harm():
    X, labels = two_clusters("mcar", n=800, p=6, heavy=True)
    model = MNARMixture(2, mechanism="mcar", random_state=0).fit(X)
    assert model.tails_ == "t"
    assert model.degrees_of_freedom_ == 4.0
    normal = MNARMixture(2, mechanism="mcar", tails="normal", random_state=0).fit(X)
    found, without = (adjusted_rand_score(labels, m.predict(X)) for m in (model, normal))
    assert found > max(without, 0.6)
    X, _ = two_clusters("mcar", n=800, p=6)
    assert MNARMixture(2, mechanism="mcar", random_state=0).fit(X).tails_ == "normal"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("d", [3.0, 12.0])
def test_variances_are_drawn_together_as_far_as_they_are_alike(d):
    """Where they have d degrees of freedom around a common one, "auto" is a prior of d rows."""
    rng = np.random.default_rng(0)
    labels = np.arange(150) % 3
    widths = np.sqrt(d / rng.chisquare(d, (3, 300)))
    X = 3.0 * labels[:, None] + rng.normal(size=(150, 300)) * widths[labels]
    X[rng.random(X.shape) < 0.2] = np.nan

    def log_variances(prior):
        model = MNARMixture(3, mechanism="mcar", tails="normal", variance_prior=prior, temper=1.0)
        return np.log(model.set_params(random_state=0).fit(X).covariances_)

    auto = log_variances("auto")
    away = {share: np.abs(auto - log_variances(share * d)).mean() for share in (0.7, 1.0, 1.4)}
    assert min(away, key=away.get) == 1.0
    assert log_variances(1e6).std(axis=0).max() < 1e-3


@pytest.mark.parametrize(("name", "shift"), [("decay", 0.0), ("limit", 30.0)])
def test_auto_chooses_the_reference(name, shift):
    X, _ = two_clusters(name, n=400, p=6, seed=1)
    model = MNARMixture(2, random_state=0).fit(X + shift)  # no warning: zero is not imposed
    assert model.mechanism_ == name
    given = MNARMixture(2, mechanism="decay", reference="auto", random_state=0).fit(X + shift)
    at_zero = (given.reference_ == 0.0).all()
    assert at_zero if shift == 0 else not at_zero


@pytest.mark.parametrize("mechanism", NAMES)
def test_warm_start_takes_every_mechanism_to_other_rows(mechanism):
    X = two_clusters(mechanism)[0]
    model = MNARMixture(2, mechanism=mechanism, random_state=0, warm_start=True).fit(X)
    before = model.lower_bound_
    assert model.fit(X).lower_bound_ >= before - 1e-2
    X[0, :2] = np.nan
    assert np.isfinite(model.fit(X[:-5]).lower_bound_)


def test_warm_start_goes_on_with_the_tails_and_components_asked_for():
    X, _ = two_clusters("decay", n=150)
    model = MNARMixture(2, mechanism="decay", random_state=0, warm_start=True, max_iter=3, tol=0)
    with pytest.warns(ConvergenceWarning):
        first = model.fit(X).lower_bound_
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X).lower_bound_ > first
    model.set_params(mechanism="mcar", max_iter=100, tol=1e-3)
    for tails in ("t", "normal"):
        assert model.set_params(tails=tails).fit(X).tails_ == tails
    with pytest.raises(ValueError, match=r"warm_start continues .* n_components=2; got 3"):
        model.set_params(n_components=3).fit(X)


def test_verbose_names_what_every_iteration_is_of(capsys):
    MNARMixture(2, mechanism="limit", verbose=2, random_state=0).fit(two_clusters("limit")[0])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("  limit, normal, iteration 1: ")
    assert any(line.startswith("start 1, limit, Student t: ") for line in lines)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_several_starts_give_the_best_of_single_ones():
    X, _ = two_clusters("decay", n=80)
    settings = {"mechanism": "decay", "tails": "normal", "init_params": "random", "temper": 1.0,
                "tol": 1e-4, "max_iter": 50}  # fmt: skip
    rng = np.random.RandomState(0)
    single = [MNARMixture(4, random_state=rng, **settings).fit(X).lower_bound_ for _ in range(6)]
    several = MNARMixture(4, random_state=0, n_init=6, **settings).fit(X).lower_bound_
    assert several == pytest.approx(max(single), abs=1e-12)
    assert np.ptp(single) > 0.01


# --- files and messages --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def decay_model():
    return MNARMixture(2, mechanism="decay", random_state=0).fit(two_clusters("decay")[0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"covariances_": -np.ones((2, 3))}, "covariances_ must be >= 1e-300, found -1"),
        ({"degrees_of_freedom_": 0.01}, "freedom must be from 1.5 to 80, found 0.01"),
        ({"degrees_of_freedom_": 81.0}, "freedom must be from 1.5 to 80, found 81"),
        ({"temper_": -1.0}, "temper_ must be >= 0, found -1"),
        ({"missing_values": "n.d."}, "params: missing_values must be"),
        ({"n_components": 2.0}, "params: n_components must be a whole number"),
        ({"weights_init": np.ones(2)}, "params: weights_init must be 2 numbers >= 0 that sum to 1"),
    ],
)
def test_a_model_file_with_a_wrong_number_is_refused(changed, message, decay_model, tmp_path):
    model = copy.deepcopy(decay_model)
    for name, value in changed.items():
        setattr(model, name, value)
    save_model(model, tmp_path)
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mechanism", "mnar"), ("covariance_type", "full"), ("tails", "fat"),
        ("init_params", "best"), ("variance_prior", "much"), ("variance_prior", -1.0),
        ("temper", "steel"), ("temper", -1.0), ("reg_covar", -1.0), ("weights_init", [0.5, 0.6]),
        ("weights_init", [1.0]), ("weights_init", "even"), ("means_init", [[0.0, 0.0]]),
        ("means_init", "zero"), ("n_components", 1000), ("n_jobs", "all"), ("verbose", "yes"),
    ],
)  # fmt: skip
def test_mistakes_are_named(name, value):
    model = MNARMixture(2).set_params(**{name: value})
    with pytest.raises((TypeError, ValueError), match=name):
        model.fit(two_clusters("mcar")[0])
