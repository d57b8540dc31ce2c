"""mnarkmeans.dask on one machine: the same numbers as in memory, however the rows are cut and
wherever they are kept."""

from __future__ import annotations

import re

import numpy as np
import pytest
from backends import grouped_rows, on_dask, to_csr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import mnarkmeans
from mnarkmeans.missingness import ampute

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from mnarkmeans.dask import MNARKMeans, _blocks  # noqa: E402 (needs dask)

K, P = 4, 9
NAMES = list("abcdefghi")
nan = np.nan


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def X():
    return grouped_rows(300, P)


def start_of(X, k=K):
    return np.nan_to_num(X[:k]) + np.arange(k)[:, None]


def in_memory(X, init, *, sample_weight=None, **options):
    options = {"lam": 0.7, **options}
    model = mnarkmeans.MNARKMeans(len(init), init=init, n_init=1, algorithm="lloyd", **options)
    return model.fit(X, sample_weight=sample_weight)


def assert_same_fit(lazy, memory, rtol=1e-12):
    assert_allclose(lazy.cluster_centers_, memory.cluster_centers_, rtol=rtol, atol=rtol)
    assert_allclose(lazy.loss_path_, memory.loss_path_, rtol=10 * rtol, atol=1e-300)
    assert lazy.inertia_ == pytest.approx(memory.inertia_, rel=rtol)
    assert lazy.n_iter_ == memory.n_iter_
    assert_array_equal(np.asarray(lazy.labels_), np.asarray(memory.labels_))


# --- equality -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lam", "rows", "scheduler", "persist"),
    [
        (0.0, 37, "synchronous", True),
        (0.7, 110, "synchronous", False),
        (0.7, 110, "threads", True),
        (3.0, 600, "threads", False),
    ],
)
def test_any_cut_into_blocks_gives_the_result_of_memory(X, lam, rows, scheduler, persist):
    start, table = start_of(X), da.from_array(X, chunks=(rows, 5))
    with dask.config.set(scheduler=scheduler):
        lazy = MNARKMeans(K, lam=lam, init=start, persist=persist).fit(table)
        assert_same_fit(lazy, in_memory(X, start, lam=lam))


def frame(X):
    return pd.DataFrame(X, columns=NAMES).convert_dtypes()


def of_unknown_sizes(X):
    table = da.from_array(X, chunks=(100, P))
    return table[da.from_array(np.arange(len(X)) >= 150, chunks=100)]  # one block is empty


def parquet(X, folder):
    for number, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
        part = pd.DataFrame(X[rows], columns=NAMES).assign(name="row")
        part.to_parquet(folder / f"part-{number}.parquet")
    return dd.read_parquet(folder, columns=NAMES)


def zarr(X, folder):
    pytest.importorskip("zarr")
    da.from_array(X, chunks=(90, 2)).to_zarr(folder / "t.zarr")
    return da.from_zarr(folder / "t.zarr")


def h5ad(X, folder):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    anndata.AnnData(sparse.csr_matrix(np.nan_to_num(X))).write_h5ad(folder / "t.h5ad")
    with h5py.File(folder / "t.h5ad") as file:
        return anndata.experimental.read_elem_lazy(file["X"], chunks=(120, P))


single = np.float32
TABLES = {  # of Dask, and the same in memory
    "array": lambda X: (da.from_array(X, chunks=(170, 2)), X),
    "blocks": lambda X: (on_dask(X), X),
    "float32": lambda X: (on_dask(X.astype(single)), X.astype(single)),
    "csr": lambda X: (on_dask(to_csr(X)), to_csr(X)),
    "csr float32": lambda X: (on_dask(to_csr(X.astype(single))), to_csr(X.astype(single))),
    "frame": lambda X: (dd.from_pandas(frame(X), npartitions=4), frame(X)),
    "unknown sizes": lambda X: (of_unknown_sizes(X), X[150:]),
}
ON_DISK = {"parquet": parquet, "zarr": zarr, "h5ad": h5ad}  # docs/scaling.md
IN_MEMORY = {"NumPy": np.asarray, "SciPy": to_csr, "list": np.ndarray.tolist}  # cut into blocks


