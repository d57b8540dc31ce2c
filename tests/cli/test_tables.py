"""Every format and every oddity of a table, read without the command line around it."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mnarkmeans.cli._errors import UserError
from mnarkmeans.cli._frames import Table
from mnarkmeans.cli._options import Reading, Scale, Steps
from mnarkmeans.cli._prepare import Preparation, learn, matched
from mnarkmeans.cli._tables import read_table

VALUES = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan], [7.0, 8.0, 9.0]])
TEXT = "sample,a,b,c,kind\nr1,1.5,NA,3,x\nr2,4,5,,x\nr3,7,8,9,y\n"


def write(folder, name, content):
    path = folder / name
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


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
    raw = read_table(tmp_path / "t.h5ad", Reading(layer="raw", missing_codes=["0"]))
    np.testing.assert_array_equal(raw.values, VALUES.astype(np.float32))
    assert list(raw.ids) == ["r1", "r2", "r3"]
    with pytest.raises(UserError, match="no layer called 'rw'; did you mean 'raw'"):
        read_table(tmp_path / "t.h5ad", Reading(layer="rw"))


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
    assert read_table(path, Reading(columns=["LFQ *"])).features == ["LFQ a", "LFQ b"]
    table = read_table(path, Reading(drop=["LFQ *"], id_column="p"), labels=("kind",))
    assert table.features == ["count"]
    assert list(table.labels["kind"]) == [0, 1]
    with pytest.raises(UserError, match="no column called 'knd'; did you mean 'kind'"):
        read_table(path, labels=("knd",))


def test_transposed_tables_have_samples_in_rows(tmp_path):
    text = "Protein IDs,s1,s2\nP1,1,2\nP2,,4\nP3,5,6\n"
    table = read_table(write(tmp_path, "t.csv", text), Reading(transpose=True))
    assert table.features == ["P1", "P2", "P3"]
    assert list(table.ids) == ["s1", "s2"]
    np.testing.assert_array_equal(table.values, [[1, np.nan, 5], [2, 4, 6]])
    twice = write(tmp_path, "u.csv", text.replace("P2", "P1"))
    with pytest.raises(UserError, match="'P1' appears more than once"):
        read_table(twice, Reading(transpose=True, id_column="Protein IDs"))


def test_user_codes_mean_missing(tmp_path):
    text = "a,b\n0,n.d.\n1,2\n3,-99\n"
    table = read_table(write(tmp_path, "t.csv", text), Reading(missing_codes=["0", "n.d.", "-99"]))
    np.testing.assert_array_equal(table.values, [[np.nan, np.nan], [1, 2], [3, np.nan]])


def test_a_table_without_header_is_recognised(tmp_path):
    table = read_table(write(tmp_path, "t.csv", "1,2\n3,4\n"))
    assert table.features == ["V1", "V2"]
    assert "V1, V2" in table.notes[0]
    assert read_table(write(tmp_path, "t.csv", "1,2\n3,4\n"), Reading(header=True)).features == [
        "1",
        "2",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "\n \n", "is empty"),
        ("t.csv", "a,b\n", "header line but no rows"),
        ("t.csv", "a,b\n1,2\n3\n", "line 3 .* has 1 fields where 2 were expected"),
        ("t.csv", "a,b\n1,2\n3,4,5\n", "line 3 .* has 3 fields"),
        ("t.csv", "a,a\n1,2\n", "more than one column called 'a'"),
        ("t.csv", "a,b\nx,y\nz,u\n", "no numeric column"),
        ("t.csv", "a,b\nNA,\n,NaN\n", "no numeric column"),
        ("t.csv", "a,b\n1,\xe9\n".encode("latin-1"), "not UTF-8 text .*--encoding cp1252"),
        ("t.csv", b"a,b\n1,\x00\n", "not a text file"),
        ("t.csv", b"PK\x03\x04rest", "Excel workbook"),
        ("t.csv", "a,b\n1,2\n3,inf\n", "infinite value in row '2'"),
        ("t.csv", "a,b\n1,2\n3,x\n5,4\n", "1 of its entries are not, such as 'x'.*--drop b"),
        ("t.csv.gz", None, "damaged gzip"),
        ("t.xlsx", "x", "spreadsheet"),
        ("t.dat", "x", "does not end in a known format"),
        ("t.parquet", "x", "not a readable Parquet"),
        ("t.npy", "x", "not a readable .npy"),
        ("t.npz", "x", "not a readable .npz"),
        ("t.h5ad", "x", "not a readable .h5ad"),
    ],
)
def test_bad_files_are_told_in_a_sentence(tmp_path, name, content, message):
    if name.endswith(".h5ad"):
        pytest.importorskip("anndata")
    if content is None:
        path = tmp_path / name
        path.write_bytes(gzip.compress(TEXT.encode())[:-12])
    else:
        path = write(tmp_path, name, content)
    with pytest.raises(UserError, match=message) as caught:
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
        with pytest.raises(UserError, match=message):
            read_table(tmp_path / name)
    with pytest.raises(UserError, match="is a folder"):
        read_table(tmp_path)


def test_wrong_options_for_a_file_are_told(tmp_path):
    path = write(tmp_path, "t.csv", TEXT)
    with pytest.raises(UserError, match="looks comma-separated"):
        read_table(path, Reading(delimiter=";"))
    with pytest.raises(UserError, match="'klingon' is not an encoding"):
        read_table(path, Reading(encoding="klingon"))
    with pytest.raises(UserError, match="--layer is for"):
        read_table(path, Reading(layer="x"))
    np.save(tmp_path / "t.npy", VALUES)
    with pytest.raises(UserError, match="for text files"):
        read_table(tmp_path / "t.npy", Reading(delimiter=","))


# ---- large and odd text ----------------------------------------------------------------------


@pytest.mark.parametrize("p", [9_000, 100_000])
def test_tables_with_very_many_columns(tmp_path, p):
    """The header alone has more than 131,072 characters, the limit of Python's csv module."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1000, size=(12, p)) / 8.0
    values[rng.random(values.shape) < 0.3] = np.nan
    names = [f"ENSG{j:011d}" for j in range(p)]
    frame = pd.DataFrame(values, columns=names)
    frame.insert(0, "cell", [f"c{i}" for i in range(12)])
    frame.to_csv(tmp_path / "wide.csv", index=False)
    table = read_table(tmp_path / "wide.csv")
    seen = ~np.isnan(values).all(axis=0)
    assert table.features == [name for name, kept in zip(names, seen, strict=True) if kept]
    np.testing.assert_array_equal(table.values, values[:, seen])
    assert list(table.ids) == list(frame["cell"])


