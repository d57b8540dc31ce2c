"""Files of strangers: whatever they hold, they are read or refused in one sentence.

pytest tests/tables/test_strangers.py --hypothesis-profile=explore     # new cases, and more
"""

from __future__ import annotations

import contextlib
import gzip
import io
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

from mnarkmeans.tables import TableError, advise, read_table

VALUES = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan], [7.0, 8.0, 9.0], [-1.0, 0.0, 2.5]])
TEXT = "sample,a,b,c,kind\nr1,1.5,NA,3,x\nr2,4,5,,x\nr3,7,8,9,y\nr4,-1,0,2.5,y\n"


def npz_of(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def table_files() -> dict[str, bytes]:
    """A sound file of every format that can be written here."""
    files = {
        "t.csv": TEXT.encode(),
        "t.tsv": TEXT.replace(",", "\t").encode("utf-16"),
        "t.csv.gz": gzip.compress(TEXT.encode(), mtime=0),
        "d.npz": npz_of(x=VALUES),
    }
    buffers = {name: io.BytesIO() for name in ("t.npy", "s.npz", "t.parquet")}
    np.save(buffers["t.npy"], VALUES)
    sp.save_npz(buffers["s.npz"], sp.csr_matrix(np.nan_to_num(VALUES)))
    pd.DataFrame(VALUES, columns=["a", "b", "c"]).to_parquet(buffers["t.parquet"])
    files |= {name: buffer.getvalue() for name, buffer in buffers.items()}
    try:
        import anndata
    except ImportError:
        return files
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "t.h5ad"
        anndata.AnnData(sp.csr_matrix(np.nan_to_num(VALUES))).write_h5ad(path)
        files["t.h5ad"] = path.read_bytes()
    return files


FILES = table_files()
PIECES = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b"\n", b"\r", b",", b'"', b"\0", b"NA", b"nan", b"inf", b"-1e999", b"=1+1",
                     b"\xff\xfe", b"\t\t"]),
)  # fmt: skip


@st.composite
def mutations(draw, content: bytes) -> bytes:
    """Bytes changed, inserted, removed, repeated; the file cut short."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        until = at + draw(st.integers(0, 12))
        kind = draw(st.sampled_from(["change", "insert", "remove", "cut", "again", "bit"]))
        if kind == "change":
            piece = draw(PIECES)
            content = content[:at] + piece + content[at + len(piece) :]
        elif kind == "insert":
            content = content[:at] + draw(PIECES) + content[at:]
        elif kind == "remove":
            content = content[:at] + content[until:]
        elif kind == "cut":
            content = content[:at]
        elif kind == "again":
            content = content[:until] + content[at:]
        elif content:
            flipped = content[at] ^ (1 << draw(st.integers(0, 7)))
            content = content[:at] + bytes([flipped]) + content[at + 1 :]
    return content


def read_or_refused(path):
    """The table in a file, or None where one sentence refuses it; advice never crashes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            table = read_table(path)
        except TableError as error:
            for sentence in (str(error), error.command_line):
                assert len(sentence.strip()) > 10
                assert "\n" not in sentence
                assert "Traceback" not in sentence
            return None
        with contextlib.suppress(TableError):
            advise(table)
    values = table.values.data if sp.issparse(table.values) else table.values
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
def test_a_sound_file_is_read(name):
    table = read_bytes(name, FILES[name])
    assert table is not None
    assert table.shape == (4, 3)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
def test_a_mutated_file_is_read_or_refused_in_a_sentence(name, data):
    read_bytes(name, data.draw(mutations(FILES[name])))


@given(content=st.binary(max_size=200), name=st.sampled_from(sorted(FILES)))
def test_any_bytes_are_read_or_refused(content, name):
    read_bytes(name, content)


# --- arrays -----------------------------------------------------------------------------------

SOUND = sp.csr_matrix(np.nan_to_num(VALUES))
PARTS = {
    "data": SOUND.data, "indices": SOUND.indices, "indptr": SOUND.indptr,
    "shape": np.array(SOUND.shape), "format": np.array(b"csr"),
}  # fmt: skip
NUMBERS = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 9, -1, -(2**31), 2**31, 2**40, 1_000_000, 99])
DTYPES = st.sampled_from(["i4", "i8", "u1", "f8", "f4", "?", "S3", "c16", ">i4"])


