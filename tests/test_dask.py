"""mnarkmeans.dask on local schedulers: the same numbers as in memory, however the rows are cut."""

from __future__ import annotations

import contextlib
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from places import grouped_rows
from scipy import sparse

import mnarkmeans

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from mnarkmeans.dask import MNARKMeans  # noqa: E402 (needs dask)
from mnarkmeans.missingness import ampute  # noqa: E402

K = 4


@pytest.fixture(scope="module")
def X():
    return grouped_rows(600, 5)


def in_memory(X, init, **options):
    options = {"lam": 0.7, **options}
    weights = options.pop("sample_weight", None)
    model = mnarkmeans.MNARKMeans(K, init=init, n_init=1, algorithm="lloyd", **options)
    return model.fit(X, sample_weight=weights)


def start_of(X):
    return np.nan_to_num(X[:K]) + np.arange(K)[:, None]


def assert_same_fit(lazy, memory):
    assert_allclose(lazy.cluster_centers_, memory.cluster_centers_, rtol=0, atol=1e-12)
    assert_allclose(lazy.loss_path_, memory.loss_path_, rtol=1e-12)
    assert lazy.inertia_ == pytest.approx(memory.inertia_, rel=1e-12)
    assert lazy.n_iter_ == memory.n_iter_
    assert_array_equal(np.asarray(lazy.labels_), memory.labels_)


def as_dask_sparse(X, rows):
    """A Dask array of CSR blocks, as scanpy makes them."""
    csr = sparse.csr_array(np.nan_to_num(X))
    return da.from_array(np.arange(len(X)), chunks=rows).map_blocks(
        lambda chosen: csr[chosen], dtype=float, new_axis=1, chunks=(da.core.normalize_chunks(
            (rows,), (len(X),))[0], (X.shape[1],)), meta=sparse.csr_array((0, 0)),
    )  # fmt: skip


# --- equality ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("rows", [37, 250, 600])
def test_any_cut_into_blocks_gives_the_result_of_memory(X, lam, rows):
    start = start_of(X)
    lazy = MNARKMeans(K, lam=lam, init=start).fit(da.from_array(X, chunks=(rows, 3)))
    assert_same_fit(lazy, in_memory(X, start, lam=lam))


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_any_local_scheduler(X, scheduler):
    start = start_of(X)
    settings = {"scheduler": scheduler}
    with contextlib.ExitStack() as stack:
        if scheduler == "processes":  # one pool for all passes: starting Python anew is slow
            spawn = multiprocessing.get_context("spawn")
            settings["pool"] = stack.enter_context(ProcessPoolExecutor(1, mp_context=spawn))
        stack.enter_context(dask.config.set(settings))
        lazy = MNARKMeans(K, lam=0.7, init=start, max_iter=2).fit(da.from_array(X, chunks=(300, 5)))
        assert_same_fit(lazy, in_memory(X, start, max_iter=2))


@pytest.mark.parametrize("persist", [True, False])
def test_blocks_kept_or_read_anew(X, persist):
    start = start_of(X)
    lazy = MNARKMeans(K, lam=0.7, init=start, persist=persist).fit(da.from_array(X, chunks=100))
    assert_same_fit(lazy, in_memory(X, start))


def test_sparse_blocks(X):
    start = start_of(X)
    lazy = MNARKMeans(K, lam=0.7, init=start).fit(as_dask_sparse(X, 150))
    assert_same_fit(lazy, in_memory(sparse.csr_array(np.nan_to_num(X)), start))


def test_dataframe_with_names_and_nullable_columns(X):
    frame = pd.DataFrame(X, columns=list("abcde")).convert_dtypes()
    start = start_of(X)
    lazy = MNARKMeans(K, lam=0.7, init=start).fit(dd.from_pandas(frame, npartitions=4))
    memory = in_memory(frame, start)
    assert_same_fit(lazy, memory)
    assert list(lazy.feature_names_in_) == list("abcde")


def test_unknown_sizes_and_empty_blocks(X):
    lazy = da.from_array(X, chunks=(100, 5))
    lazy = lazy[da.from_array(np.arange(len(X)) >= 150, chunks=100)]  # the first block is empty
    assert np.isnan(lazy.shape[0])
    start = start_of(X)
    model = MNARKMeans(K, lam=0.7, init=start).fit(lazy)
    assert_same_fit(model, in_memory(X[150:], start))
    assert model.labels_.shape == (len(X) - 150,)


