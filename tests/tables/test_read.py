"""Text files and arrays: every way of writing a table gives the same table, or a sentence."""

import gzip
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mnarkmeans.tables import TableError, read_table

NAN = np.nan
VALUES = np.array([[1.5, NAN, 3.0], [4.0, 5.0, NAN], [7.0, 8.0, 9.0]])
TEXT = "sample,a,b,c,kind\nr1,1.5,NA,3,x\nr2,4,5,,x\nr3,7,8,9,y\n"


def write(folder, content, name="t.csv"):
    if isinstance(content, str):
        content = content.encode()
        content = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
    (folder / name).write_bytes(content)
    return folder / name


SAME = {
    "t.csv": TEXT, "t.csv.gz": TEXT, "tabs.tsv": TEXT.replace(",", "\t"),
    "tabs.txt.gz": TEXT.replace(",", "\t"), "semicolons.csv": TEXT.replace(",", ";"),
    "commas.csv": TEXT.replace(",", ";").replace(".", ","),
    "bars.csv": TEXT.replace(",", "|").replace("\n", "\r\n"), "mac.csv": TEXT.replace("\n", "\r"),
    "bom.csv": "\ufeff" + TEXT, "utf16.csv": TEXT.encode("utf-16"),
    "filtered.csv": TEXT.replace("NA", "Filtered"), "nan.csv": TEXT.replace("NA", " nan "),
    "quotes.csv": TEXT.replace("r1", '"r,1"').replace("kind", '"ki""nd"'),
    "blank_lines.csv": "\n" + TEXT.replace("r2", "\nr2") + "\n\n",
    "title.csv": "My experiment\n\n" + TEXT, "ends.csv": TEXT.replace("x\n", "x,\n").replace(
        "y\n", "y,\n"),
    "r.txt": "a b c\nr1 1.5 NA 3\nr2 4 5 NA\nr3 7 8 9\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_text_tables_give_the_same_numbers(tmp_path, name):
    table = read_table(write(tmp_path, SAME[name], name))
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.features == ["a", "b", "c"]
    assert [str(i).replace(",", "") for i in table.ids] == ["r1", "r2", "r3"]


NUMBERS = {
    "0,125 leaves no doubt": ("id\ta\tb\nr\t0,125\t2,250\ns\t1,500\t3,5\n",
                              [[0.125, 2.25], [1.5, 3.5]]),
    "minus of print": ("id;a;b\nr;−0,13;–1,5\ns;0,64;–2,5\nt;−1e−3;–\n",
                       [[-0.13, -1.5], [0.64, -2.5], [-1e-3, NAN]]),
    "points group": ("id;a;b\nr;1.234,5;2000\ns;0,25;12,5\nt;1.000.000,5;2,5\n",
                     [[1234.5, 2000], [0.25, 12.5], [1000000.5, 2.5]]),
    "commas group": ('id,a,b\nr,"1,234.5",2000\ns,0.25,12.5\nt,"1,000,000.5",2.5\n',
                     [[1234.5, 2000], [0.25, 12.5], [1000000.5, 2.5]]),
    "blanks group": ("id;a;b\nr;1 234,5;1'000\ns;0,25;12,5\n", [[1234.5, 1000], [0.25, 12.5]]),
    "marks": ("id;a;b\nr;1;n.d.\ns;< loq;2\nt;BDL;-\nu;#N/A;?\nv;3;4\n",
              [[1, NAN], [NAN, 2], [NAN, NAN], [NAN, NAN], [3, 4]]),
    "one column": ("a\n1\n\n3\nNA\n6\n\n", [[1], [3], [NAN], [6]]),
    "equal values": ("r0,5,5,5\nr1,4,6,3\nr2,6,2,8\n", [[5, 5, 5], [4, 6, 3], [6, 2, 8]]),
    "no header": ("1,2\n3,4\n", [[1, 2], [3, 4]]),
    "quoted line ends": ('id,"a\n(units)",note\n"r,1",1,"two\nlines"\n"r ""2""",3,""\n',
                         [[1], [3]]),
    "groups and units": (";sugars;;acids\nSample Name;glucose;fructose;citrate\n;mM;mM;g/l\n"
                         "p1;90;140;1.5\np2;100;n.d.;2.5\n", [[90, 140, 1.5], [100, NAN, 2.5]]),
    "known above the names": ("study,,x,1,1\nbox,,,1,2\nid,gene,name,s1,s2\n"
                              "a,g,n,1.5,2\nb,h,o,3.5,4\nc,i,p,5,6\n",
                              [[1.5, 2], [3.5, 4], [5, 6]]),
}  # fmt: skip


@pytest.mark.parametrize("what", NUMBERS)
def test_numbers_as_people_write_them(tmp_path, what):
    text, expected = NUMBERS[what]
    np.testing.assert_array_equal(read_table(write(tmp_path, text)).values, expected)


def test_what_was_decided_is_noted(tmp_path):
    table = read_table(write(tmp_path, NUMBERS["groups and units"][0]))
    assert table.features == ["sugars glucose mM", "sugars fructose mM", "acids citrate g/l"]
    assert "3 lines of names were joined, such as 'sugars glucose mM'" in table.notes
    text = "id;a;b\nr;<0.25;2.5\ns;2.5;<1.5\nt;1.5;<1.5\nu;3.5;n.d.\nv;3.5;<LOD\n"
    (note,) = read_table(write(tmp_path, text)).notes
    assert note.startswith("read as missing: '<1.5' (2), '<0.25' (1), 'n.d.' (1), '<LOD' (1)")
    table = read_table(write(tmp_path, "1,2\n3,4\n"))
    assert table.features == ["V1", "V2"]
    assert "V1, V2" in table.notes[0]
    assert read_table(tmp_path / "t.csv", header=True).features == ["1", "2"]
    table = read_table(write(tmp_path, "Größe;a\nmüde;1,5\nwach;2,5\n".encode("cp1252")))
    assert (table.id_name, list(table.ids)) == ("Größe", ["müde", "wach"])
    assert any("not UTF-8 and was read as Windows-1252" in note for note in table.notes)


def stored(save, *arrays, **options):
    buffer = io.BytesIO()
    save(buffer, *arrays, **options)
    return buffer.getvalue()


LINES = "\n".join(f"r{i},{i / 8 if i % 4 == 0 else 'weg'},{i + 0.5}" for i in range(40))
UNITS = "\n".join(f"r{i},{i}.5 mg,{i} %,{i}.1 mg,{i}.5" for i in range(20))
REFUSED = [  # a file, what it holds, what is said of it; options
    ("t.csv", "", "is empty"),
    ("t.csv", "\n \n", "is empty"),
    ("t.csv", "a,b\n", "header line but no rows"),
    ("t.csv", "a,b\n1,2\n3\n", "rows of different lengths .*Row #3: Expected 2 columns, got 1: 3"),
    ("t.csv", "title\n\nid,a,b\r\nr,1,2\r\n\r\ns,3,4,5\r\n", "Expected 3 columns, got 4: s,3,4,5"),
    ("t.csv", 'a,b\n1,2\n3,"4\n5,6\n7,8\n', "a quote that is opened and never closed"),
    ("t.csv", "a,a\n1,2\n", "more than one column called 'a'"),
    ("t.csv", "a,b\nx,y\nz,u\n", "no numeric column"),
    ("t.csv", "a,b\nNA,\n,NaN\n", "no numeric column"),
    ("t.csv", b"a,b\n1,\x00\n", "not a text file"),
    ("t.csv", b"PK\x03\x04rest", "not a text file"),
    ("t.txt", "id   a  b\nr1 1.5 NA\nr2   4  5\n", "columns padded with blanks"),
    ("t.csv", "f0\n3,718\n2,55\n1,2\n", "Expected 1 columns, got 2: 3,718"),
    ("t.csv", "a,b\n1,2\n3,inf\n", "infinite value in row '2'"),
    ("t.csv", "a,b\n1,2\n3,x\n5,4\n", "1 of the .*: 'x'.*missing_value=.x.*drop=.b"),
    ("t.csv", "id,a\n" + "\n".join(f"r{x},{x}" for x in "1234uvwxyz"), "'y' .1. and 1 more; if"),
    ("t.csv", f"id,a,b\n{LINES}\n", "column 'a' .* 30 of the entries cannot be .*: 'weg'"),
    ("t.csv", f"id,a,b,c,n\n{UNITS}\n", "3 columns look like measurements.*'0.5 mg'.*'a'"),
    ("t.tsv", "id\ta\tc\nr\t1.5\t3,250\ns\t2.5\t950\nt\t2.5\t11,500\n",
     'column .c. looks .*3,250.*decimal=","'),
    ("t.csv", "id;a\nr;950\ns;12.500\nt;1.234\n", "column 'a' may hold thousands .* as in 12.500"),
    ("t.csv", TEXT + TEXT, "column 'a' .* 1 of the entries cannot be .*: 'a'"),
    ("t.csv", "id;a;b;c\nr;1.5;1.5;3,25\ns;2.5;2.5;11,5\n", r'column .c. .*3,25..*decimal=","'),
    ("cut.csv.gz", gzip.compress(TEXT.encode(), mtime=0)[:-12], "not a readable text file"),
    ("t.xls", "x", "does not end in a known format; save it as"),
    ("t.dat", "x", "does not end in a known format"),
    *((f"t.{kind}", "x", f"not a readable {kind}")
      for kind in ("xlsx", "parquet", "npy", "npz", "h5ad")),
    ("one.npy", stored(np.save, np.arange(3.0)), "1-dimensional"),
    ("text.npy", stored(np.save, np.array([["a", "b"]])), "needs numbers"),
    ("objects.npy", stored(np.save, np.array([[{}]])), "Python objects"),
    ("two.npz", stored(np.savez, VALUES, VALUES), "holds 2 arrays"),
    ("coo.npz", stored(sp.save_npz, sp.coo_matrix(np.eye(3))), "format 'coo'; save it as CSR"),
    ("t.csv", TEXT, "no numeric column .* is the delimiter= right", {"delimiter": ";"}),
    *(("t.csv", TEXT, "must be one character", {"delimiter": d}) for d in ("ab", "é", '"', "\n")),
    ("t.csv", TEXT, "unknown encoding: klingon", {"encoding": "klingon"}),
    ("t.csv", TEXT, "layer= is for", {"layer": "x"}),
    ("t.csv", TEXT, "sheet= is for xlsx files", {"sheet": "1"}),
    ("t.csv", TEXT, "no column called 'knd'; did you mean 'kind'", {"labels": "knd"}),
    ("t.npy", stored(np.save, VALUES), "delimiter= is for text", {"delimiter": ","}),
    ("c.csv", "Größe\n1\n2\n".encode("cp1252"), "not UTF-8 text", {"encoding": "utf-8"}),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[2])
def test_bad_files_are_refused_in_a_sentence(tmp_path, case):
    name, content, message, *options = case
    pytest.importorskip({"t.h5ad": "anndata", "t.xlsx": "openpyxl"}.get(name, "pandas"))
    with pytest.raises(TableError, match=message) as caught:
        read_table(write(tmp_path, content, name), **dict(*options))
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path):
    for path, message in ((tmp_path / "none.csv", "no file"), (tmp_path, "is a folder")):
        with pytest.raises(TableError, match=message):
            read_table(path)