MEASURE = """
import resource, sys
from mnarkmeans.cli._tables import read_table
import pandas, pyarrow.csv
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    print(read_table(sys.argv[1]).values.nbytes)
except Exception as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def measured(path):
    """What was said, and the most megabytes that reading took."""
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    told, kilobytes = done.stdout.splitlines()
    return told, int(kilobytes) / 1000


def test_a_wide_table_takes_a_few_times_its_memory(tmp_path):
    row = ",".join("1.25" for _ in range(20_000))
    header = ",".join(f"gene{j}" for j in range(20_000))
    (tmp_path / "t.csv").write_text(header + "\n" + f"{row}\n" * 500)
    size, megabytes = measured(tmp_path / "t.csv")
    assert int(size) == 500 * 20_000 * 8
    assert megabytes < 4 * 80 + 150


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path):
    """Half a megabyte that unpacks to half a gigabyte."""
    with gzip.open(tmp_path / "bomb.csv.gz", "wb", compresslevel=9) as stream:
        for _ in range(500):
            stream.write(b"1," * 500_000)
    assert (tmp_path / "bomb.csv.gz").stat().st_size < 1_000_000
    told, megabytes = measured(tmp_path / "bomb.csv.gz")
    assert "has a line of more than 32 MB" in told
    assert megabytes < 200
    (tmp_path / "later.csv").write_bytes(b"a,b\n1,2\n" + b"3," * 20_000_000 + b"\n")
    with pytest.raises(UserError, match="has a line of more than 32 MB"):
        read_table(tmp_path / "later.csv")


def test_a_table_that_cannot_fit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("mnarkmeans.cli._text.machine_memory", lambda: 1e3)
    with pytest.raises(UserError, match=r"of memory to be read.*Parquet"):
        read_table(write(tmp_path, "t.csv", "a,b\n" + "1,2\n" * 100))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", ["a\n", ""])
def test_a_blank_line_of_one_column_is_a_row(tmp_path, end, header):
    text = (header + "1\n\n3\n  \nNA\n6\n\n\n").replace("\n", end)
    table = read_table(write(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.values.ravel(), [1, np.nan, 3, np.nan, np.nan, 6])
    assert list(table.ids) == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_in_every_way(tmp_path, end):
    text = "sample,a,b\nr1,1,2\n\nr2,3,NA\n".replace("\n", end)
    table = read_table(write(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.values, [[1, 2], [3, np.nan]])
    with pytest.raises(UserError, match=r"line 5 of .* has 4 fields where 3"):
        read_table(write(tmp_path, "t.csv", text + "r3,4,5,6" + end))


def test_quoted_line_ends_and_delimiters(tmp_path):
    text = 'id,"a\n(units)",b,note\n"r,1",1,2,"two\nlines"\n"r ""2""",3,4,""\n'
    table = read_table(write(tmp_path, "t.csv", text))
    assert table.features == ["a\n(units)", "b"]
    assert list(table.ids) == ["r,1", 'r "2"']
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    with pytest.raises(UserError, match="cannot be read as a table"):
        read_table(write(tmp_path, "t.csv", 'a,b\n1,2\n3,"4\n5,6\n7,8\n'))


