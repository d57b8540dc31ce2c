"""Damaged and crafted files: whatever they hold, they are read or refused in one sentence.

pytest tests/tables/test_damaged_files.py --hypothesis-profile=explore     # new cases, and more
"""

import contextlib
import gzip
import io
import shutil
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from mutations import assert_one_sentence, mutations

from mnarkmeans.tables import TableError, advise, read_table

VALUES = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan], [7.0, 8.0, 9.0], [-1.0, 0.0, 2.5]])
TEXT = "sample,a,b,c,kind\nr1,1.5,NA,3,x\nr2,4,5,,x\nr3,7,8,9,y\nr4,-1,0,2.5,y\n"


def npz_of(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def table_files() -> dict[str, bytes]:
    """A sound file of every format that can be written here."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        (folder / "t.csv").write_text(TEXT)
        (folder / "t.tsv").write_text(TEXT.replace(",", "\t"), "utf-16")
        (folder / "t.csv.gz").write_bytes(gzip.compress(TEXT.encode(), mtime=0))
        np.save(folder / "t.npy", VALUES)
        np.savez(folder / "d.npz", x=VALUES)
        sp.save_npz(folder / "s.npz", SOUND)
        pd.DataFrame(VALUES, columns=["a", "b", "c"]).to_parquet(folder / "t.parquet")
        with contextlib.suppress(ImportError):
            import anndata

            anndata.AnnData(SOUND).write_h5ad(folder / "t.h5ad")
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


SOUND = sp.csr_matrix(np.nan_to_num(VALUES))
FILES = table_files()


def read_or_refused(path):
    """The table in a file, or None where one sentence refuses it; advice never crashes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            table = read_table(path)
        except TableError as error:
            assert_one_sentence(str(error))
            assert_one_sentence(error.command_line)
            return None
        with contextlib.suppress(TableError):
            advise(table)
    values = table.values
    if sp.issparse(values):
        values.check_format(full_check=True)
        values = values.data
    assert np.issubdtype(values.dtype, np.floating)
    assert not np.isinf(values).any()
    assert table.values.shape == (len(table.ids), len(table.features))
    assert min(table.values.shape) > 0
    return table


def read_bytes(name, content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return read_or_refused(path)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
def test_any_bytes_are_read_or_refused_in_a_sentence(name, data):
    assert read_bytes(name, FILES[name]).shape == (4, 3)
    read_bytes(name, data.draw(mutations(FILES[name]) | st.binary(max_size=200)))


# --- arrays -----------------------------------------------------------------------------------

PARTS = {
    "data": SOUND.data, "indices": SOUND.indices, "indptr": SOUND.indptr,
    "shape": np.array(SOUND.shape), "format": np.array(b"csr"),
}  # fmt: skip
NUMBERS = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 9, -1, -(2**31), 2**31, 2**40, 1_000_000, 99])
DTYPES = st.sampled_from(["i4", "i8", "u1", "f8", "f4", "?", "S3", "c16", ">i4"])


def with_entry(array, draw):
    if array.dtype.kind not in "if" or not array.size:
        return array
    array = array.astype(np.int64 if array.dtype.kind == "i" else float)
    array.flat[draw(st.integers(0, array.size - 1))] = draw(NUMBERS)
    return array


CHANGES = {
    "entry": with_entry,
    "type": lambda x, draw: x.astype(draw(DTYPES)) if x.dtype.kind in "if" else x,
    "longer": lambda x, draw: np.tile(np.atleast_1d(x), draw(st.integers(2, 3))),
    "shorter": lambda x, draw: np.atleast_1d(x)[: draw(st.integers(0, 3))],
    "shape": lambda x, draw: np.atleast_1d(x).reshape(1, -1),
    "gone": lambda x, draw: None,
}


@st.composite
def mutated_parts(draw):
    """The arrays of a sparse matrix with entries, types, shapes or names changed."""
    parts = PARTS | {"format": np.array(draw(st.sampled_from([b"csr", b"csc", b"coo", "csr"])))}
    for name in draw(st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=3)):
        change = CHANGES[draw(st.sampled_from(sorted(CHANGES)))]
        parts[name] = change(PARTS[name] if parts[name] is None else parts[name], draw)
    return {name: part for name, part in parts.items() if part is not None}