def test_commands_in_messages_are_quoted_for_every_shell(tmp_path):
    path = write(tmp_path, "id\ta\nr\t3,250\ns\t11,500\n", "t.tsv")
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert '--decimal ","' in caught.value.command_line
    assert read_table(path, decimal=",").values[0, 0] == 3.25
    assert read_table(path, decimal=".").values[0, 0] == 3250
    write(tmp_path, "id\ta\nr\t3.250\ns\t950\n", "t.tsv")
    assert read_table(path, decimal=",").values[0, 0] == 3250
    alone = write(tmp_path, "f0\n3,718\n2,55\n", "alone.csv")
    assert list(read_table(alone, decimal=",").values) == [3.718, 2.55]
    write(tmp_path, "id,a\nr,1.5\ns,n f\nt,2\n")
    with pytest.raises(TableError) as caught:
        read_table(tmp_path / "t.csv")
    assert '--missing-value "n f"' in caught.value.command_line
    assert read_table(tmp_path / "t.csv", missing_value="n f").missing_share() == 1 / 3


def test_columns_drop_labels_codes_and_ids_can_be_chosen(tmp_path):
    path = write(tmp_path, "p,LFQ a,LFQ b,count,kind\nx,1,2,3,0\ny,4,0,6,1\nz,4,n.f.,6,k\n")
    table = read_table(path, columns=["LFQ *"], missing_value=["0", "n.f."])
    np.testing.assert_array_equal(table.values, [[1, 2], [4, NAN], [4, NAN]])
    table = read_table(path, drop="LFQ *", id_column="p", labels="kind", missing_value=0)
    assert table.features == ["count"]
    assert [x for x in table.labels["kind"] if isinstance(x, str)] == ["1", "k"]  # 0 is missing
    path = write(tmp_path, "Protein IDs,s1,s2\nP1,1,2\nP1,,4\nP3,5,6\n")
    table = read_table(path, transpose=True)
    assert (table.features, list(table.ids)) == (["P1", "P1 (2)", "P3"], ["s1", "s2"])
    np.testing.assert_array_equal(table.values, [[1, NAN, 5], [2, 4, 6]])
    assert "were numbered, such as 'P1 (2)'" in table.notes[-1]