def test_blanks_separate_and_quotes_hold_together(tmp_path):
    text = '  "a"  "b"\n"first row"   1.5 2\n"second row" 3    4  \n'
    table = read_table(write(tmp_path, "t.txt", text))
    assert list(table.ids) == ["first row", "second row"]
    np.testing.assert_array_equal(table.values, [[1.5, 2], [3, 4]])


def test_words_that_appear_late_are_seen(tmp_path, monkeypatch):
    """After the first lines, and after the first chunk."""
    monkeypatch.setattr("mnarkmeans.cli._text.FIELDS_AT_ONCE", 30)
    rows = [f"{i},{i / 8}" for i in range(100)]
    late = [*rows, "100,n.d.", "101,12.5"]
    with pytest.raises(UserError, match=r"1 of its entries are not, such as 'n.d.'"):
        read_table(write(tmp_path, "t.csv", "a,b\n" + "\n".join(late) + "\n"))
    table = read_table(tmp_path / "t.csv", Reading(missing_codes=["n.d."]))
    expected = [[i, i / 8] for i in range(100)] + [[100, np.nan], [101, 12.5]]
    np.testing.assert_array_equal(table.values, expected)
    text = "a;b\n" + "\n".join(late).replace(",", ";").replace(".", ",") + "\n"
    german = write(tmp_path, "t.csv", text)
    with pytest.raises(UserError, match="1 of its entries are not, such as 'n,d,'"):
        read_table(german)
    read = read_table(german, Reading(missing_codes=["n,d,"]))
    np.testing.assert_array_equal(read.values, expected)