@pytest.mark.filterwarnings("ignore:.*zarr")
@pytest.mark.parametrize("kind", [*TABLES, *ON_DISK, *IN_MEMORY])
def test_every_kind_of_table_gives_the_results_of_memory(X, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(_blocks, "CHUNK_BYTES", 3000)
    if kind in TABLES:
        table, held = TABLES[kind](X)
    else:
        table, held = ON_DISK[kind](X, tmp_path) if kind in ON_DISK else IN_MEMORY[kind](X), X
    weights = np.random.default_rng(1).integers(0, 4, held.shape[0]) / 3.0
    given = {
        "frame": dd.from_pandas(pd.Series(weights), npartitions=4),
        "blocks": da.from_array(weights, chunks=77),
    }.get(kind, weights)
    options = {"init": start_of(X), "reference": "min"}
    lazy = MNARKMeans(K, lam=0.7, persist=kind not in ON_DISK, **options)
    lazy.fit(table, sample_weight=given)
    memory = in_memory(held, sample_weight=weights, **options)
    rtol = 1e-6 if "float32" in kind else 1e-12
    assert lazy.cluster_centers_.dtype == memory.cluster_centers_.dtype
    assert_same_fit(lazy, memory, rtol)
    assert_array_equal(lazy.reference_, memory.reference_)
    assert isinstance(lazy.labels_, np.ndarray) == (kind in IN_MEMORY)
    assert lazy.score(table, sample_weight=given) == pytest.approx(-memory.inertia_, rel=rtol)
    for method in ("predict", "transform", "impute"):
        found, expected = getattr(lazy, method)(table), getattr(memory, method)(held)
        if kind not in IN_MEMORY:
            assert len(np.ravel(found.to_delayed())) > 1  # it is lazy
            found = found.compute()
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=max(rtol, 1e-9))
    if kind == "array":
        assert lazy.transform(table).chunks == ((170, len(X) - 170), (K,))
    if kind == "frame":
        assert list(lazy.feature_names_in_) == NAMES
        with pytest.raises(ValueError, match="feature names"):
            lazy.predict(table.rename(columns={"a": "z"}))


@pytest.mark.parametrize("code", [-9.0, 0.1])
def test_codes_in_float32_and_float64_blocks(X, code):
    """0.1 reads differently in the two precisions; starts and lam are drawn from both."""
    coded = np.where(np.isnan(X), code, X)
    table = blocks(coded[:90].astype(np.float32), coded[90:])
    options = {"lam": 0.5, "init": "k-means++", "n_init": 1, "random_state": 0}
    model = MNARKMeans(3, missing_values=code, **options).fit(table)
    plain = mnarkmeans.MNARKMeans(3, algorithm="lloyd", **options)
    exact = np.vstack([X[:90].astype(np.float32), X[90:]])
    assert_allclose(model.cluster_centers_, plain.fit(exact).cluster_centers_, atol=1e-6)


# --- starts, lam and reference --------------------------------------------------------------------


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_sample_starts_on_a_small_table_are_those_of_memory(X, init):
    options = dict(lam=0.7, init=init, random_state=5, n_init=5)
    lazy = MNARKMeans(K, **options).fit(da.from_array(X, chunks=(111, P)))
    memory = mnarkmeans.MNARKMeans(K, algorithm="lloyd", **options).fit(X)
    assert_allclose(lazy.start_losses_, memory.start_losses_, rtol=1e-10)
    assert_same_fit(lazy, memory)  # the first of starts whose losses differ by rounding only


def test_scalable_start_does_not_depend_on_the_blocks(X):
    fits = [
        MNARKMeans(K, lam=0.7, random_state=3, persist=rows != 50).fit(
            da.from_array(X, chunks=(rows, P))
        )
        for rows in (50, 199, 600)
    ]
    for fit in fits[1:]:
        assert_same_fit(fit, fits[0])
    best = mnarkmeans.MNARKMeans(K, lam=0.7, random_state=0).fit(X).inertia_
    assert fits[0].inertia_ < 1.05 * best