def test_numbers_are_read_to_the_last_bit_also_as_text(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 2)) * 10.0 ** rng.integers(-200, 200, size=(200, 2))
    lines = [f"{a!r},{b!r}" for a, b in values.tolist()]
    for names in ("a,b", "name,b"):  # which names no rows: it repeats
        text = "\n".join([names, *lines, lines[0]]) + "\n"
        np.testing.assert_array_equal(read_table(write(tmp_path, text)).values[:-1], values)


def test_words_below_the_first_lines_are_seen(tmp_path):
    rows = [f"{i / 4},{i / 8}" for i in range(100)]
    late = "a,b\n" + "\n".join([*rows, "100,n.f.", "101,12.5"]) + "\n"
    expected = [[i / 4, i / 8] for i in range(100)] + [[100, NAN], [101, 12.5]]
    for text, word in ((late, "n.f."), (late.replace(",", ";").replace(".", ","), "n,f,")):
        path = write(tmp_path, text)
        with pytest.raises(TableError, match=f"1 of the entries cannot be .*: '{word}'"):
            read_table(path)
        np.testing.assert_array_equal(read_table(path, missing_value=word).values, expected)


# --- size -------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
from mnarkmeans.tables import read_table
import pandas, pyarrow.csv
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        print(read_table(path).shape)
    except Exception as error:
        print(error)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_reading_takes_a_few_times_the_memory_of_the_table(tmp_path):
    """A table of 24 MB, and less than a megabyte that unpacks to one line of 200."""
    pytest.importorskip("resource")
    row = ",".join(["1.25"] * 3_000)
    header = ",".join(f"gene{j}" for j in range(3_000))
    (tmp_path / "t.csv").write_text(header + "\n" + f"{row}\n" * 1000)
    with gzip.open(tmp_path / "bomb.csv.gz", "wb", compresslevel=9) as stream:
        for _ in range(200):
            stream.write(b"1," * 500_000)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path / "t.csv", tmp_path / "bomb.csv.gz"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    shape, kilobytes, refusal, more = done.stdout.splitlines()
    assert shape == "(1000, 3000)"
    assert int(kilobytes) < 1000 * (3 * 24 + 80)  # libraries and blocks take the rest
    assert "has a line of more than 32 MB" in refusal
    assert int(more) < 200_000


