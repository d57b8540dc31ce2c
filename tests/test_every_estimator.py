"""What holds for every estimator: scikit-learn's checks, and laws of tables, weights and units."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from backends import grouped_rows, to_csr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from mnarkmeans import (
    MiniBatchMNARKMeans,
    MissingDataWarning,
    MNARKMeans,
    MNARKMeansCV,
    MNARMixture,
    SelectionWarning,
    load,
)
from mnarkmeans._em.mechanisms import MECHANISMS

DRAWN_BY_POSITION = dict.fromkeys(  # as for its own KMeans
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "starts are drawn by the position of rows, and these checks shuffle them",
)
ONE_COLUMN = dict.fromkeys(
    ("check_estimator_sparse_matrix", "check_estimator_sparse_array"),
    "predict_proba has one column for each component, as GaussianMixture has",
)
CHECKED = [
    MNARKMeans(lam=0.5, n_init=3),
    MNARKMeans(n_init=2),
    MNARKMeansCV(2, n_splits=2, n_init=2, lams=[0.0, 0.5]),
    MiniBatchMNARKMeans(n_clusters=3, lam=0.5, n_init=2),
    MNARMixture(),
    MNARMixture(2, mechanism="class", temper=1.0),
]
try:
    from mnarkmeans.dask import MNARKMeans as OnDask
except ImportError:
    OnDask = None
else:
    CHECKED.append(OnDask(3, lam=0.5, n_init=2))


def expected_failed_checks(estimator):
    if isinstance(estimator, MNARMixture):
        return ONE_COLUMN if estimator.n_components == 1 else {}
    return {} if isinstance(estimator, MNARKMeansCV) else DRAWN_BY_POSITION


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failed_checks)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # Sparse checks have rows without values; the tables of others are tiny.
        for category in (MissingDataWarning, ConvergenceWarning, SelectionWarning):
            warnings.simplefilter("ignore", category)
        check(estimator)


ESTIMATORS = {
    "lam given": MNARKMeans(3, lam=0.5, n_init=3),
    "lam chosen": MNARKMeans(3, n_init=3),
    "per feature": MNARKMeans(3, lam=[0.1, 0.5, 0.0, 2.0, 1.0], reference="min", init="random"),
    "search": MNARKMeansCV([2, 3], lams=[0.0, 0.3, 1.0, 3.0], n_splits=4, n_init=2),
    "batches": MiniBatchMNARKMeans(3, lam=0.5, batch_size=40, n_init=2, max_iter=4),
    **{name: MNARMixture(3, mechanism=name, max_iter=20) for name in MECHANISMS},
}
every = pytest.mark.parametrize("name", ESTIMATORS)


def fit(name, X, sample_weight=None, **changes):
    model = clone(ESTIMATORS[name]).set_params(random_state=0).set_params(**changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twenty iterations may be few, candidates too
        warnings.simplefilter("error", RuntimeWarning)  # of invalid values, say
        return model.fit(X, sample_weight=sample_weight)


def centers_of(model):
    return model.means_ if isinstance(model, MNARMixture) else model.cluster_centers_


@pytest.fixture(scope="module")
def X():
    """Values near zero are likelier to be missing; some are zero."""
    X = grouped_rows(140, 5, apart=3.0, share=0.0)
    X[np.random.default_rng(0).random(X.shape) < np.exp(-(X**2))] = np.nan
    X[:9, 0] = 0.0
    return X[~np.isnan(X).all(axis=1)]


@pytest.fixture(scope="module")
def base(X):
    """A fit of each."""
    return {name: fit(name, X) for name in ESTIMATORS}


@every
def test_threads_instruction_sets_and_a_second_fit_change_no_bit(name, X, base, each_level):
    for n_jobs in (1, 3):
        with threadpool_limits(n_jobs):
            model = fit(name, X, n_jobs=n_jobs)
        np.testing.assert_array_equal(centers_of(model), centers_of(base[name]))
        np.testing.assert_array_equal(model.predict(X), base[name].predict(X))


def forms_of(X, folder):
    """The same table in every form that is accepted."""
    gaps = np.isnan(X)
    of_r = X.copy()  # its NA is a NaN whose arithmetic the processor complains of
    of_r.view(np.uint64)[gaps] = 0x7FF00000000007A2
    np.save(folder / "X.npy", X)
    mapped = np.load(folder / "X.npy", mmap_mode="r")  # writing to it would be an error
    nulls = {name: [None if np.isnan(x) else x for x in X[:, j]] for j, name in enumerate("abcde")}
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(len(X)) + 7)
    return [
        of_r, mapped, X.tolist(), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2],
        np.ma.array(np.where(gaps, 1e3, X), mask=gaps), np.where(gaps, None, X).astype(object),
        to_csr(X), to_csr(X).tocsc(),
        frame, frame.astype("Float64"), frame.astype("double[pyarrow]"), pl.DataFrame(nulls),
    ]  # fmt: skip


@every
def test_every_form_of_a_table_gives_the_same_model(name, X, base, tmp_path):
    for table in forms_of(X, tmp_path):
        model = fit(name, table)
        np.testing.assert_allclose(centers_of(model), centers_of(base[name]), atol=1e-7)
        np.testing.assert_array_equal(model.predict(table), base[name].predict(X))
        filled = model.impute(table)
        if hasattr(table, "columns"):
            assert type(filled) is type(table)
            assert list(filled.columns) == list(table.columns) == model.feature_names_in_.tolist()
            if isinstance(table, pd.DataFrame):
                assert filled.index.equals(table.index)
            filled = filled.to_numpy().astype(float)
        np.testing.assert_allclose(filled, base[name].impute(X), atol=1e-6)
        np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    for table in forms_of(X, tmp_path)[-4:]:  # frames may come to a model of another kind
        np.testing.assert_array_equal(model.predict(table), base[name].predict(X))
    coded = np.where(np.isnan(X), -7.5, X)
    model = fit(name, coded, missing_values=-7.5)
    np.testing.assert_array_equal(centers_of(model), centers_of(base[name]))
    np.testing.assert_array_equal(model.impute(coded), base[name].impute(X))


@every
def test_copies_of_a_fitted_model_are_like_it_and_the_table_stays_as_it_was(
    name, X, base, tmp_path
):
    model, before = base[name], X.copy()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    model.save(tmp_path)
    for copy in (pickle.loads(pickle.dumps(model)), load(tmp_path), fit(name, X)):
        for method in ("predict", "score", "impute", "score_samples"):
            if hasattr(model, method):
                expected = getattr(model, method)(X)
                np.testing.assert_array_equal(getattr(copy, method)(X), expected)
        if name in MECHANISMS:
            for fitted in ("n_iter_", "lower_bounds_", "mechanism_", "tails_"):
                assert getattr(copy, fitted) == getattr(model, fitted)
    np.testing.assert_array_equal(X, before)


@every
def test_rows_without_values_or_weight_change_nothing(name, X, base):
    more, far = (np.vstack([X, np.full((3, 5), value)]) for value in (np.nan, 40.0))
    model = clone(ESTIMATORS[name]).set_params(random_state=0)
    if name != "batches":  # in which they take places
        weights = np.r_[np.ones(len(X)), np.zeros(3)]
        for other in (fit(name, more), fit(name, far, sample_weight=weights)):
            np.testing.assert_allclose(
                centers_of(other), centers_of(base[name]), rtol=1e-6, atol=1e-9
            )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", MissingDataWarning)
        with pytest.raises(MissingDataWarning, match=r"3 row\(s\) have no observed value"):
            model.fit(more)
    filled = base[name].impute(more)
    assert not np.isnan(filled).any()
    assert len(set(base[name].predict(more)[-3:])) == 1


@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - MECHANISMS.keys()))
def test_a_table_in_other_units_with_its_columns_turned_gives_the_same_clusters(name, X, base):
    turned, changes = slice(None, None, -1), {}
    if name == "per feature":
        changes["lam"] = ESTIMATORS[name].lam[turned]
    other = fit(name, 8.0 * X[:, turned], **changes)  # a power of two: no digit is lost
    found, expected = (np.sort(c, axis=0) for c in (centers_of(other), centers_of(base[name])))
    np.testing.assert_allclose(found[:, turned] / 8.0, expected, rtol=1e-6, atol=1e-9)
    labels = other.predict(8.0 * X[:, turned]), base[name].predict(X)
    assert adjusted_rand_score(*labels) == 1.0


@pytest.mark.parametrize("name", ["lam given", "lam chosen", "search", *MECHANISMS])
def test_a_weight_is_a_row_repeated(name):
    """Groups are far apart: whichever rows the starts are drawn from, they end alike."""
    X = grouped_rows(120, 5, apart=8.0)
    weights = np.random.default_rng(1).integers(1, 4, size=len(X))
    weighted = fit(name, X, sample_weight=weights, n_init=10)
    repeated = fit(name, np.repeat(X, weights, axis=0), n_init=10)
    one, other = (np.sort(centers_of(model), axis=0) for model in (weighted, repeated))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    for total in ("inertia_", "lower_bound_", "lam_"):
        found, expected = (getattr(model, total, 0.0) for model in (weighted, repeated))
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["lam given", "per feature", "search", "batches"])
def test_weights_in_another_unit_change_nothing(name, X):
    """To mixtures, and the choice of lam by one, they are numbers of rows."""
    weights = np.random.default_rng(1).integers(1, 4, size=len(X))
    one, other = (fit(name, X, sample_weight=unit * weights) for unit in (1.0, 4.0))
    np.testing.assert_array_equal(centers_of(other), centers_of(one))
