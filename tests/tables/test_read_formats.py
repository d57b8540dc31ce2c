"""Every format and every oddity of a table, read without the command line around it."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from written import write

from mnarkmeans import MNARKMeans, tl
from mnarkmeans.tables import TableError, read_table

VALUES = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan], [7.0, 8.0, 9.0]])
TEXT = "sample,a,b,c,kind\nr1,1.5,NA,3,x\nr2,4,5,,x\nr3,7,8,9,y\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TEXT),
        ("t.csv.gz", TEXT),
        ("t.tsv", TEXT.replace(",", "\t")),
        ("t.txt.gz", TEXT.replace(",", "\t")),
        ("t.csv", TEXT.replace(",", ";")),
        ("t.csv", TEXT.replace(",", ";").replace(".", ",")),
        ("t.csv", TEXT.replace(",", "|").replace("\n", "\r\n")),
        ("t.csv", "\ufeff" + TEXT),
        ("t.csv", TEXT.encode("utf-16")),
        ("t.csv", TEXT.replace("NA", "Filtered")),
        ("t.csv", TEXT.replace("NA", " nan ")),
        ("t.csv", TEXT.replace("r1", '"r,1"').replace("kind", '"ki""nd"')),
        ("t.csv", "\n" + TEXT + "\n\n"),
        ("t.txt", "a b c\nr1 1.5 NA 3\nr2 4 5 NA\nr3 7 8 9\n"),  # as R writes it
    ],
)
def test_text_tables_give_the_same_numbers(tmp_path, name, content):
    table = read_table(write(tmp_path, name, content))
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.features == ["a", "b", "c"]
    assert [str(i).replace(",", "") for i in table.ids] == ["r1", "r2", "r3"]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_code_is_found_in_the_precision_of_the_table(tmp_path, form):
    values = np.array([[0.1, 2.0], [3.0, 0.1]], dtype=np.float32)
    if form is np.asarray:
        np.savez(tmp_path / "t.npz", values)
    else:
        sp.save_npz(tmp_path / "t.npz", form(values))
    assert read_table(tmp_path / "t.npz", missing_value=["0.1"]).missing_share() == 0.5


def test_binary_formats_give_the_same_numbers(tmp_path):
    np.save(tmp_path / "t.npy", VALUES)
    np.savez(tmp_path / "d.npz", VALUES)
    stored = sp.csr_matrix(np.nan_to_num(VALUES))
    sp.save_npz(tmp_path / "t.npz", stored)
    frame = pd.DataFrame(VALUES, columns=["a", "b", "c"]).astype({"b": "Float64"})
    frame.assign(name=["r1", "r2", "r3"]).to_parquet(tmp_path / "t.parquet")
    frame.set_index(pd.Index(["r1", "r2", "r3"])).to_parquet(tmp_path / "i.parquet")
    for name in ("t.npy", "d.npz", "t.parquet", "i.parquet"):
        np.testing.assert_array_equal(read_table(tmp_path / name).values, VALUES)
    assert list(read_table(tmp_path / "i.parquet").ids) == ["r1", "r2", "r3"]
    table = read_table(tmp_path / "t.npz")
    assert sp.issparse(table.values)
    np.testing.assert_array_equal(table.values.toarray(), np.nan_to_num(VALUES))
    assert table.missing_share() == pytest.approx(2 / 9)


def test_anndata_dense_sparse_and_layers(tmp_path):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"kind": ["x", "x", "y"]}, index=["r1", "r2", "r3"])
    var = pd.DataFrame(index=["a", "b", "c"])
    dense = np.nan_to_num(VALUES).astype(np.float32)
    adata = anndata.AnnData(sp.csr_matrix(dense), obs, var, layers={"raw": dense})
    adata.write_h5ad(tmp_path / "t.h5ad")
    table = read_table(tmp_path / "t.h5ad", labels=("kind",))
    assert table.values.dtype == np.float32
    assert table.values.nnz == 7
    assert list(table.labels["kind"]) == ["x", "x", "y"]
    raw = read_table(tmp_path / "t.h5ad", layer="raw", missing_value=["0"])
    np.testing.assert_array_equal(raw.values, VALUES.astype(np.float32))
    assert list(raw.ids) == ["r1", "r2", "r3"]
    with pytest.raises(TableError, match="no layer called 'rw'; did you mean 'raw'"):
        read_table(tmp_path / "t.h5ad", layer="rw")


def test_what_is_left_out_is_told_with_its_reason(tmp_path):
    text = "id,a,empty,note,flag\n1,1,,hello,True\n2,2,,hello,False\n"
    table = read_table(write(tmp_path, "t.csv", text))
    assert table.features == ["a"]
    assert dict(table.left_out) == {
        "empty": "no value observed",
        "note": "text, such as 'hello'",
        "flag": "text, such as 'True'",
    }
    assert list(table.ids) == ["1", "2"]


def test_columns_drop_labels_and_id_can_be_chosen(tmp_path):
    text = "p,LFQ a,LFQ b,count,kind\nx,1,2,3,0\ny,4,5,6,1\n"
    path = write(tmp_path, "t.csv", text)
    assert read_table(path, columns=["LFQ *"]).features == ["LFQ a", "LFQ b"]
    table = read_table(path, drop=["LFQ *"], id_column="p", labels=("kind",))
    assert table.features == ["count"]
    assert list(table.labels["kind"]) == [0, 1]
    with pytest.raises(TableError, match="no column called 'knd'; did you mean 'kind'"):
        read_table(path, labels=("knd",))


def test_transposed_tables_have_samples_in_rows(tmp_path):
    text = "Protein IDs,s1,s2\nP1,1,2\nP2,,4\nP3,5,6\n"
    table = read_table(write(tmp_path, "t.csv", text), transpose=True)
    assert table.features == ["P1", "P2", "P3"]
    assert list(table.ids) == ["s1", "s2"]
    np.testing.assert_array_equal(table.values, [[1, np.nan, 5], [2, 4, 6]])
    twice = write(tmp_path, "u.csv", text.replace("P2", "P1"))
    table = read_table(twice, transpose=True)
    assert table.features == ["P1", "P1 (2)", "P3"]
    assert "were numbered, such as 'P1 (2)'" in table.notes[-1]


def test_user_codes_mean_missing(tmp_path):
    text = "a,b\n0,n.d.\n1,2\n3,-99\n"
    table = read_table(write(tmp_path, "t.csv", text), missing_value=["0", "n.d.", "-99"])
    np.testing.assert_array_equal(table.values, [[np.nan, np.nan], [1, 2], [3, np.nan]])


def test_a_table_without_header_is_recognised(tmp_path):
    table = read_table(write(tmp_path, "t.csv", "1,2\n3,4\n"))
    assert table.features == ["V1", "V2"]
    assert "V1, V2" in table.notes[0]
    assert read_table(write(tmp_path, "t.csv", "1,2\n3,4\n"), header=True).features == [
        "1",
        "2",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "\n \n", "is empty"),
        ("t.csv", "a,b\n", "header line but no rows"),
        ("t.csv", "a,b\n1,2\n3\n", "row 2 .*'3', has 1 fields where 2 were expected"),
        ("t.csv", "a,b\n1,2\n3,4,5\n", "row 2 .* has 3 fields"),
        ("t.csv", "a,a\n1,2\n", "more than one column called 'a'"),
        ("t.csv", "a,b\nx,y\nz,u\n", "no numeric column"),
        ("t.csv", "a,b\nNA,\n,NaN\n", "no numeric column"),
        ("t.csv", b"a,b\n1,\x00\n", "not a text file"),
        ("t.csv", b"PK\x03\x04rest", "Excel workbook"),
        ("t.csv", "a,b\n1,2\n3,inf\n", "infinite value in row '2'"),
        ("t.csv", "a,b\n1,2\n3,x\n5,4\n", "1 of the entries are words: 'x'.*drop=.?b"),
        ("t.csv.gz", None, "damaged gzip"),
        ("t.xlsx", "x", "not a readable xlsx"),
        ("t.xls", "x", "another kind of spreadsheet"),
        ("t.dat", "x", "does not end in a known format"),
        ("t.parquet", "x", "not a readable parquet"),
        ("t.npy", "x", "not a readable NumPy"),
        ("t.npz", "x", "not a readable npz"),
        ("t.h5ad", "x", "not a readable h5ad"),
    ],
)
def test_bad_files_are_told_in_a_sentence(tmp_path, name, content, message):
    for ending, package in {".h5ad": "anndata", ".xlsx": "openpyxl"}.items():
        if name.endswith(ending):
            pytest.importorskip(package)
    if content is None:
        path = tmp_path / name
        path.write_bytes(gzip.compress(TEXT.encode())[:-12])
    else:
        path = write(tmp_path, name, content)
    with pytest.raises(TableError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_bad_arrays_are_told_in_a_sentence(tmp_path):
    np.save(tmp_path / "one.npy", np.arange(3.0))
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "two.npz", a=VALUES, b=VALUES)
    for name, message in [
        ("one.npy", "1-dimensional"),
        ("text.npy", "needs numbers"),
        ("objects.npy", "Python objects"),
        ("two.npz", "holds 2 arrays"),
        ("none.npy", "no file"),
    ]:
        with pytest.raises(TableError, match=message):
            read_table(tmp_path / name)
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)


def test_wrong_options_for_a_file_are_told(tmp_path):
    path = write(tmp_path, "t.csv", TEXT)
    with pytest.raises(TableError, match="looks comma-separated"):
        read_table(path, delimiter=";")
    with pytest.raises(TableError, match="'klingon' is no encoding"):
        read_table(path, encoding="klingon")
    with pytest.raises(TableError, match="layer= is for"):
        read_table(path, layer="x")
    np.save(tmp_path / "t.npy", VALUES)
    with pytest.raises(TableError, match="delimiter= is for text"):
        read_table(tmp_path / "t.npy", delimiter=",")


def test_numbers_are_read_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 2)) * 10.0 ** rng.integers(-200, 200, size=(500, 2))
    text = "\n".join(f"{a!r},{b!r}" for a, b in values.tolist())
    (tmp_path / "t.csv").write_text(f"a,b\n{text}\n")
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").values, values)


@pytest.mark.parametrize("sparse", [False, True])
def test_an_h5ad_file_gives_the_answer_of_tl(sparse, tmp_path):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    X = np.log1p(rng.poisson(rng.gamma(0.4, 2.0, (3, 60))[np.arange(90) % 3]).astype(float))
    adata = anndata.AnnData(sp.csr_matrix(X) if sparse else X)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    table = read_table(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(np.isnan(table.dense()), X == 0)
    assert "--missing-value" not in table.advise().command()  # log(2) is no code
    tl.mnar_kmeans(adata, 3, random_state=0, verbose=False)
    model = MNARKMeans(3, random_state=0).fit(table.values)
    np.testing.assert_array_equal(adata.obs["mnar_kmeans"].astype(int), model.labels_)