@pytest.mark.parametrize("name", ["t.csv", "t.npy", "t.parquet", "parts", "t.zarr"])
def test_a_table_that_cannot_fit_is_refused(tmp_path, monkeypatch, name):
    """Binary ones by what they declare, before values are read; a folder holds Parquet files."""
    values, path = np.arange(200.0).reshape(100, 2), tmp_path / name
    frame = pd.DataFrame(values, columns=["a", "b"])
    (tmp_path / "parts").mkdir()
    if name == "t.npy":
        np.save(path, values)
    elif name == "t.zarr":
        pytest.importorskip("zarr").save(str(path), values)
    elif name == "t.csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(tmp_path / "t.parquet")
        for number in range(2):
            frame[50 * number :][:50].to_parquet(tmp_path / "parts" / f"{number}.parquet")
    monkeypatch.setattr("mnarkmeans.tables._table.machine_memory", lambda: 3e3)
    with pytest.raises(TableError, match=r"too large for 3e-06 GB of memory.*MNARKMeans"):
        read_table(path)  # 1,600 bytes
    monkeypatch.setattr("mnarkmeans.tables._table.machine_memory", lambda: 1e4)
    np.testing.assert_array_equal(read_table(path, columns="*").dense(), values)


def test_a_table_with_very_many_columns(tmp_path):
    """The header alone has more than 131,072 characters, the limit of Python's csv module."""
    values = np.random.default_rng(0).integers(0, 1000, size=(12, 10_000)) / 8.0
    values[0] = NAN
    frame = pd.DataFrame(values, columns=[f"ENSG{j:011d}" for j in range(10_000)])
    frame.insert(0, "cell", [f'c"{i}' for i in range(12)])
    frame.to_csv(tmp_path / "wide.csv", index=False)
    table = read_table(tmp_path / "wide.csv")
    np.testing.assert_array_equal(table.values, values)
    assert list(table.ids) == list(frame["cell"])


