"""Every accepted form of a table gives the result of the plain array, others a clear error."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from backends import grouped_rows, to_csr
from scipy import sparse

from mnarkmeans import (
    MiniBatchMNARKMeans,
    MissingDataWarning,
    MNARKMeans,
    MNARKMeansCV,
    MNARMixture,
    load,
)
from mnarkmeans.displays import CentersDisplay
from mnarkmeans.metrics import cluster_markers
from mnarkmeans.missingness import diagnose

# --- mistakes ------------------------------------------------------------------------------------

SMALL = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, np.nan], [5.0, 6.0]])


def fit_small(table=SMALL, n_clusters=2, sample_weight=None, **options):
    return MNARKMeans(n_clusters, **{"lam": 0.5, **options}).fit(table, sample_weight=sample_weight)


WHOLE, FINITE = "must be a whole number >= 1; got", "must be a finite number >= 0; got"
INFINITE = np.where(SMALL == 6, np.inf, SMALL)


BAD_VALUES = [
    ({"lam": -1.0}, f"lam {FINITE} -1.0"),
    ({"lam": np.nan}, f"lam {FINITE} nan"),
    ({"lam": np.inf}, f"lam {FINITE} inf"),
    ({"lam": "best"}, "lam must be 'auto', a number >= 0 or an array of them; got 'best'"),
    ({"n_clusters": 0}, f"n_clusters {WHOLE} 0"),
    ({"n_clusters": 5}, "n_samples=4 usable rows .* n_clusters=5"),
    ({"n_init": 0}, f"n_init {WHOLE} 0"),
    ({"max_iter": 0}, f"max_iter {WHOLE} 0"),
    ({"tol": -1e-3}, f"tol {FINITE} -0.001"),
    ({"algorithm": "elkan"}, "algorithm must be 'auto', 'lloyd', 'hartigan'; got"),
    ({"init": "pca"}, "init must be 'k-means..', 'random', an array or a callable"),
    ({"init": [[1.0]]}, r"init must have shape \(n_clusters=2, n_features=2\); got"),
    ({"init": SMALL[1:3]}, "init must be finite"),
    ({"reference": [0.0] * 3}, r"one per feature \(n_features=2\); got .*\(3,\)"),
    ({"reference": np.nan}, "reference must be finite; got nan"),
    ({"reference": "max"}, "reference must be 'min', 'auto', a number or an array"),
    ({"missing_values": np.inf}, "missing_values must be nan or a finite number"),
    ({"n_jobs": 0}, "n_jobs == 0"),
    ({"sample_weight": [1.0, 1.0]}, "sample_weight"),
    ({"sample_weight": [1.0, -1.0, 1, 1]}, "(?i)negative"),
    ({"sample_weight": [0.0] * 4}, "zero for every row|at least one non-zero"),
    ({"table": INFINITE}, "infinity: inf in row 3, column 1"),
    ({"table": np.full((4, 2), -np.inf)}, "infinity: -inf in row 0, column 0"),
    ({"table": np.full((4, 2), np.nan)}, "All 4 x 2 values are missing"),
    ({"table": np.empty((0, 2))}, r"0 sample\(s\)"),
    ({"table": np.empty((3, 0))}, r"0 feature\(s\)"),
    ({"table": [1.0, 2.0]}, "Expected 2D array, got 1D array"),
    ({"table": [["a", 1.0], ["b", 2.0]]}, "numbers only: column 0 holds"),
    ({"table": [[1.0, 2.0]]}, "n_samples=1 usable rows .* n_clusters=2"),
]
BAD_TYPES = [
    ({"lam": None}, "lam must be a number >= 0; got None"),
    ({"n_clusters": 2.5}, f"n_clusters {WHOLE} 2.5"),
    ({"n_init": "many"}, f"n_init {WHOLE} 'many'"),
    ({"reference": object()}, "reference must be a number"),
    ({"missing_values": "NA"}, "missing_values must be nan or a number; got 'NA'"),
    ({"missing_values": None}, "missing_values must be nan or a number; got None"),
]


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [*((ValueError, *case) for case in BAD_VALUES), *((TypeError, *case) for case in BAD_TYPES)],
)
def test_mistakes_are_named(error, options, message):
    with pytest.raises(error, match=message):
        fit_small(**options)


@pytest.mark.parametrize(
    ("rows", "message"),
    [(np.ones((2, 3)), "3 features, but MNARKMeans is expecting 2"), ([[np.inf, 0.0]], "infinity")],
)
def test_bad_input_at_predict(rows, message):
    with pytest.raises(ValueError, match=message):
        fit_small().predict(rows)


NAMES = list("abcd")


@pytest.fixture
def X():
    return grouped_rows(120, 4, apart=6.0)


def fit(X, **options):
    return MNARKMeans(3, **{"lam": 0.5, "n_init": 2, "random_state": 0} | options).fit(X)


# --- sparse matrices -----------------------------------------------------------------------------


def test_a_matrix_that_points_outside_is_refused(X):
    crossed, *outside = (to_csr(X) for _ in range(4))
    for wrong, feature in zip(outside, (4, 10**6, -1), strict=True):
        wrong.indices[40] = feature
    crossed.indptr[7], crossed.indptr[8] = crossed.indptr[8] + 5, crossed.indptr[7]
    for wrong in (crossed, *outside):
        with pytest.raises(ValueError, match="not a valid CSR matrix"):
            fit(wrong)
    with pytest.raises(ValueError, match="features"):
        fit(sparse.csr_array((2, 2**31)))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_order_and_duplicates_of_stored_entries_do_not_matter(X, index):
    csr, expected = to_csr(X), fit(to_csr(X))
    rows, pointers = csr.tocoo().row, csr.indptr.astype(index)
    order = np.lexsort((np.random.default_rng(0).random(csr.nnz), rows))  # within each row
    data, columns = csr.data[order], csr.indices[order].astype(index)
    shuffled = sparse.csr_array((data, columns, pointers), shape=csr.shape)
    stale = shuffled.copy()
    stale.has_sorted_indices = stale.has_canonical_format = True  # believed, and wrong
    twice = np.repeat(data / 2, 2), np.repeat(columns, 2), 2 * pointers
    for other in (shuffled, stale, sparse.csr_array(twice, shape=csr.shape)):
        before = other.data.copy()
        found = fit(other)
        assert np.array_equal(found.labels_, expected.labels_)
        assert np.array_equal(found.cluster_centers_, expected.cluster_centers_)
        assert np.array_equal(other.data, before)


# --- codes of missing values ---------------------------------------------------------------------

CODE = 0.1  # which no binary number is: float32 and float64 have different ones


def every_entry(X):
    """In a CSR matrix, gaps too."""
    n, p = X.shape
    return sparse.csr_array(
        (X.ravel(), np.tile(np.arange(p), n), np.arange(n + 1) * p), shape=X.shape
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, every_entry])
def test_markers_and_figures_see_the_gaps_that_the_fit_saw(X, dtype, form):
    X = X.astype(dtype)
    coded = X.copy()
    coded.ravel()[np.flatnonzero(np.isnan(X))[::2]] = CODE
    model = fit(form(coded), missing_values=CODE)
    labels = fit(X).labels_
    np.testing.assert_array_equal(model.labels_, labels)
    expected = cluster_markers(X, labels)
    by_labels = cluster_markers(form(coded), labels, missing_values=CODE)
    for found in (by_labels, cluster_markers(form(coded), model)):
        np.testing.assert_allclose(found.effect, expected.effect, rtol=1e-5)
    shown = CentersDisplay.from_estimator(model, form(coded)).missing_share
    share = np.stack([np.isnan(X[labels == l]).mean(axis=0) for l in range(3)])
    np.testing.assert_allclose(shown.mean(axis=0), share.mean(axis=0))


# --- what people type first ----------------------------------------------------------------------


def test_masked_arrays_and_missing_values_of_r_are_described_like_others(X):
    masked, of_r = np.ma.array(np.where(np.isnan(X), 1e6, X), mask=np.isnan(X)), X.copy()
    of_r.view(np.uint64)[np.isnan(X)] = 0x7FF00000000007A2
    for table in (masked, of_r):
        assert diagnose(table).to_frame().equals(diagnose(X).to_frame())
        assert repr(cluster_markers(table, fit(X))) == repr(cluster_markers(X, fit(X)))
    whole = np.ma.array([[1, 2], [3, 4], [50, 60]], mask=[[0, 0], [0, 1], [0, 0]])
    filled = fit(whole, n_init=1, init=[[1, 2], [3, 4], [50, 60]]).impute(whole)
    np.testing.assert_array_equal(filled[:, 0], [1, 3, 50])


@pytest.mark.parametrize("kind", [dict, pd.Series])
@pytest.mark.parametrize("estimator", [MNARKMeans, MiniBatchMNARKMeans])
def test_numbers_by_name_are_aligned_with_the_columns(X, kind, estimator, tmp_path):
    frame = pd.DataFrame(X, columns=NAMES)
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
        ({"a": 1, "b": 1, "c": 1}, "'d' has none"),
    ]:
        with pytest.raises(ValueError, match=f"lam must have one number .* {message}"):
            run(kind(wrong), 0.0)
        with pytest.raises(ValueError, match=f"reference must have one number .* {message}"):
            run(0.5, kind(wrong))
    with pytest.raises(TypeError, match="lam must be a number"):
        run(kind({"a": "x", "b": 1, "c": 1, "d": 1}), 0.0)


def test_columns_without_names_are_called_by_number(X):
    by_number = fit(X, reference=pd.Series([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(by_number.reference_, [1, 2, 3, 4])
    with pytest.raises(ValueError, match="'a' is not a column of X"):
        fit(X, reference={"a": 1.0})
    doubled = pd.Series([1.0, 2.0, 3.0, 4.0, 5.0], index=[0, 1, 2, 3, 3])
    with pytest.raises(ValueError, match="3 appears twice"):
        fit(X, reference=doubled)


def test_n_init_auto_is_ten(X):
    assert len(fit(X, n_init="auto").start_losses_) == 10
    batches = MiniBatchMNARKMeans(3, n_init="auto", random_state=0).fit(X)
    assert len(batches.start_losses_) == 10
    assert batches.missingness_.lam == batches.lam_
    searched = MNARKMeansCV([2, 3], n_init="auto", n_splits=4, random_state=0).fit(X)
    assert len(searched.start_losses_) == 10
    one, auto = (MNARMixture(3, n_init=n, random_state=0).fit(X) for n in (1, "auto"))
    np.testing.assert_array_equal(one.means_, auto.means_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_and_dates_are_refused_with_their_column(frame):
    text = frame({"a": [1.0, 2.0, 3.0], "tissue": ["x", "liver", "y"]})
    for read in (fit, diagnose, lambda table: cluster_markers(table, [0, 1, 1])):
        with pytest.raises(ValueError, match="column 'tissue' holds 'x'"):
            read(text)
    when = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[ms]")
    for table in (frame({"a": [1.0, 2.0, 3.0], "day": when}), frame({"day": when})):
        with pytest.raises(ValueError, match=r"'day' holds (dates|'20)"):
            fit(table)
    with pytest.raises(ValueError, match="holds dates"):
        fit(when[:, None])
    with pytest.raises(ValueError, match="column 1 holds 'b'"):
        fit(np.array([[1, "b"], [2, "c"]], dtype=object))


@pytest.mark.parametrize("code", [-99, -999, -9999, -99999, 999, 9999, 99999, -2147483648])
@pytest.mark.parametrize("form", [np.asarray, to_csr])
def test_codes_of_missing_values_are_noticed(X, code, form):
    coded = X.copy()
    coded[::7, 2] = code
    with pytest.warns(MissingDataWarning, match=rf"{code} is far from all other values of 2: .*"):
        fit(form(coded))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(coded, missing_values=code)
        within = np.abs(code) / 3.0 * X  # the code is among the values, or the last of them
        fit(within)
        fit(np.clip(within, -abs(code), abs(code)))


def test_counts_without_a_logarithm_are_noticed():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.3, 20.0, size=(100, 30))).astype(float)
    counts[counts == 0] = np.nan
    counts[0] = 1.0
    for table in (counts, to_csr(counts), sparse.csc_array(to_csr(counts))):
        with pytest.warns(MissingDataWarning, match=r"whole numbers up to .* raw counts"):
            fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(np.log1p(counts))
        fit(rng.integers(0, 255, size=(100, 5)))  # grey levels
        fit(rng.integers(1, 6, size=(100, 5)))  # ratings


@pytest.mark.parametrize(("n_values", "judged"), [(9, False), (10, True), (120, True)])
def test_one_far_feature_of_ten_values_is_enough_to_warn_about_the_reference(X, n_values, judged):
    X[:, 3] += 1000.0
    X[np.flatnonzero(~np.isnan(X[:, 3]))[n_values:], 3] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(X)
    said = "far outside the observed values of 1 of 4"
    assert any(said in str(one.message) for one in caught) == judged


def test_clusters_of_one_row_are_noticed(X):
    X = np.where(np.isnan(X), 3.0, X)
    X[0] = 500.0
    with pytest.warns(UserWarning, match="1 of 3 clusters have a single row"):
        fit(X)


# --- frames ---------------------------------------------------------------------------------------


@pytest.fixture(params=[pd.DataFrame, pl.DataFrame])
def frame(request, X):
    return request.param(dict(zip(NAMES, X.T, strict=True)))


@pytest.mark.parametrize(
    "kind", ["float32", "Float32", "Float64", "float[pyarrow]", "Int64", "int64[pyarrow]"]
)
def test_impute_keeps_the_float_types_of_pandas_columns(X, kind):
    """Whole numbers become floats: what fills a gap is a mean."""
    whole = np.round(100 * X)
    frame = pd.DataFrame(whole, columns=NAMES).astype("Int64").astype(kind)
    fitted = fit(frame)
    filled = fitted.impute(frame)
    expected = frame.dtypes if "loat" in kind else [np.dtype(float)] * 4
    assert filled.dtypes.tolist() == list(expected)
    assert not filled.isna().any().any()
    if kind != "float32":
        assert fitted.inertia_ == fit(whole).inertia_


def test_the_order_of_columns_is_checked_at_predict(frame):
    fitted = fit(frame)
    for method in (fitted.predict, fitted.transform, fitted.impute, fitted.score):
        with pytest.raises(ValueError, match="same order"):
            method(frame[["c", "a", "b", "d"]])


@pytest.mark.parametrize(
    ("output", "kind"), [("pandas", "DataFrame"), ("polars", "DataFrame"), ("default", "ndarray")]
)
def test_set_output_names_the_distances(frame, output, kind):
    out = MNARKMeans(2, lam=0.5).set_output(transform=output).fit_transform(frame)
    assert type(out).__name__ == kind
    if output != "default":
        assert type(out).__module__.startswith(output)
        assert list(out.columns) == ["mnarkmeans0", "mnarkmeans1"]


def test_a_lazy_frame_says_to_collect_it(X):
    with pytest.raises(TypeError, match="collect"):
        fit(pl.DataFrame(X).lazy())
