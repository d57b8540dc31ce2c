"""MNARMixture: scikit-learn's mixture on complete data, an EM of plain loops on data with gaps."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.special import ndtr
from scipy.stats import t as student_t
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from mnarkmeans import MNARMixture
from mnarkmeans._data.validation import observe
from mnarkmeans._io.model_files import ModelFileError, load_model, save_model
from mnarkmeans._penalty.em import Problem
from mnarkmeans._penalty.mechanisms import MECHANISMS

NAMES = tuple(MECHANISMS)


def make(loss: str, n=200, p=3, seed=0, heavy=False) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping clusters, normal or t, that lose values in one of the five ways."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    noise = rng.standard_t(3, size=(n, p)) if heavy else rng.normal(size=(n, p))
    X = np.where(labels[:, None] == 0, -0.5, 2.0) + noise * (1 + 0.3 * labels)[:, None]
    lost = {
        "mcar": np.full(X.shape, 0.3),
        "class": np.where(labels == 0, 0.1, 0.5)[:, None] + np.zeros(p),
        "decay": 0.9 * np.exp(-2.0 * X**2),
        "threshold": (np.abs(X) < 0.5).astype(float),
        "limit": ndtr((-0.3 - X) / 0.4),
    }[loss]
    X[rng.random(X.shape) < lost] = np.nan
    some = ~np.isnan(X).all(axis=1)
    return X[some], labels[some]


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


@pytest.mark.parametrize("freedom", [0.0, 5.0])
@pytest.mark.parametrize("name", NAMES)
def test_likelihood_never_falls(name, freedom):
    X, labels = make(name, n=300, heavy=freedom > 0)
    problem = Problem(observe(X), spherical=False, reg_covar=0.0, threads=1)
    state = problem.begin(problem.sums_of(np.eye(2)[labels]), name, freedom)
    bounds = [state.bound for state in problem.run(state, max_iter=60, tol=0.0)]
    # The prior of "class" and the nodes of heavy tails have a part in the steps.
    slack = 1e-4 if name == "class" or freedom else 1e-7
    assert np.diff(bounds).min() > -slack


@pytest.mark.parametrize("name", NAMES)
def test_auto_finds_the_mechanism_and_the_clusters(name):
    X, labels = make(name, n=1000, p=6)
    model = MNARMixture(2, random_state=0).fit(X)
    assert model.mechanism_ == name
    assert set(model.missingness_.scores) == set(NAMES)
    told = MNARMixture(2, mechanism=name, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), told.predict(X))
    assert adjusted_rand_score(labels, model.predict(X)) > 0.75
    np.testing.assert_allclose(np.sort(model.means_.mean(axis=1)), [-0.5, 2.0], atol=0.2)


def test_probabilities_are_as_sure_as_they_say():
    X, labels = make("limit", n=4000)
    model = MNARMixture(2, random_state=0).fit(X)
    sure = model.predict_proba(X).max(axis=1)
    low = int(model.means_[:, 0].argmax())
    right = (model.predict(X) == low) == (labels == 1)
    for least in (0.5, 0.7, 0.9):
        part = (sure >= least) & (sure < least + 0.2)
        assert abs(right[part].mean() - sure[part].mean()) < 0.05


def test_heavy_tails_are_found_and_do_no_harm():
    X, labels = make("mcar", n=800, p=6, heavy=True)
    model = MNARMixture(2, mechanism="mcar", random_state=0).fit(X)
    assert model.tails_ == "t"
    assert 2.0 < model.degrees_of_freedom_ < 5.0
    normal = MNARMixture(2, mechanism="mcar", tails="normal", random_state=0).fit(X)
    found, without = (adjusted_rand_score(labels, m.predict(X)) for m in (model, normal))
    assert found > max(without, 0.6)
    X, _ = make("mcar", n=800, p=6)
    assert MNARMixture(2, mechanism="mcar", random_state=0).fit(X).tails_ == "normal"


def test_variances_are_drawn_together_as_far_as_they_are_alike():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=150)
    for widths, alike in (([1.0, 1.0, 1.0], True), ([0.3, 1.0, 3.0], False)):
        X = 8.0 * labels[:, None] + rng.normal(size=(150, 5)) * np.array(widths)[labels, None]
        X[:, :4][rng.random((150, 4)) < 0.3] = np.nan
        spreads = [
            np.log(MNARMixture(3, variance_prior=prior, random_state=0).fit(X).covariances_)
            for prior in (0.0, "auto", 1e6)
        ]
        free, auto, tied = (spread.std(axis=0).mean() for spread in spreads)
        assert tied < 1e-3 < auto <= free
        assert auto < 0.5 * free if alike else auto > 0.8 * free


def test_few_rows_make_less_sure_and_labels_stay():
    X, _ = make("mcar", n=100)
    model = MNARMixture(2, random_state=0).fit(X)
    plain = MNARMixture(2, temper=1.0, random_state=0).fit(X)
    assert 0.3 < model.temper_ < 1.0 == plain.temper_
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    raised = plain.predict_proba(X) ** model.temper_
    np.testing.assert_allclose(model.predict_proba(X), raised / raised.sum(axis=1, keepdims=True))
    order = np.random.default_rng(0).permutation(len(X))
    again = MNARMixture(2, random_state=0).fit(X[order])
    assert again.temper_ == pytest.approx(model.temper_, abs=1e-3)
    X, _ = make("mcar", n=3000)
    assert MNARMixture(2, random_state=0).fit(X).temper_ == 1.0


# --- laws -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_threads_weights_and_storage_change_nothing(name):
    X, _ = make(name, n=150)
    settings = {"mechanism": name, "tails": "normal", "random_state": 0, "tol": 1e-8}
    settings["max_iter"] = 1000
    model = MNARMixture(2, n_jobs=1, **settings).fit(X)
    more = MNARMixture(2, n_jobs=3, **settings).fit(X)
    np.testing.assert_array_equal(model.means_, more.means_)
    np.testing.assert_array_equal(model.predict_proba(X), more.predict_proba(X))
    twice = MNARMixture(2, **settings).fit(np.vstack([X, X]))
    weighted = MNARMixture(2, **settings).fit(X, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(twice.means_, weighted.means_, atol=1e-6)
    rows, columns = np.nonzero(~np.isnan(X))
    stored = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    as_sparse = MNARMixture(2, **settings).fit(stored)
    np.testing.assert_allclose(as_sparse.means_, model.means_, atol=1e-6)
    np.testing.assert_allclose(as_sparse.predict_proba(stored), model.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(as_sparse.score_samples(stored), model.score_samples(X), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_model_files_and_pickles_give_the_same_model_back(name, tmp_path):
    X, _ = make(name, n=150)
    model = MNARMixture(2, mechanism=name, random_state=0).fit(X)
    save_model(model, tmp_path)
    for other in (load_model(tmp_path).estimator, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.score_samples(X), model.score_samples(X))
        np.testing.assert_array_equal(other.impute(X), model.impute(X))
        assert other.mechanism_ == name
        assert other.missingness_.scores == model.missingness_.scores


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("covariances_", -np.ones((2, 3)), "covariances_ must be positive"),
        ("degrees_of_freedom_", 0.01, "freedom must be 0 or 1.5 to 80"),
        ("temper_", -1.0, "temper_ must not be negative"),
    ],
)
def test_model_file_with_a_wrong_number_is_refused(name, value, message, tmp_path):
    model = MNARMixture(2, mechanism="decay", random_state=0).fit(make("decay")[0])
    setattr(model, name, value)
    save_model(model, tmp_path)
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path)


def test_sample_has_the_moments_and_the_gaps_of_the_mixture():
    X, _ = make("class", n=2000)
    model = MNARMixture(2, mechanism="class", random_state=0).fit(X)
    drawn, labels = model.sample(20_000)
    assert not np.isnan(drawn).any()
    for l in range(2):
        np.testing.assert_allclose(drawn[labels == l].mean(axis=0), model.means_[l], atol=0.1)
    drawn, labels = model.sample(20_000, gaps=True)
    rates = np.stack([np.isnan(drawn[labels == l]).mean(axis=0) for l in range(2)])
    np.testing.assert_allclose(rates, model.missingness_.parameters["rates"], atol=0.03)


def test_warm_start_goes_on():
    X, _ = make("decay", n=300)
    model = MNARMixture(2, mechanism="decay", random_state=0, warm_start=True, max_iter=3, tol=0)
    with pytest.warns(ConvergenceWarning):
        first = model.fit(X).lower_bound_
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X).lower_bound_ > first


@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
def test_every_way_to_begin(init_params):
    X, labels = make("mcar", n=400, p=6)
    model = MNARMixture(
        2, mechanism="mcar", init_params=init_params, n_init=5, max_iter=500, random_state=0
    ).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.8


def test_icl_is_bic_and_entropy():
    X, _ = make("mcar")
    model = MNARMixture(2, random_state=0).fit(X)
    shares = model.predict_proba(X)
    assert model.icl(X) == pytest.approx(model.bic(X) - 2 * (shares * np.log(shares)).sum())


def test_a_gap_where_training_had_none_says_nothing():
    X, _ = make("class", n=300)
    X[:, 0] = np.nan_to_num(X[:, 0])
    model = MNARMixture(2, mechanism="class", random_state=0).fit(X)
    row = X[:1].copy()
    row[0, 0] = np.nan
    without = MNARMixture(2, mechanism="class", random_state=0).fit(X).predict_proba(row)
    assert np.isfinite(without).all()
    assert model.score_samples(row).shape == (1,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mechanism": "mnar"}, "mechanism must be"),
        ({"covariance_type": "full"}, "covariance_type must be"),
        ({"weights_init": [0.5, 0.6]}, "must sum to 1"),
        ({"weights_init": [1.0]}, "2 numbers"),
        ({"means_init": [[0.0, 0.0]]}, "means_init must have shape"),
        ({"reg_covar": -1.0}, "reg_covar"),
        ({"tails": "fat"}, "tails must be"),
        ({"variance_prior": "much"}, "variance_prior must be"),
        ({"variance_prior": -1.0}, "variance_prior"),
        ({"temper": "steel"}, "temper must be"),
        ({"temper": -1.0}, "temper"),
        ({"init_params": "best"}, "init_params must be"),
    ],
)
def test_mistakes_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        MNARMixture(2, **settings).fit(make("mcar")[0])


def expected_failed_checks(estimator):
    """Those on sparse input want two columns of predict_proba; a mixture has one per component."""
    if estimator.n_components == 2:
        return {}
    reason = "predict_proba has one column for each component, as GaussianMixture has"
    return dict.fromkeys(("check_estimator_sparse_matrix", "check_estimator_sparse_array"), reason)


@pytest.mark.filterwarnings("ignore::mnarkmeans.MissingDataWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [MNARMixture(), MNARMixture(2), MNARMixture(2, mechanism="class")],
    expected_failed_checks=expected_failed_checks,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [1, 3])
def test_sparse_probabilities_have_a_column_for_each_component(k):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 3))
    X[X < 0.3] = 0.0
    table = sparse.csr_array(X[X.any(axis=1)])
    shares = MNARMixture(k, random_state=0).fit(table).predict_proba(table)
    assert shares.shape == (table.shape[0], k)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