def test_float32_is_kept(X):
    start = start_of(X)
    single = X.astype(np.float32)
    lazy = MNARKMeans(K, lam=0.7, init=start).fit(da.from_array(single, chunks=(200, 5)))
    memory = in_memory(single, start)
    assert lazy.cluster_centers_.dtype == np.float32
    assert_allclose(lazy.cluster_centers_, memory.cluster_centers_, rtol=1e-6)


def test_number_as_code_of_gaps_and_reference_min(X):
    coded = np.where(np.isnan(X), -99.0, X)
    start = start_of(X)
    options = dict(missing_values=-99.0, reference="min")
    lazy = MNARKMeans(K, lam=0.7, init=start, **options).fit(da.from_array(coded, chunks=(90, 5)))
    memory = in_memory(coded, start, **options)
    assert_same_fit(lazy, memory)
    assert_array_equal(lazy.reference_, memory.reference_)


@pytest.mark.parametrize("kind", ["numpy", "dask", "series", "halves"])
def test_weights(X, kind):
    weights = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    if kind == "halves":
        weights /= 3.0
    start, table = start_of(X), da.from_array(X, chunks=(128, 5))
    given = weights
    if kind == "dask":
        given = da.from_array(weights, chunks=77)
    elif kind == "series":
        table = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")), npartitions=3)
        given = dd.from_pandas(pd.Series(weights), npartitions=3)
    lazy = MNARKMeans(K, lam=0.7, init=start).fit(table, sample_weight=given)
    data = pd.DataFrame(X, columns=list("abcde")) if kind == "series" else X
    memory = in_memory(data, start, sample_weight=weights)
    assert_same_fit(lazy, memory)
    assert lazy.score(table, sample_weight=given) == pytest.approx(-memory.inertia_, rel=1e-12)


def test_empty_clusters_are_filled_by_the_same_rows(X):
    start = np.full((K, 5), 100.0)  # three centres nobody is close to
    start[0] = 0.0
    start[1:, 0] += [0.0, 1.0, 2.0]
    lazy = MNARKMeans(K, lam=0.7, init=start).fit(da.from_array(X, chunks=(70, 5)))
    assert_same_fit(lazy, in_memory(X, start))


def test_sample_starts_on_a_small_table_are_those_of_memory(X):
    table = da.from_array(X, chunks=(111, 5))
    for init in ("k-means++", "random"):
        options = dict(lam=0.7, init=init, random_state=5)
        lazy = MNARKMeans(K, n_init=1, **options).fit(table)
        memory = mnarkmeans.MNARKMeans(K, n_init=1, algorithm="lloyd", **options).fit(X)
        assert_same_fit(lazy, memory)
        lazy = MNARKMeans(K, n_init=5, **options).fit(table)
        memory = mnarkmeans.MNARKMeans(K, n_init=5, algorithm="lloyd", **options).fit(X)
        assert_allclose(lazy.start_losses_, memory.start_losses_, rtol=1e-10)


def test_scalable_start_does_not_depend_on_the_blocks(X):
    fits = [
        MNARKMeans(K, lam=0.7, random_state=3, persist=rows != 50).fit(
            da.from_array(X, chunks=rows)
        )
        for rows in (50, 199, 600)
    ]
    for fit in fits[1:]:
        assert_same_fit(fit, _with_computed_labels(fits[0]))
    best = mnarkmeans.MNARKMeans(K, lam=0.7, random_state=0).fit(X).inertia_
    assert fits[0].inertia_ < 1.05 * best


def _with_computed_labels(model):
    model.labels_ = np.asarray(model.labels_)
    return model


def test_few_distinct_rows():
    X = np.repeat([[0.0, 1.0], [5.0, 5.0], [9.0, 0.0]], 20, axis=0)
    model = MNARKMeans(3, lam=1.0, random_state=0).fit(da.from_array(X, chunks=(7, 2)))
    assert model.inertia_ == pytest.approx(0.0, abs=1e-12)


def test_lam_auto_on_a_small_table_is_that_of_memory():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) + 3.0 * rng.integers(0, 3, size=(500, 1))
    X[rng.random(X.shape) < np.exp(-(X**2))] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    options = dict(init="k-means++", n_init=2, random_state=0)
    lazy = MNARKMeans(3, **options).fit(da.from_array(X, chunks=(200, 3)))
    memory = mnarkmeans.MNARKMeans(3, algorithm="lloyd", **options).fit(X)
    assert lazy.lam_ == pytest.approx(memory.lam_, abs=1e-6)
    assert 0.0 < lazy.missingness_.lam < 1.0


