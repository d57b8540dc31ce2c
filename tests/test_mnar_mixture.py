"""MNARMixture: what it finds, how sure it is, laws, files, mistakes (EM: `test_mixture_em.py`)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from mixture_data import make
from scipy import sparse
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mnarkmeans import MissingDataWarning, MNARMixture
from mnarkmeans._em.mechanisms import MECHANISMS
from mnarkmeans._model_files import ModelFileError, load_model, save_model

NAMES = tuple(MECHANISMS)


@pytest.mark.parametrize("name", NAMES)
def test_auto_finds_the_mechanism_and_the_clusters(name):
    X, labels = make(name, n=1000, p=6, seed=1)
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
    twice = MNARMixture(2, **settings).fit(np.repeat(X, 2, axis=0))
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
        assert other.lower_bounds_ == model.lower_bounds_
        assert (other.n_iter_, other.lower_bound_) == (model.n_iter_, model.lower_bound_)


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


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reference": np.zeros(2)}, "params/reference has 2 numbers for 3 columns"),
        ({"reference": np.inf}, "params/reference must be a finite number"),
        ({"missing_values": "n.d."}, "params: missing_values must be"),
        ({"n_components": 2.0}, "params/n_components must be a whole number"),
        ({"means_init": 3.0}, "params/means_init must be an array"),
        ({"means_init": np.zeros((2, 4))}, "params/means_init has the shape"),
        ({"weights_init": np.ones(2)}, "params: weights_init must sum to 1"),
    ],
)
def test_model_file_with_a_wrong_parameter_names_it(changed, message, tmp_path):
    model = MNARMixture(2, mechanism="decay", random_state=0).fit(make("decay")[0])
    save_model(model.set_params(**changed), tmp_path)
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


@pytest.mark.parametrize("mechanism", NAMES)
def test_warm_start_takes_every_mechanism_to_other_rows(mechanism):
    X = make(mechanism)[0]
    model = MNARMixture(2, mechanism=mechanism, random_state=0, warm_start=True).fit(X)
    before = model.lower_bound_
    assert model.fit(X).lower_bound_ >= before - 1e-2
    X[0, :2] = np.nan
    assert np.isfinite(model.fit(X[:-5]).lower_bound_)


def test_warm_start_goes_on():
    X, _ = make("decay", n=300)
    model = MNARMixture(2, mechanism="decay", random_state=0, warm_start=True, max_iter=3, tol=0)
    with pytest.warns(ConvergenceWarning):
        first = model.fit(X).lower_bound_
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X).lower_bound_ > first


def test_bounds_of_every_round_rise_to_the_last():
    X, _ = make("decay", n=300)
    model = MNARMixture(2, mechanism="decay", tails="normal", tol=1e-7, random_state=0).fit(X)
    assert len(model.lower_bounds_) == model.n_iter_ > 5
    assert model.lower_bounds_[-1] == model.lower_bound_
    assert np.diff(model.lower_bounds_).min() > -1e-7


def test_warm_start_takes_the_tails_asked_for_and_as_many_components():
    X, _ = make("mcar")
    model = MNARMixture(2, tails="normal", random_state=0, warm_start=True).fit(X)
    assert model.set_params(tails="t").fit(X).tails_ == "t"
    assert model.set_params(tails="normal").fit(X).tails_ == "normal"
    with pytest.raises(ValueError, match=r"warm_start continues .* n_components=2; got 3"):
        model.set_params(n_components=3).fit(X)


def test_doubt_about_weighted_rows_is_that_about_repeated_ones():
    X, _ = make("mcar", n=60)
    once, weighted, repeated = (
        np.mean([MNARMixture(2, mechanism="mcar", random_state=seed).fit(X, None, weights).temper_
                 for seed in range(6)])
        for X, weights in ((X, None), (X, np.full(len(X), 30.0)), (np.repeat(X, 30, axis=0), None))
    )  # fmt: skip
    assert weighted == pytest.approx(repeated, abs=0.05)
    assert weighted > once + 0.05


def test_verbose_names_what_every_round_is_of(capsys):
    MNARMixture(2, mechanism="limit", verbose=2, random_state=0).fit(make("limit")[0])
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("  limit, normal, iteration 1: ")
    assert any(line.startswith("start 1, limit, Student t: ") for line in told)


@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
def test_every_way_to_begin(init_params):
    X, labels = make("mcar", n=400, p=6)
    model = MNARMixture(
        2, mechanism="mcar", init_params=init_params, n_init=5, max_iter=500, random_state=0
    ).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_criteria_are_those_of_the_definition(name):
    X, _ = make(name, n=60)
    model = MNARMixture(2, mechanism=name, temper=0.5, tails="t", random_state=0).fit(X)
    n, p = X.shape
    of_mechanism = {
        "mcar": lambda rates: len(np.unique(rates)),
        "class": lambda rates: len(np.unique(rates)),
        "decay": lambda t, c: 2,
        "threshold": lambda tau: 2 * p,  # an end point costs twice
        "limit": lambda c, zeta: p + 1,
    }[name](**model.missingness_.parameters)
    parameters = 1 + 2 * p + 2 * p + 1 + of_mechanism
    total = model.score_samples(X).sum()
    shares = model.predict_proba(X) ** 2  # undo the temper
    shares /= shares.sum(axis=1, keepdims=True)
    bic = parameters * np.log(n) - 2 * total
    assert model.score(X) == pytest.approx(total / n)
    assert model.aic(X) == pytest.approx(2 * parameters - 2 * total)
    assert model.bic(X) == pytest.approx(bic)
    assert model.icl(X) == pytest.approx(bic - 2 * xlogy(shares, shares).sum())


def test_a_row_of_gaps_alone_changes_nothing():
    X, _ = make("limit")
    more = np.vstack([X, np.full((3, X.shape[1]), np.nan)])
    model = MNARMixture(2, random_state=0).fit(X)
    with pytest.warns(MissingDataWarning, match="likeliest to lose everything"):
        other = MNARMixture(2, random_state=0).fit(more)
    np.testing.assert_allclose(other.means_, model.means_, rtol=1e-6)
    assert (model.score_samples(more)[-3:] == 0).all()
    for name in ("score", "bic", "aic", "icl"):
        assert getattr(model, name)(more) == pytest.approx(getattr(model, name)(X), rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(more)[-3:].sum(axis=1), 1.0)
    assert not np.isnan(model.impute(more)).any()


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
        (
            {"means_init": [[0.0, 0.0]]},
            r"means_init must have shape \(n_components=2, n_features=3\)",
        ),
        ({"means_init": "zero"}, "means_init must be an array of numbers; got 'zero'"),
        ({"weights_init": "even"}, "weights_init must be an array of numbers; got 'even'"),
        ({"n_components": 1000}, "n_components=1000. Ask for fewer"),
        ({"n_jobs": "all"}, "n_jobs must be None or a whole number; got 'all'"),
        ({"verbose": "yes"}, "verbose must be a whole number >= 0; got 'yes'"),
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
    with pytest.raises((TypeError, ValueError), match=message):
        MNARMixture(**{"n_components": 2, **settings}).fit(make("mcar")[0])


def test_a_reference_far_away_is_told_where_it_matters():
    X = make("mcar")[0] + 100.0
    with pytest.warns(MissingDataWarning, match=r"'decay' and 'threshold' .* or another mechanism"):
        MNARMixture(2, mechanism="decay", random_state=0).fit(X)
    MNARMixture(2, mechanism="class", random_state=0).fit(X)  # warnings are errors


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
