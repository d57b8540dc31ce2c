"""Tables on disk, read a block at a time, give the fit of the table in memory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import mnarkmeans

pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")

from mnarkmeans.dask import MNARKMeans, open_table  # noqa: E402 (needs dask)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) + 4.0 * rng.integers(0, 3, size=(500, 1))
    X[rng.random(X.shape) < 0.25] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def write(X, kind, folder):
    if kind in ("npy", "npy by columns"):
        np.save(folder / "t.npy", X if kind == "npy" else np.asfortranarray(X))
        return folder / "t.npy"
    if kind in ("parquet", "folder"):
        frame = pd.DataFrame(X, columns=list("abcd")).assign(
            name=[f"row {i}" for i in range(len(X))]
        )
        if kind == "parquet":
            frame.to_parquet(folder / "t.parquet", row_group_size=120)
            return folder / "t.parquet"
        for number, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
            frame.iloc[rows].to_parquet(folder / f"part-{number}.parquet", index=False)
        return folder
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        stored = zarr.open(
            str(folder / "t.zarr"), mode="w", shape=X.shape, chunks=(90, 2), dtype="f8"
        )
        stored[:] = X
        return folder / "t.zarr"
    anndata = pytest.importorskip("anndata")
    values = sparse.csr_matrix(np.nan_to_num(X)) if "sparse" in kind else X
    table = anndata.AnnData(values, obs=pd.DataFrame(index=[f"cell {i}" for i in range(len(X))]),
                            var=pd.DataFrame(index=list("abcd")))  # fmt: skip
    if "layer" in kind:
        table.layers["kept"] = values
        table.X = np.zeros(X.shape)
    if "store" in kind:
        pytest.importorskip("zarr")
        table.write_zarr(folder / "t.zarr")
        return folder / "t.zarr"
    table.write_h5ad(folder / "t.h5ad")
    return folder / "t.h5ad"


KINDS = ["npy", "npy by columns", "parquet", "folder", "zarr", "h5ad", "h5ad sparse",
         "h5ad sparse layer", "store", "store sparse"]  # fmt: skip


@pytest.mark.parametrize("with_mask", [False, True])
def test_names_of_an_h5ad_are_read_however_anndata_stored_them(X, with_mask, tmp_path):
    """From pandas 3 on text has a type of its own, which is stored as values and a mask."""
    path, names = write(X, "h5ad", tmp_path), [f"cell {i}" for i in range(len(X))]
    with pytest.importorskip("h5py").File(path, "a") as file:
        obs = file["obs"]
        del obs["_index"]
        if with_mask:
            index = obs.create_group("_index")
            index.attrs["encoding-type"] = "nullable-string-array"
            index["values"], index["mask"] = names, np.zeros(len(names), dtype=bool)
        else:
            obs["_index"] = names
    assert open_table(path).ids(1, 3) == names[1:3]


@pytest.mark.filterwarnings("ignore:.*zarr")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_fit_of_memory(X, kind, tmp_path):
    path = write(X, kind, tmp_path)
    table = open_table(path, block_bytes=3000, layer="kept" if "layer" in kind else None)
    start = np.nan_to_num(X[:3]) + np.arange(3)[:, None]
    lazy = MNARKMeans(3, lam=0.6, init=start, persist=False).fit(table.X)
    data = sparse.csr_array(np.nan_to_num(X)) if "sparse" in kind else X
    memory = mnarkmeans.MNARKMeans(3, lam=0.6, init=start, algorithm="lloyd").fit(data)
    assert table.X.numblocks[0] > 1
    assert table.shape == X.shape
    assert_allclose(lazy.cluster_centers_, memory.cluster_centers_, rtol=0, atol=1e-12)
    assert_array_equal(np.asarray(lazy.labels_), memory.labels_)


@pytest.mark.parametrize("kind", ["h5ad", "h5ad sparse", "store"])
@pytest.mark.filterwarnings("ignore:.*no observed value", "ignore:.*zarr")
def test_blocks_of_an_anndata_are_the_table_that_is_read_whole(X, kind, tmp_path):
    """Zeros are missing, and genes that are not highly variable left out."""
    anndata = pytest.importorskip("anndata")
    path = write(np.where(X < 0.0, 0.0, X), kind, tmp_path)
    adata = anndata.read_zarr(path) if kind == "store" else anndata.read_h5ad(path)
    adata.var["highly_variable"] = [True, True, False, True]
    (adata.write_zarr if kind == "store" else adata.write_h5ad)(path)
    blocks, whole = open_table(path, block_bytes=3000), mnarkmeans.read_table(path)
    assert blocks.features == whole.features == ["a", "b", "d"]
    assert blocks.left_out == whole.left_out
    assert blocks.ids(3, 5) == whole.ids[3:5].tolist()
    start = np.nan_to_num(X[:3, [0, 1, 3]]) + np.arange(3)[:, None]
    lazy = MNARKMeans(3, lam=0.6, init=start).fit(blocks.X)
    memory = mnarkmeans.MNARKMeans(3, lam=0.6, init=start, algorithm="lloyd").fit(whole.values)
    assert lazy.missing_share_ == pytest.approx(whole.missing_share())
    assert_allclose(lazy.cluster_centers_, memory.cluster_centers_, rtol=0, atol=1e-12)


def test_names_of_rows_and_features(X, tmp_path):
    table = open_table(write(X, "folder", tmp_path), id_column="name")
    assert table.features == list("abcd")
    assert table.ids(165, 170) == [f"row {i}" for i in range(165, 170)]
    assert open_table(tmp_path).left_out[0][0] == "name"
    assert open_table(tmp_path).ids(0, 2) == ["1", "2"]


def test_files_that_cannot_be_read(X, tmp_path):
    with pytest.raises(ValueError, match=r"is no .npy"):
        open_table(tmp_path / "table.xyz")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="3-dimensional"):
        open_table(tmp_path / "cube.npy")
    path = write(X, "parquet", tmp_path)
    with pytest.raises(ValueError, match="no column 'id'"):
        open_table(path, id_column="id")
    with pytest.raises(ValueError, match="layer is for"):
        open_table(path, layer="counts")
