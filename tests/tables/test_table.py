"""The object that `read_table` gives, and the second file of annotations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lab_files import FILES
from lab_reports import main_report
from written import write

from mnarkmeans import read_table
from mnarkmeans.tables import ReadOptions, TableError

TEXT = "sample,a,b,note\nr1,1,NA,x<b>\nr2,2,3,x<b>\n"


def test_a_table_is_a_frame_and_speaks_for_itself(tmp_path):
    table = read_table(write(tmp_path, "t.csv", TEXT))
    expected = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, 3.0]}, pd.Index(["r1", "r2"]))
    pd.testing.assert_frame_equal(table.to_frame(), expected, check_names=False)
    assert repr(table).splitlines() == [
        "Table t.csv: 2 rows, 2 features, 25.0% missing",
        "  rows are named by 'sample', such as 'r1'",
        "  left out 'note': text, such as 'x<b>'",
    ]
    page = table._repr_html_()
    assert "x&lt;b&gt;" in page
    assert "<table" in page


def test_a_frame_is_read_like_the_file_it_would_be(tmp_path):
    table = read_table(write(tmp_path, "t.csv", TEXT))
    frame = pd.read_csv(tmp_path / "t.csv")
    for source in (frame, frame.set_index("sample")):
        again = read_table(source)
        np.testing.assert_array_equal(again.values, table.values)
        assert (list(again.ids), again.features) == (list(table.ids), table.features)
    assert list(frame.columns) == ["sample", "a", "b", "note"]


def test_options_survive_storage_and_damage_is_refused(tmp_path):
    path = write(tmp_path, "t.csv", TEXT)
    options = ReadOptions.of(columns="a", missing_value=[0, -99.5], sheet=2)
    assert ReadOptions.from_dict(options.to_dict()) == options
    assert options.missing_value == ("0", "-99.5")
    assert read_table(path).remembered.id_column == "sample"
    assert options.for_new_file(path).sheet is None
    old = {"missing_codes": ["0"], "columns": None, "transpose": True, "decimal": ","}
    assert ReadOptions.from_dict(old).missing_value == ("0",)
    for wrong in ({"columns": "a"}, {"decimal": ";"}, {"transpose": 1}, {"drop": [1]}, None):
        with pytest.raises(TableError, match="damaged"):
            ReadOptions.from_dict(wrong)


def test_genes_and_short_names(tmp_path):
    file, _ = FILES["maxquant"](tmp_path)
    table = read_table(tmp_path / file, columns="LFQ intensity *", transpose=True)
    assert table.short_ids[:2] == ["S00", "S01"]
    assert table.feature_labels[table.features[3]] == "GENE1"
    runs, _ = FILES["diann"](tmp_path)
    table = read_table(tmp_path / runs, transpose=True)
    assert table.short_ids[:2] == ["2026_000", "2026_001"]


@pytest.mark.parametrize("name", ["report.parquet", "report.tsv"])
def test_the_main_report_of_diann_is_filtered_and_pivoted(tmp_path, name):
    frame, _, expected = main_report()
    if name.endswith("parquet"):
        frame.to_parquet(tmp_path / name)
    else:
        frame.to_csv(tmp_path / name, sep="\t", index=False)
    table = read_table(tmp_path / name)
    assert list(table.ids) == [f"run_{i:02d}" for i in range(24)]
    order = [int(feature[1:]) - 10000 for feature in table.features]
    np.testing.assert_allclose(table.values, expected[:, order])
    assert "Q.Value <= 0.01, PG.Q.Value <= 0.05, Lib.PG.Q.Value <= 0.01" in table.notes[0]
    assert table.feature_labels["P10007"] == "G7"
    with pytest.raises(TableError, match="without quantities"):
        read_table(frame.drop(columns="PG.MaxLFQ").to_csv(tmp_path / "r.tsv", sep="\t", index=False)
                   or tmp_path / "r.tsv")  # fmt: skip


# --- annotations ------------------------------------------------------------------------------


def annotated(tmp_path, text, ids=("S1", "S2", "S3")):
    values = "id,a\n" + "".join(f"{name},{i}\n" for i, name in enumerate(ids))
    about = write(tmp_path, "about.csv", text)
    return read_table(write(tmp_path, "t.csv", values), annotations=about)


def test_rows_are_found_in_any_order_and_some_may_be_absent(tmp_path):
    table = annotated(tmp_path, "x,sample,time\na,S3,1.5\nb,S1,n.d.\n")
    assert table.annotations == {"x": ["b", None, "a"], "time": [None, None, 1.5]}
    assert "1 of 3 rows are not in about.csv" in table.notes


@pytest.mark.parametrize("form", ["LFQ intensity {}", "D:\\runs\\{}.raw", "/data/{}.mzML"])
def test_names_of_columns_and_raw_files_are_shortened(tmp_path, form):
    ids = [form.format(name) for name in ("S1", "S2", "S3")]
    table = annotated(tmp_path, "sample,group\nS2,b\nS1,a\nS3,b\n", ids)
    assert table.annotations == {"group": ["a", "b", "b"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample,group\nT1,a\nT2,b\n", "no column of .* holds the row names .* such as 'S1'"),
        ("sample,group\nS1,a\nS1,b\nS2,c\n", "more than one row for 'S1' in column 'sample'"),
        ("sample\nS1\nS2\n", "no column besides 'sample'"),
    ],
)
def test_files_that_cannot_be_joined_are_refused(tmp_path, text, message):
    with pytest.raises(TableError, match=message):
        annotated(tmp_path, text)
