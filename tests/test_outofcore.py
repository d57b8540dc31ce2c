"""Tables on disk, read by Dask's own readers as docs/scaling.md shows, give the fit of memory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import mnarkmeans

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from mnarkmeans.dask import MNARKMeans  # noqa: E402 (needs dask)


def parquet(X, folder):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(name="row")
    for number, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
        frame.iloc[rows].to_parquet(folder / f"part-{number}.parquet")
    return dd.read_parquet(folder, columns=list("abcd"))


def zarr(X, folder):
    pytest.importorskip("zarr")
    da.from_array(X, chunks=(90, 2)).to_zarr(folder / "t.zarr")
    return da.from_zarr(folder / "t.zarr")


def h5ad(X, folder):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    values = sparse.csr_matrix(np.nan_to_num(X))
    anndata.AnnData(values).write_h5ad(folder / "t.h5ad")
    with h5py.File(folder / "t.h5ad") as file:
        return anndata.experimental.read_elem_lazy(file["X"], chunks=(120, X.shape[1]))


@pytest.mark.filterwarnings("ignore:.*zarr")
@pytest.mark.parametrize("read", [parquet, zarr, h5ad])
def test_a_table_on_disk_gives_the_fit_of_memory(read, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) + 4.0 * rng.integers(0, 3, size=(500, 1))
    X[rng.random(X.shape) < 0.25] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    table, start = read(X, tmp_path), np.nan_to_num(X[:3]) + np.arange(3)[:, None]
    assert len(np.ravel(table.to_delayed())) > 1
    lazy = MNARKMeans(3, lam=0.6, init=start, persist=False).fit(table)
    memory = mnarkmeans.MNARKMeans(3, lam=0.6, init=start, algorithm="lloyd").fit(X)
    assert_allclose(lazy.cluster_centers_, memory.cluster_centers_, rtol=0, atol=1e-12)
    assert_array_equal(np.asarray(lazy.labels_), memory.labels_)