def test_starts_of_a_function_and_of_an_array(X):
    table = da.from_array(X, chunks=(111, P))
    made = MNARKMeans(K, lam=0.7, init=lambda X, k, random_state: start_of(X.compute()), n_init=1)
    given = MNARKMeans(K, lam=0.7, init=start_of(X), n_init=5)
    with pytest.warns(RuntimeWarning, match="there is one start"):
        given.fit(table)
    assert_same_fit(made.fit(table), given)


def test_few_distinct_rows():
    X = np.repeat([[0.0, 1.0], [5.0, 5.0], [9.0, 0.0]], 20, axis=0)
    model = MNARKMeans(3, lam=1.0, n_init="auto", random_state=0)
    model.fit(da.from_array(X, chunks=(7, 2)))
    assert model.inertia_ == pytest.approx(0.0, abs=1e-12)
    assert len(model.start_losses_) == 3


@pytest.mark.parametrize("mechanism", ["limit", "mnar0"])
def test_lam_and_reference_are_chosen_as_in_memory(mechanism):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6)) + 2.0 * rng.normal(size=(3, 6))[rng.integers(3, size=600)]
    X = ampute(X, mechanism, fraction=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    options = dict(init="k-means++", n_init=2, random_state=0)
    lazy = MNARKMeans(3, **options).fit(da.from_array(X, chunks=(200, 6)))
    memory = mnarkmeans.MNARKMeans(3, algorithm="lloyd", **options).fit(X)
    assert_allclose(lazy.lam_, memory.lam_, atol=1e-6)
    assert_array_equal(lazy.reference_, memory.reference_)
    expected = np.nanmin(X, axis=0) if mechanism == "limit" else np.zeros(6)
    assert_array_equal(lazy.reference_, expected)


def test_a_penalty_and_a_reference_by_name(X):
    lam = np.random.default_rng(1).choice([0.0, 0.3, 1.0, 4.0], P)
    reference, frame = np.linspace(-1, 1, P), pd.DataFrame(X, columns=NAMES)
    table = dd.from_pandas(frame, npartitions=3)
    options = {
        "lam": pd.Series(lam, index=NAMES)[::-1],  # in another order
        "reference": dict(zip(NAMES[::-1], reference[::-1], strict=True)),
        "init": start_of(X),
    }
    lazy = MNARKMeans(K, **options).fit(table)
    assert_same_fit(lazy, in_memory(frame, **options))
    assert_array_equal(lazy.lam_, lam)
    assert_array_equal(lazy.reference_, reference)
    wrong = {**options, "reference": {**options["reference"], "z": 1.0}}
    with pytest.raises(ValueError, match=r"reference must .* 'z' is not a column"):
        MNARKMeans(K, **wrong).fit(table)


# --- progress -------------------------------------------------------------------------------------


def test_progress_is_reported(X, capsys):
    table = da.from_array(X, chunks=(100, P))
    model = MNARKMeans(K, lam=0.7, random_state=1, n_init=1, verbose=1).fit(table)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert lines[-1] == f"iteration {model.n_iter_}: loss {model.inertia_:.6g}, 0 start(s) go on"


@pytest.mark.parametrize(("persist", "once"), [(True, True), ("auto", True), (False, False)])
def test_blocks_that_are_kept_are_read_once(X, persist, once, capsys):
    reads = []
    read = lambda rows: reads.append(len(rows)) or rows  # noqa: E731
    table = da.from_array(X, chunks=(200, P)).map_blocks(read, dtype=float, meta=X[:0])
    MNARKMeans(K, lam=0.7, init=start_of(X), persist=persist).fit(table)
    assert (sum(reads) == len(X)) == once
    assert capsys.readouterr().out == ""


# --- mistakes -------------------------------------------------------------------------------------


def blocks(*parts):
    return da.concatenate(
        [
            da.from_delayed(dask.delayed(part, traverse=False), part.shape, meta=np.empty((0, 0)))
            for part in parts
        ],
        allow_unknown_chunksizes=True,
    )


def test_a_bad_block_is_named():
    good, bad = np.ones((4, 3)), np.ones((4, 3))
    bad[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"Block 2 of 3 .* infinity: inf in row 2, column 1"):
        MNARKMeans(2, lam=1.0).fit(blocks(good, good, bad))
    narrow = da.from_delayed(dask.delayed(np.ones((4, 2))), (4, 3), float)
    with pytest.raises(ValueError, match=r"Block 1 of 2 .*expected 3 features .* got 2"):
        MNARKMeans(2, lam=1.0).fit(da.concatenate([blocks(good), narrow]))
    with pytest.raises(ValueError, match=r"Block 1 is sparse and block 0 is dense"):
        MNARKMeans(2, lam=1.0).fit(blocks(good, sparse.csr_array(good[:3])))
    model = MNARKMeans(2, lam=1.0, init=np.eye(2, 3)).fit(np.arange(12.0).reshape(4, 3))
    with pytest.raises(ValueError, match=r"Block 1 of 2 .* infinity"):
        model.predict(blocks(good, bad)).compute()


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({}, np.ones(9), "Expected 2D array, got 1D array"),
        ({}, da.ones(9), "must have 2 dimensions"),
        ({"init": "best"}, None, "'k-means||', 'k-means++', 'random', an array or a callable; got"),
        ({"persist": "yes"}, None, "persist must be"),
        ({"n_clusters": 50}, None, "Ask for fewer clusters"),
        ({"lam": -1.0}, None, "lam must be"),
        ({}, da.full((10, 2), nan, chunks=5), "All 10 x 2 values are missing"),
    ],
)
def test_mistakes_are_named(options, X, message):
    table = da.ones((10, 2), chunks=5) if X is None else X
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        MNARKMeans(**{"n_clusters": 2, "lam": 1.0, **options}).fit(table)


