"""mnarkmeans.dask and the table it is given: its type, where it lies, how large its numbers are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from places import grouped_rows, on_dask, to_csr

import mnarkmeans

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from mnarkmeans.dask import MNARKMeans, _lloyd, _pieces  # noqa: E402 (needs dask)

nan = np.nan


@pytest.fixture
def X():
    return grouped_rows(200, 9)


def start_of(X, k=4):
    return np.nan_to_num(X[:k]) + np.arange(k)[:, None]


def memory(X, init, *, sample_weight=None, **options):
    model = mnarkmeans.MNARKMeans(len(init), init=init, algorithm="lloyd", **options)
    return model.fit(X, sample_weight=sample_weight)


def assert_same_fit(lazy, memory):
    assert_array_equal(np.asarray(lazy.labels_), memory.labels_)
    assert_allclose(lazy.cluster_centers_, memory.cluster_centers_, rtol=1e-12, atol=1e-12)
    assert_allclose(lazy.loss_path_, memory.loss_path_, rtol=1e-11, atol=1e-300)
    assert lazy.inertia_ == pytest.approx(memory.inertia_, rel=1e-12)


# --- types ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fitted_on", [np.float32, np.float64])
@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["array", "csr", "frame"])
def test_results_follow_the_table(X, fitted_on, given, kind):
    model = MNARKMeans(4, lam=0.5, init=start_of(X)).fit(on_dask(X.astype(fitted_on)))
    assert model.cluster_centers_.dtype == fitted_on
    held = to_csr(X.astype(given)) if kind == "csr" else X.astype(given)
    table = dd.from_pandas(pd.DataFrame(held), 3) if kind == "frame" else on_dask(held)
    distances, filled = model.transform(table), model.impute(table)
    assert distances.dtype == distances.compute().dtype == given
    assert set(pd.DataFrame(filled.compute()).dtypes) == {np.dtype(given)}
    assert_array_equal(model.transform(held), distances.compute())
    assert model.predict(table).dtype == model.predict(table).compute().dtype == np.int32


def test_out_is_for_tables_in_memory(X):
    model, out = MNARKMeans(4, lam=0.5, init=start_of(X)).fit(on_dask(X)), np.empty(X.shape)
    assert model.impute(X, out=out) is out
    with pytest.raises(TypeError, match="out is for tables in memory"):
        model.impute(on_dask(X), out=out)


def test_whole_numbers_become_float64():
    X = np.random.default_rng(0).integers(0, 9, (40, 3))
    for table in (on_dask(X), dd.from_pandas(pd.DataFrame(X), 2)):
        model = MNARKMeans(2, lam=1.0, random_state=0).fit(table)
        assert model.cluster_centers_.dtype == np.float64
        assert model.transform(table).dtype == model.transform(table).compute().dtype == np.float64


# --- in memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "float32", "by columns", "csr", "pandas", "list"])
def test_tables_in_memory_are_cut_into_blocks(X, kind, monkeypatch):
    monkeypatch.setattr(_pieces, "BYTES_OF_BLOCK", 3000)
    table = {
        "array": lambda: X,
        "float32": lambda: X.astype(np.float32),
        "by columns": lambda: np.asfortranarray(X),
        "csr": lambda: to_csr(X),
        "pandas": lambda: pd.DataFrame(X, columns=list("abcdefghi")),
        "list": lambda: X.tolist(),
    }[kind]()
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    seen = []
    options = {"lam": 0.5, "init": start_of(X)}
    lazy = MNARKMeans(4, callback=seen.append, **options).fit(table, sample_weight=weights)
    expected = memory(table, sample_weight=weights, **options)
    assert len(_pieces.held_table(np.asarray(X)).blocks) > 3
    assert isinstance(lazy.labels_, np.ndarray)
    assert_same_fit(lazy, expected)
    assert len(seen) == lazy.n_iter_
    assert_array_equal(lazy.fit_predict(table), MNARKMeans(4, **options).fit(table).labels_)
    if kind == "pandas":
        assert list(lazy.feature_names_in_) == list("abcdefghi")
        with pytest.raises(ValueError, match="feature names"):
            lazy.predict(dd.from_pandas(table.rename(columns={"a": "z"}), 2))


# --- lam --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_penalty_per_feature(X, kind, tmp_path):
    held = to_csr(X) if kind == "csr" else X
    lam = np.random.default_rng(1).choice([0.0, 0.3, 1.0, 4.0], X.shape[1])
    options = {"lam": lam, "init": start_of(X), "tol": 0.0}
    expected = memory(held, **options)
    lazy = MNARKMeans(4, **options).fit(on_dask(held))
    assert_same_fit(lazy, expected)
    assert_array_equal(lazy.lam_, lam)
    assert_array_equal(np.asarray(lazy.predict(on_dask(held))), expected.labels_)
    file = {"checkpoint": tmp_path / "fit.npz", "checkpoint_every": 1}
    MNARKMeans(4, **options, **file, max_iter=2).fit(on_dask(held))
    rest = MNARKMeans(4, **options, **file, resume=True).fit(on_dask(held, 5))
    assert_same_fit(rest, expected)
    assert_array_equal(rest.lam_, lam)
    with pytest.raises(ValueError, match="another fit: its lam differs"):
        MNARKMeans(4, **options | {"lam": lam + 0.1}, **file, resume=True).fit(on_dask(held))
    with pytest.raises(ValueError, match="another fit: its lam differs"):
        MNARKMeans(4, **options | {"lam": 0.3}, **file, resume=True).fit(on_dask(held))


def test_more_iterations_than_are_asked_for_now(X, tmp_path):
    options = {"lam": 0.5, "init": start_of(X), "tol": 0.0, "checkpoint": tmp_path / "fit.npz"}
    once = MNARKMeans(4, max_iter=6, **options).fit(on_dask(X))
    again = MNARKMeans(4, max_iter=2, resume=True, **options).fit(on_dask(X))
    assert_array_equal(again.cluster_centers_, once.cluster_centers_)
    assert again.n_iter_ == once.n_iter_


# --- hard numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize("persist", [True, False])
def test_rows_that_left_leave_nothing_behind(persist):
    """Fractional weights, lam = 0, clusters without rows: a centre nobody observes stays."""
    X = np.array([[0, nan], [1, 5], [2, 7], [3, 9], [0.1, nan]])
    weights = np.array([0.5, 0.1, 0.2, 0.3, 0.5])
    init = np.array([[0.0, 1.0], [1e3, 1e3], [1e3, 1e3 + 1], [1e3, 1e3 + 2]])
    options = {"lam": 0.0, "tol": 0.0, "init": init}
    lazy = MNARKMeans(4, persist=persist, **options).fit(on_dask(X), sample_weight=weights)
    assert lazy.cluster_centers_[0, 1] == 1.0
    assert_same_fit(lazy, memory(X, sample_weight=weights, **options))


@pytest.mark.parametrize("persist", [True, False])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.filterwarnings("ignore:.*have a single row")
@pytest.mark.parametrize("shape", ["far from zero", "an empty cluster", "small"])
def test_losses_that_lose_digits_are_taken_by_direct_differences(persist, kind, shape, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8)) * 1e-3 + np.arange(120)[:, None] % 3
    X[3:][rng.random((117, 8)) < 0.2] = nan
    init = X[:4] + 1e-3
    if shape == "far from zero":
        X, init = X + 1e6, init + 1e6
    elif shape == "an empty cluster":  # the row that fills it must be counted where it is now
        init[3] = 1e9
    else:
        X, init = X * 1e-6, init * 1e-6
    held = to_csr(X) if kind == "csr" else X
    options = {"lam": 1e-12, "tol": 0.0, "init": np.nan_to_num(init, nan=init[0, 0])}
    options["reference"] = init[0, 0]
    taken, loss_of = [], _lloyd.PieceRows.loss_of
    spy = lambda rows, starts, r: taken.append(r) or loss_of(rows, starts, r)  # noqa: E731
    monkeypatch.setattr(_lloyd.PieceRows, "loss_of", spy)
    lazy = MNARKMeans(4, persist=persist, **options).fit(on_dask(held))
    assert len(taken) == lazy.n_iter_
    assert_same_fit(lazy, memory(held, **options))


def test_the_first_of_equal_starts_wins(X):
    """Losses that differ by rounding only are equal, here as in memory."""
    from mnarkmeans._solver import best_start

    options = {"lam": 0.5, "init": "k-means++", "n_init": 8, "random_state": 0}
    lazy = MNARKMeans(3, **options).fit(on_dask(X, 5))
    held = mnarkmeans.MNARKMeans(3, algorithm="lloyd", **options).fit(X)
    assert best_start(lazy.start_losses_) == best_start(held.start_losses_)
    assert_same_fit(lazy, held)


def test_weights_that_are_all_zero(X):
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        MNARKMeans(2, lam=1.0).fit(on_dask(X), sample_weight=np.zeros(len(X)))


@pytest.mark.parametrize("code", [-9.0, 0.1])
def test_codes_of_gaps_in_float32_and_float64_blocks(X, code):
    """0.1 reads differently in the two precisions; starts and lam are drawn from both."""
    coded = np.where(np.isnan(X), code, X)
    single, double = coded[:90].astype(np.float32), coded[90:]
    mixed = da.concatenate([on_dask(single, 2), on_dask(double, 2)])
    blocks = [mixed.blocks[i] for i in range(mixed.numblocks[0])]
    table = da.concatenate([block.map_blocks(_as_it_was, dtype=float) for block in blocks])
    options = {"lam": 0.5, "init": "k-means++", "n_init": 1, "random_state": 0}
    model = MNARKMeans(3, missing_values=code, **options).fit(table)
    plain = mnarkmeans.MNARKMeans(3, algorithm="lloyd", **options)
    exact = np.vstack([X[:90].astype(np.float32), X[90:]])
    assert_allclose(model.cluster_centers_, plain.fit(exact).cluster_centers_, atol=1e-6)


def _as_it_was(block):
    """A block whose type is not the one that the collection promises."""
    single = block.astype(np.float32)
    return single if np.array_equal(single, block, equal_nan=True) else block
