"""Text files, large and odd."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from written import write

from mnarkmeans.tables import TableError, read_table


def test_tables_with_very_many_columns(tmp_path):
    """The header alone has more than 131,072 characters, the limit of Python's csv module."""
    p, rng = 20_000, np.random.default_rng(0)
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


def test_groups_names_and_units_are_joined_as_in_a_sheet(tmp_path):
    text = ";sugars;;acids\nSample Name;glucose;fructose;citrate\n;mM;mM;g/l\n"
    text += "p1;90;140;1.5\np2;100;n.d.;2.5\np3;80;120;\n"
    table = read_table(write(tmp_path, "t.csv", text))
    assert table.features == ["sugars glucose mM", "sugars fructose mM", "acids citrate g/l"]
    np.testing.assert_array_equal(table.values[0], [90, 140, 1.5])
    assert list(table.ids) == ["p1", "p2", "p3"]
    assert "three lines of names were joined, such as 'sugars glucose mM'" in table.notes


MEASURE = """
import resource, sys
from mnarkmeans.tables import TableError, read_table
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
    row = ",".join("1.25" for _ in range(5_000))
    header = ",".join(f"gene{j}" for j in range(5_000))
    (tmp_path / "t.csv").write_text(header + "\n" + f"{row}\n" * 1000)
    size, megabytes = measured(tmp_path / "t.csv")
    assert int(size) == 1000 * 5_000 * 8
    assert megabytes < 4 * 40 + 150


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path):
    """Half a megabyte that unpacks to 300 megabytes."""
    with gzip.open(tmp_path / "bomb.csv.gz", "wb", compresslevel=9) as stream:
        for _ in range(300):
            stream.write(b"1," * 500_000)
    assert (tmp_path / "bomb.csv.gz").stat().st_size < 1_000_000
    told, megabytes = measured(tmp_path / "bomb.csv.gz")
    assert "has a line of more than 32 MB" in told
    assert megabytes < 200
    (tmp_path / "later.csv").write_bytes(b"a,b\n1,2\n" + b"3," * 20_000_000 + b"\n")
    with pytest.raises(TableError, match="has a line of more than 32 MB"):
        read_table(tmp_path / "later.csv")


def test_a_table_that_cannot_fit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("mnarkmeans.tables._text.machine_memory", lambda: 1e3)
    with pytest.raises(TableError, match=r"of memory to be read.*Parquet"):
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
    with pytest.raises(TableError, match=r"row 3 of .* has 4 fields where 3"):
        read_table(write(tmp_path, "t.csv", text + "r3,4,5,6" + end))


def test_quoted_line_ends_and_delimiters(tmp_path):
    text = 'id,"a\n(units)",b,note\n"r,1",1,2,"two\nlines"\n"r ""2""",3,4,""\n'
    table = read_table(write(tmp_path, "t.csv", text))
    assert table.features == ["a\n(units)", "b"]
    assert list(table.ids) == ["r,1", 'r "2"']
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    with pytest.raises(TableError, match="cannot be read as a table"):
        read_table(write(tmp_path, "t.csv", 'a,b\n1,2\n3,"4\n5,6\n7,8\n'))


def test_blanks_separate_and_quotes_hold_together(tmp_path):
    text = '  "a"  "b"\n"first row"   1.5 2\n"second row" 3    4  \n'
    table = read_table(write(tmp_path, "t.txt", text))
    assert list(table.ids) == ["first row", "second row"]
    np.testing.assert_array_equal(table.values, [[1.5, 2], [3, 4]])


def test_words_that_appear_late_are_seen(tmp_path, monkeypatch):
    """After the first lines, and after the first chunk."""
    monkeypatch.setattr("mnarkmeans.tables._text.LONGEST_LINE", 300)
    rows = [f"{i},{i / 8}" for i in range(100)]
    late = [*rows, "100,n.f.", "101,12.5"]
    with pytest.raises(TableError, match=r"1 of the entries are words: 'n.f.'"):
        read_table(write(tmp_path, "t.csv", "a,b\n" + "\n".join(late) + "\n"))
    table = read_table(tmp_path / "t.csv", missing_value=["n.f."])
    expected = [[i, i / 8] for i in range(100)] + [[100, np.nan], [101, 12.5]]
    np.testing.assert_array_equal(table.values, expected)
    text = "a;b\n" + "\n".join(late).replace(",", ";").replace(".", ",") + "\n"
    german = write(tmp_path, "t.csv", text)
    with pytest.raises(TableError, match="1 of the entries are words: 'n,f,'"):
        read_table(german)
    read = read_table(german, missing_value=["n,f,"])
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
        missing_value=["0"],
        labels=("kind",),
    )
    assert list(table.ids) == ["0", "1", "2"]
    np.testing.assert_array_equal(table.values.ravel(), [1, np.nan, 3])
    assert [x for x in table.labels["kind"] if isinstance(x, str)] == ["x", "y"]


def test_a_file_of_an_older_spreadsheet_is_read_as_windows_1252_with_a_note(tmp_path):
    text = "Größe;a\nmüde;1,5\nwach;2,5\n".encode("cp1252")
    table = read_table(write(tmp_path, "t.csv", text))
    assert (table.id_name, list(table.ids)) == ("Größe", ["müde", "wach"])
    assert any("not UTF-8 and was read as Windows-1252" in note for note in table.notes)
    with pytest.raises(TableError, match="not UTF-8 text"):
        read_table(tmp_path / "t.csv", encoding="utf-8")