def test_numbers_are_read_to_the_last_bit(tmp_path):
    values = np.random.default_rng(0).normal(size=(50, 2)) * 10.0 ** np.arange(-25, 25)[:, None]
    lines = [f"{a!r},{b!r}" for a, b in values.tolist()]
    text = "a,b\n" + "\n".join(lines) + "\n"
    np.testing.assert_array_equal(read_table(write(tmp_path, "t.csv", text)).values, values)
    text = "name,b\n" + "\n".join([*lines, lines[0]]) + "\n"  # which names no rows: it repeats
    named = read_table(write(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(named.values[:-1], values)


def test_codes_for_missing_do_not_touch_names(tmp_path):
    table = read_table(
        write(tmp_path, "t.csv", "id,a,kind\n0,1,x\n1,0,0\n2,3,y\n"),
        Reading(missing_codes=["0"]),
        labels=("kind",),
    )
    assert list(table.ids) == ["0", "1", "2"]
    np.testing.assert_array_equal(table.values.ravel(), [1, np.nan, 3])
    assert [x for x in table.labels["kind"] if isinstance(x, str)] == ["x", "y"]


# ---- preparation ---------------------------------------------------------------------------------


def table_of(values, features=None):
    features = features or [f"f{j}" for j in range(values.shape[1])]
    ids = np.array([str(i) for i in range(values.shape[0])], dtype=object)
    return Table(values, ids, features)


@pytest.mark.parametrize("sparse", [False, True])
def test_scaling_keeps_zero_as_the_reference(sparse):
    values = VALUES if not sparse else sp.csr_matrix(np.nan_to_num(VALUES))
    table, preparation = learn(table_of(values), Steps(log1p=True, scale=Scale.std))
    X = preparation.apply(table)
    data = X.toarray()[np.nan_to_num(VALUES) != 0] if sparse else X[~np.isnan(X)]
    assert (np.asarray(data) > 0).all()
    np.testing.assert_array_equal(preparation.reference(0.0), np.zeros(3))
    carried = preparation.reference(2.0)
    np.testing.assert_allclose(preparation.undo(carried), 2.0)


def test_centring_makes_the_mean_the_reference():
    table, preparation = learn(table_of(VALUES), Steps(center=True, scale=Scale.std))
    X = preparation.apply(table)
    np.testing.assert_allclose(np.nanmean(X, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(X, axis=0), 1)
    np.testing.assert_allclose(preparation.undo(np.zeros(3)), np.nanmean(VALUES, axis=0))


def test_undo_inverts_apply():
    table, preparation = learn(table_of(VALUES), Steps(log1p=True, center=True, scale=Scale.maxabs))
    np.testing.assert_allclose(preparation.undo(preparation.apply(table)), VALUES)


def test_features_with_too_many_gaps_are_dropped_and_told():
    table, _ = learn(table_of(VALUES), Steps(max_missing=0.1))
    assert table.features == ["f0"]
    assert table.left_out == [("f1", "33% missing"), ("f2", "33% missing")]
    gappy = np.where(np.eye(3) > 0, np.nan, VALUES)
    with pytest.raises(UserError, match="raise --max-missing"):
        learn(table_of(gappy), Steps(max_missing=0.0))


def test_log1p_needs_values_above_minus_one():
    with pytest.raises(UserError, match="the table holds -2"):
        learn(table_of(np.array([[-2.0], [1.0]])), Steps(log1p=True))


def test_columns_are_matched_by_name():
    table = table_of(VALUES, ["c", "a", "b"])
    out = matched(table, ("a", "b"))
    np.testing.assert_array_equal(out.values, VALUES[:, [1, 2]])
    with pytest.raises(UserError, match="lacks 'd' and 1 more"):
        matched(table, ("a", "d", "e"))
    table.left_out.append(("gap", "no value observed"))
    out = matched(table, ("a", "gap", "c"))
    assert np.isnan(out.values[:, 1]).all()
    np.testing.assert_array_equal(out.values[:, 2], VALUES[:, 0])


def test_preparation_survives_storage():
    _, preparation = learn(table_of(VALUES), Steps(log1p=True, center=True, scale=Scale.std))
    again = Preparation.from_dict(preparation.to_dict(), list(preparation.features))
    np.testing.assert_array_equal(again.undo(np.ones(3)), preparation.undo(np.ones(3)))