@st.composite
def mutated_parts(draw):
    """The arrays of a sparse matrix with entries, types, shapes or names changed."""
    parts = dict(PARTS)
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(parts) or ["data"]))
        array = parts.get(name, PARTS["data"])
        kind = draw(st.sampled_from(["entry", "type", "longer", "shorter", "shape", "gone", "csc"]))
        if kind == "entry" and array.dtype.kind in "if" and array.size:
            array = array.astype(np.int64 if array.dtype.kind == "i" else float)
            array.flat[draw(st.integers(0, array.size - 1))] = draw(NUMBERS)
        elif kind == "type" and array.dtype.kind in "if":
            array = array.astype(draw(DTYPES))
        elif kind == "longer":
            array = np.concatenate([np.atleast_1d(array)] * draw(st.integers(2, 3)))
        elif kind == "shorter":
            array = np.atleast_1d(array)[: draw(st.integers(0, 3))]
        elif kind == "shape":
            array = np.atleast_1d(array).reshape(1, -1)
        elif kind == "csc":
            name, array = "format", np.array(draw(st.sampled_from([b"csc", b"coo", b"bsr", "csr"])))
        if kind == "gone":
            parts.pop(name, None)
        else:
            parts[name] = array
    return parts


@given(parts=mutated_parts())
def test_mutated_arrays_of_npz_are_read_or_refused(parts):
    table = read_bytes("t.npz", npz_of(**parts)) if parts else None
    if table is not None and sp.issparse(table.values):
        table.values.check_format(full_check=True)


@given(parts=mutated_parts())
def test_mutated_arrays_of_h5ad_and_zarr_are_read_or_refused(parts):
    pytest.importorskip("anndata")
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.h5ad"
        path.write_bytes(FILES["t.h5ad"])
        with h5py.File(path, "a") as file:
            for name in ("data", "indices", "indptr"):
                del file["X"][name]
                if name in parts:
                    file["X"][name] = parts[name]
            if "shape" in parts:
                file["X"].attrs["shape"] = parts["shape"]
            kind = parts.get("format", np.array(b"csr")).reshape(-1)
            if kind.size:
                kind = kind[0].decode() if isinstance(kind[0], bytes) else str(kind[0])
                file["X"].attrs["encoding-type"] = f"{kind}_matrix"
        table = read_or_refused(path)
    if table is not None and sp.issparse(table.values):
        table.values.check_format(full_check=True)


CRAFTED = {
    "indptr beyond the entries": {"indptr": np.array([0, 2, 1_000_000, 6, 9])},
    "indptr falls": {"indptr": np.array([0, 5, 2, 7, 9])},
    "indptr does not begin at 0": {"indptr": np.array([1, 2, 4, 7, 9])},
    "column 99 of 3": {"indices": np.full(len(SOUND.indices), 99)},
    "a negative column": {"indices": np.full(len(SOUND.indices), -1)},
    "more rows than pointers": {"shape": np.array([400, 3])},
    "a shape without end": {"shape": np.array([2**62, 2**62])},
}


@pytest.mark.parametrize("what", CRAFTED)
def test_a_crafted_sparse_matrix_is_refused(tmp_path, what):
    (tmp_path / "t.npz").write_bytes(npz_of(**(PARTS | CRAFTED[what])))
    with pytest.raises(TableError, match=r"damaged sparse matrix|memory"):
        read_table(tmp_path / "t.npz")


def test_an_array_that_declares_more_than_it_holds_is_refused(tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    (tmp_path / "t.npy").write_bytes(buffer.getvalue() + bytes(80))
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("x.npy", buffer.getvalue() + bytes(80))
    for name in ("t.npy", "t.npz"):
        with pytest.raises(TableError, match="not hold as many numbers as it declares"):
            read_table(tmp_path / name)


def test_parquet_with_levels_of_row_names_or_nested_columns(tmp_path):
    frame = pd.DataFrame(VALUES, columns=list("abc"))
    levels = pd.MultiIndex.from_product([["x", "y"], [1, 2]])
    frame.set_index(levels).to_parquet(tmp_path / "levels.parquet")
    with pytest.raises(TableError, match=r"row names in 2 levels; .*reset_index"):
        read_table(tmp_path / "levels.parquet")
    frame.assign(many=[[1.0], [2.0], [], [3.0]]).to_parquet(tmp_path / "nested.parquet")
    table = read_table(tmp_path / "nested.parquet")
    assert table.features == ["a", "b", "c"]
    assert table.left_out[0][0] == "many"
    assert "nested values" in table.left_out[0][1]