@given(parts=mutated_parts())
def test_mutated_arrays_of_npz_are_read_or_refused(parts):
    read_bytes("t.npz", npz_of(**parts))


@pytest.fixture(scope="module")
def zarr_store(tmp_path_factory):
    pytest.importorskip("zarr")
    path = tmp_path_factory.mktemp("zarr") / "t.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("anndata").AnnData(SOUND).write_zarr(path)
    return path


@pytest.mark.parametrize("name", ["t.h5ad", "t.zarr"])
@given(parts=mutated_parts())
def test_mutated_arrays_of_anndata_are_read_or_refused(zarr_store, name, parts):
    import h5py
    import zarr

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / name
        if name == "t.h5ad":
            path.write_bytes(FILES[name])
            store = h5py.File(path, "a")
        else:
            store = zarr.open_group(shutil.copytree(zarr_store, path), mode="a")
        matrix = store["X"]
        for array in ("data", "indices", "indptr"):
            del matrix[array]
            if array in parts:
                matrix[array] = parts[array]
        shape, kind = (parts.get(key, PARTS[key]).reshape(-1) for key in ("shape", "format"))
        matrix.attrs["shape"] = (shape.astype(str) if shape.dtype.kind in "Sc" else shape).tolist()
        if kind.size:
            matrix.attrs["encoding-type"] = f"{kind.astype(str)[0]}_matrix"
        if name == "t.h5ad":
            store.close()
        read_or_refused(path)


@given(data=st.data())
def test_a_mutated_zarr_store_is_read_or_refused(zarr_store, data):
    files = sorted(str(f.relative_to(zarr_store)) for f in zarr_store.rglob("*") if f.is_file())
    name = data.draw(st.sampled_from(files))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(zarr_store, Path(folder) / "t.zarr"))
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(data.draw(mutations(content)))
        read_or_refused(copy)


CRAFTED = {
    "indptr beyond the entries": {"indptr": np.array([0, 2, 1_000_000, 6, 9])},
    "indptr falls": {"indptr": np.array([0, 5, 2, 7, 9])},
    "indptr does not begin at 0": {"indptr": np.array([1, 2, 4, 7, 9])},
    "values after the last row": {"indptr": np.array([0, 2, 4, 6, 7])},
    "columns that are not whole": {"indices": SOUND.indices + 0.6},
    "pointers that are not whole": {"indptr": SOUND.indptr.astype(float)},
    "column 99 of 3": {"indices": np.full(len(SOUND.indices), 99)},
    "a negative column": {"indices": np.full(len(SOUND.indices), -1)},
    "more rows than pointers": {"shape": np.array([400, 3])},
    "a shape without end": {"shape": np.array([2**62, 2**62])},
}


@pytest.mark.parametrize("what", CRAFTED)
def test_a_crafted_sparse_matrix_is_refused(tmp_path, what):
    (tmp_path / "t.npz").write_bytes(npz_of(**(PARTS | CRAFTED[what])))
    with pytest.raises(TableError, match=r"not a readable npz|memory"):
        read_table(tmp_path / "t.npz")


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_a_stored_matrix_that_would_be_cut_is_refused(tmp_path, name):
    anndata, path = pytest.importorskip("anndata"), tmp_path / "t.h5ad"
    anndata.AnnData(SOUND).write_h5ad(path)
    with pytest.importorskip("h5py").File(path, "a") as root:
        if name == "indptr":
            root["X/indptr"][-1] -= 2
        else:
            whole = root["X"].pop(name)[:]
            root["X"][name] = whole + 0.6
    with pytest.raises(TableError, match=r"indptr does not end|must be whole"):
        read_table(path)


def test_an_array_that_declares_more_than_it_holds_is_refused(tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    (tmp_path / "t.npy").write_bytes(buffer.getvalue() + bytes(80))
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("x.npy", buffer.getvalue() + bytes(80))
    for name in ("t.npy", "t.npz"):
        with pytest.raises(TableError, match=r"not a readable np"):
            read_table(tmp_path / name)