def test_weights_that_do_not_fit(X):
    table = da.from_array(X, chunks=(100, P))
    for weights, message in (
        (np.ones(3), r"an entry for each row of X.*shape=\(3,\)"),
        (np.ones((len(X), 2)), r"an entry for each row of X"),
        (np.arange(len(X)) - 9.0, r"Block 0 of .*Negative values"),
        (np.zeros(len(X)), "sample_weight is zero for every row"),
        (dd.from_pandas(pd.Series(np.ones(len(X))), npartitions=2), "its blocks where their sizes"),
    ):
        with pytest.raises(ValueError, match=message):
            MNARKMeans(K, lam=1.0).fit(table, sample_weight=weights)
    for wrong in (np.zeros(10), np.ones(20)):
        blocks = [da.from_delayed(dask.delayed(wrong), (100,), float)]
        blocks += [da.ones(size, chunks=size) for size in table.chunks[0][1:]]
        with pytest.raises(ValueError, match="where the block has 100 rows"):
            MNARKMeans(K, lam=1.0).fit(table, sample_weight=da.concatenate(blocks))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: np.vstack([X, np.full((3, P), nan)]), "3 row"),
        (lambda X: X + 1000.0, r"far outside the observed values of 9 of 9 feature"),
        (lambda X: np.where(np.arange(P) == 2, np.nan_to_num(X, nan=-999), X), "-999 is far from"),
        (lambda X: np.random.default_rng(0).lognormal(3, 1, X.shape).round(), "like raw counts"),
    ],
)
def test_what_memory_warns_about_is_warned_about(X, change, message):
    held = change(X)
    for table, kind in ((on_dask(held), MNARKMeans), (held, mnarkmeans.MNARKMeans)):
        with pytest.warns(mnarkmeans.MissingDataWarning, match=message):
            kind(2, lam=0.5, random_state=0).fit(table)
