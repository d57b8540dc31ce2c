"""What people type first: masked arrays, numbers by name, codes, counts, dates, text."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from places import grouped_rows, to_csr
from scipy import sparse

from mnarkmeans import MiniBatchMNARKMeans, MissingDataWarning, MNARKMeans, load
from mnarkmeans.missingness import diagnose

nan = np.nan


@pytest.fixture
def X():
    return grouped_rows(120, 4, apart=6.0)


def fit(X, **options):
    return MNARKMeans(3, **{"lam": 0.5, "n_init": 2, "random_state": 0} | options).fit(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_a_masked_array_masks_is_missing(X, dtype):
    X = X.astype(dtype)
    masked = np.ma.array(np.where(np.isnan(X), 1e6, X), mask=np.isnan(X))
    expected, model = fit(X), fit(masked)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert model.cluster_centers_.dtype == dtype
    np.testing.assert_array_equal(model.predict(masked), expected.labels_)
    np.testing.assert_array_equal(model.impute(masked), expected.impute(X))
    whole = np.ma.array([[1, 2], [3, 4], [50, 60]], mask=[[0, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(
        fit(whole, n_init=1, init=[[1, 2], [3, 4], [50, 60]]).impute(whole)[:, 0], [1, 3, 50]
    )
    assert diagnose(masked).missing_share == diagnose(X).missing_share


@pytest.mark.parametrize("kind", [dict, pd.Series])
@pytest.mark.parametrize("estimator", [MNARKMeans, MiniBatchMNARKMeans])
def test_numbers_by_name_are_aligned_with_the_columns(X, kind, estimator, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    lam, reference = [0.1, 0.2, 0.3, 0.4], [0.0, -1.0, 1.0, 2.0]

    def run(lam, reference):
        return estimator(3, lam=lam, reference=reference, random_state=0).fit(frame)

    expected = run(lam, reference)
    given = [kind(dict(zip("dcba", values[::-1], strict=True))) for values in (lam, reference)]
    model = run(*given)
    np.testing.assert_array_equal(model.lam_, lam)
    np.testing.assert_array_equal(model.reference_, reference)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(frame), expected.labels_)
    for wrong, message in [
        ({"a": 1, "b": 1, "c": 1, "e": 1}, "'e' is not a column of X"),
        ({"a": 1, "b": 1, "c": 1}, "'d' is not in it"),
    ]:
        with pytest.raises(ValueError, match=f"lam must have one number .* {message}"):
            run(kind(wrong), 0.0)
        with pytest.raises(ValueError, match=f"reference must have one number .* {message}"):
            run(0.5, kind(wrong))


def test_columns_without_names_are_called_by_number(X):
    by_number = fit(X, reference=pd.Series([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(by_number.reference_, [1, 2, 3, 4])
    with pytest.raises(ValueError, match="'a' is not a column of X"):
        fit(X, reference={"a": 1.0})
    doubled = pd.Series([1.0, 2.0, 3.0, 4.0, 5.0], index=[0, 1, 2, 3, 3])
    with pytest.raises(ValueError, match="3 is in it twice"):
        fit(X, reference=doubled)


def test_n_init_auto_is_ten(X):
    assert len(fit(X, n_init="auto").start_losses_) == 10
    with pytest.raises(TypeError, match="n_init must be"):
        fit(X, n_init="many")


def test_missing_values_none_is_refused(X):
    with pytest.raises(TypeError, match="missing_values must be nan or a number; got None"):
        fit(X, missing_values=None)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_and_dates_are_refused_with_their_column(frame):
    text = frame({"a": [1.0, 2.0, 3.0], "tissue": ["x", "liver", "y"]})
    with pytest.raises(ValueError, match="column 'tissue' holds 'x'"):
        fit(text)
    when = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[ms]")
    for table in (frame({"a": [1.0, 2.0, 3.0], "day": when}), frame({"day": when})):
        with pytest.raises(ValueError, match=r"'day' holds (dates|'20)"):
            fit(table)
    with pytest.raises(ValueError, match="holds dates"):
        fit(when[:, None])
    with pytest.raises(ValueError, match="column 1 holds 'b'"):
        fit(np.array([[1, "b"], [2, "c"]], dtype=object))


@pytest.mark.parametrize("code", [-999, -2147483648, 9999])
@pytest.mark.parametrize("form", [np.asarray, to_csr])
def test_codes_of_missing_values_are_noticed(X, code, form):
    coded = X.copy()
    coded[::7, 2] = code
    with pytest.warns(MissingDataWarning, match=rf"{code} is far from all other values of 2: .*"):
        fit(form(coded))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(coded, missing_values=code)
        fit(np.where(np.isnan(X), X, 300.0 * X))  # -999 within the range of values


def test_counts_without_a_logarithm_are_noticed():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.3, 20.0, size=(100, 30))).astype(float)
    counts[counts == 0] = nan
    counts[0] = 1.0
    for table in (counts, to_csr(counts), sparse.csc_array(to_csr(counts))):
        with pytest.warns(MissingDataWarning, match=r"whole numbers up to .* raw counts"):
            fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(np.log1p(counts))
        fit(rng.integers(0, 255, size=(100, 5)))  # grey levels
        fit(rng.integers(1, 6, size=(100, 5)))  # ratings


def test_one_far_feature_is_enough_to_warn_about_the_reference(X):
    X[:, 3] += 1000.0
    with pytest.warns(MissingDataWarning, match="far outside the observed values of 1 of 4"):
        fit(X)


def test_clusters_of_one_row_are_noticed(X):
    X = np.where(np.isnan(X), 3.0, X)
    X[0] = 500.0
    with pytest.warns(UserWarning, match="1 of 3 clusters have a single row"):
        fit(X)