# --- arrays -----------------------------------------------------------------------------------


def test_binary_formats_give_the_same_numbers(tmp_path):
    np.save(tmp_path / "t.npy", VALUES)
    np.savez(tmp_path / "d.npz", VALUES)
    sp.save_npz(tmp_path / "t.npz", sp.csr_matrix(np.nan_to_num(VALUES)))
    names = ["r1", "r2", "r3"]
    frame = pd.DataFrame(VALUES, columns=["a", "b", "c"]).astype({"b": "Float64"})
    frame.assign(name=names).to_parquet(tmp_path / "t.parquet")
    frame.set_index(pd.Index(names)).to_parquet(tmp_path / "i.parquet")
    for file, ids in {"t.npy": ["1", "2", "3"], "d.npz": ["1", "2", "3"], "t.parquet": names,
                      "i.parquet": names}.items():  # fmt: skip
        table = read_table(tmp_path / file)
        np.testing.assert_array_equal(table.values, VALUES)
        assert list(table.ids) == ids
    table = read_table(tmp_path / "t.npz")
    assert sp.issparse(table.values)
    np.testing.assert_array_equal(table.dense(), VALUES)
    assert table.missing_share() == pytest.approx(2 / 9)
    single = np.array([[0.1, 2.0], [3.0, 0.1]], dtype=np.float32)
    for save, values in ((np.savez, single), (sp.save_npz, sp.csr_matrix(single))):
        save(tmp_path / "f.npz", values)  # a code has the precision of the table
        assert read_table(tmp_path / "f.npz", missing_value=["0.1"]).missing_share() == 0.5


@pytest.mark.filterwarnings("ignore")
def test_anndata_layers_labels_and_zeros(tmp_path):
    anndata = pytest.importorskip("anndata")
    rng, path = np.random.default_rng(0), tmp_path / "t.h5ad"
    X = np.log1p(rng.poisson(rng.gamma(0.4, 2.0, (3, 60))[np.arange(90) % 3]).astype(np.float32))
    obs = pd.DataFrame({"kind": [*"xyz"] * 30}, [f"c{i}" for i in range(90)])
    for form in (sp.csr_matrix, np.asarray):
        anndata.AnnData(form(X), obs, layers={"raw": X + 1}).write_h5ad(path)
        table = read_table(path, labels="kind")
        np.testing.assert_array_equal(np.isnan(table.dense()), X == 0)
        assert list(table.labels["kind"]) == list(obs["kind"])
        assert "--missing-value" not in table.advise().command()  # log(2) is no code
        assert "X was read; the file also has the layer 'raw'" in table.notes
    np.testing.assert_array_equal(read_table(path, layer="raw").values, X + 1)
    with pytest.raises(TableError, match="no layer called 'rw'; did you mean 'raw'"):
        read_table(path, layer="rw")


def test_parquet_with_levels_of_row_names_or_nested_columns(tmp_path):
    frame, path = pd.DataFrame(np.ones((4, 2)), columns=list("ab")), tmp_path / "t.parquet"
    frame.set_index(pd.MultiIndex.from_product([["x", "y"], [1, 2]])).to_parquet(path)
    with pytest.raises(TableError, match=r"names in several levels; .*reset_index"):
        read_table(path)
    nested = frame.assign(many=[[1.0], [2.0], [], [3.0]])
    nested.to_parquet(path)
    table = read_table(path)
    assert table.features == ["a", "b"]
    assert "left out 'many': nested values" in table.notes
    with pytest.raises(TableError, match="nested values in column 'many'"):
        read_table(nested)
    commas = frame.assign(c=["0,5", "1,5", "2,5", "3,5"])
    assert read_table(commas, decimal=",").values[1, 2] == 1.5