# --- what comes after the fit -----------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(X):
    lazy = MNARKMeans(K, lam=0.7, init=start_of(X)).fit(da.from_array(X, chunks=(200, 5)))
    return lazy, in_memory(X, start_of(X))


@pytest.mark.parametrize("kind", ["array", "sparse", "frame", "unknown"])
def test_results_are_lazy_and_equal(X, fitted, kind):
    lazy, memory = fitted
    if kind == "sparse":
        table, X = as_dask_sparse(X, 150), sparse.csr_array(np.nan_to_num(X))
    elif kind == "frame":
        table = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    else:
        table = da.from_array(X, chunks=(170, 2))
        if kind == "unknown":
            table = table[da.ones(len(X), chunks=170, dtype=bool)]
    for method in ("predict", "transform", "impute"):
        found = getattr(lazy, method)(table)
        assert hasattr(found, "__dask_graph__")
        assert_allclose(np.asarray(found.compute()), np.asarray(getattr(memory, method)(X)))
    if kind == "array":
        assert lazy.transform(table).chunks == ((170, 170, 170, len(X) - 510), (K,))
    assert lazy.score(table) == pytest.approx(memory.score(X), rel=1e-12)


def test_tables_in_memory_are_predicted_too(X, fitted):
    lazy, memory = fitted
    assert_array_equal(lazy.predict(X), memory.labels_)
    assert_allclose(lazy.impute(X), memory.impute(X))


# --- checkpoints ------------------------------------------------------------------------------


def test_a_fit_goes_on_from_its_checkpoint(X, tmp_path):
    table, path = da.from_array(X, chunks=(100, 5)), tmp_path / "fit.npz"
    options = dict(lam=0.7, n_init=3, random_state=1, tol=0.0)
    whole = MNARKMeans(K, **options).fit(table)
    MNARKMeans(K, **options, max_iter=3, checkpoint=path, checkpoint_every=2).fit(table)
    seen = []
    rest = MNARKMeans(K, **options, checkpoint=path, resume=True, callback=seen.append)
    rest.fit(da.from_array(X, chunks=(77, 5)))
    assert seen[0].number == 4
    assert_same_fit(rest, _with_computed_labels(whole))
    again = MNARKMeans(K, **options, checkpoint=path, resume=True, callback=seen.append)
    n_calls = len(seen)
    assert again.fit(table).inertia_ == pytest.approx(whole.inertia_, rel=1e-12)
    assert len(seen) == n_calls  # it was complete: nothing is run again
    assert [file.name for file in tmp_path.iterdir()] == ["fit.npz"]


def test_the_checkpoint_of_another_fit_is_refused(X, tmp_path):
    table, path = da.from_array(X, chunks=(100, 5)), tmp_path / "fit.npz"
    MNARKMeans(K, lam=0.7, random_state=1, checkpoint=path).fit(table)
    with pytest.raises(ValueError, match="another fit: its lam differs"):
        MNARKMeans(K, lam=0.5, checkpoint=path, resume=True).fit(table)
    with pytest.raises(ValueError, match="another fit: its n_rows differs"):
        MNARKMeans(K, lam=0.7, checkpoint=path, resume=True).fit(table[:500])
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        MNARKMeans(K, lam=0.7, checkpoint=path, resume=True).fit(table)


def test_progress_is_told(X, capsys):
    seen = []
    table = da.from_array(X, chunks=(100, 5))
    model = MNARKMeans(K, lam=0.7, random_state=1, callback=seen.append, verbose=1).fit(table)
    assert [it.number for it in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].n_active == 0
    assert seen[-1].loss == pytest.approx(model.inertia_, rel=1e-9)
    assert capsys.readouterr().out.count("iteration") == len(seen)


@pytest.mark.parametrize("lost", ["limit", "mnar0"])
def test_a_reference_is_chosen_as_in_memory(lost):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6)) + 2.0 * rng.normal(size=(3, 6))[rng.integers(3, size=600)]
    X = ampute(X, lost, fraction=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    model = MNARKMeans(3, reference="auto", random_state=0).fit(da.from_array(X, chunks=(100, -1)))
    expected = np.nanmin(X, axis=0) if lost == "limit" else np.zeros(6)
    assert_array_equal(model.reference_, expected)
