"""The object that `read_table` gives, and the second file of annotations."""

import numpy as np
import pandas as pd
import pytest
from lab_files import LAB_FILES, main_report
from test_read import write

from mnarkmeans import read_table
from mnarkmeans.tables import ReadOptions, TableError

TEXT = "sample,a,b,note\nr1,1,NA,x<b>\nr2,2,3,x<b>\n"


def test_a_table_is_a_frame_and_speaks_for_itself(tmp_path):
    table = read_table(write(tmp_path, TEXT))
    expected = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, 3.0]}, pd.Index(["r1", "r2"]))
    pd.testing.assert_frame_equal(table.to_frame(), expected, check_names=False)
    assert repr(table).splitlines() == [
        "Table t.csv: 2 rows, 2 features, 25.0% missing",
        "  rows are named by 'sample', such as 'r1'",
        "  left out 'note': text, such as 'x<b>'",
    ]
    assert "rows are named" not in repr(read_table(write(tmp_path, "1,2\n3,4\n")))
    page = table._repr_html_()
    assert "x&lt;b&gt;" in page
    assert "<table" in page


def test_a_frame_is_read_like_the_file_it_would_be(tmp_path):
    table = read_table(write(tmp_path, TEXT))
    frame = pd.read_csv(tmp_path / "t.csv")
    for source in (frame, frame.set_index("sample")):
        again = read_table(source)
        np.testing.assert_array_equal(again.values, table.values)
        assert (list(again.ids), again.features) == (list(table.ids), table.features)
    assert list(frame.columns) == ["sample", "a", "b", "note"]
    dates = pd.date_range("2026-01-01", periods=2, tz="UTC")
    odd = frame.assign(date=dates, flag=pd.array([True, None], "boolean"), b=pd.array([None, 3]))
    table = read_table(odd)
    np.testing.assert_array_equal(table.values, again.values)
    assert dict(table.left_out)["date"].startswith("not numbers (datetime64")
    assert dict(table.left_out)["flag"] == "not numbers (boolean)"


def test_options_survive_storage(tmp_path):
    path = write(tmp_path, TEXT)
    options = ReadOptions.of(columns="a", missing_value=[0, -99.5], sheet=2)
    assert ReadOptions.from_dict(options.to_dict()) == options
    assert options.missing_value == ("0", "-99.5")
    assert read_table(path).remembered.id_column == "sample"
    assert options.for_new_file(path).sheet is None
    with pytest.raises(TableError, match=r"decimal= must be \. or ,"):
        read_table(path, decimal=";")


def test_genes_and_short_names(tmp_path):
    file, _ = LAB_FILES["maxquant"](tmp_path)
    table = read_table(tmp_path / file, columns="LFQ intensity *", transpose=True)
    assert table.short_ids[:2] == ["S00", "S01"]
    assert table.feature_labels[table.features[3]] == "GENE1"
    runs, _ = LAB_FILES["diann"](tmp_path)
    assert read_table(tmp_path / runs, transpose=True).short_ids[:2] == ["2026_000", "2026_001"]


def test_the_main_report_of_diann_is_filtered_and_pivoted(tmp_path):
    frame, _, expected = main_report()
    frame.to_parquet(tmp_path / "report.parquet")
    frame.to_csv(tmp_path / "report.tsv", sep="\t", index=False)
    for name in ("report.parquet", "report.tsv"):
        table = read_table(tmp_path / name)
        assert list(table.ids) == [f"run_{i:02d}" for i in range(24)]
        order = [int(feature[1:]) - 10000 for feature in table.features]
        np.testing.assert_allclose(table.values, expected[:, order])
        assert "PG.Q.Value <= 0.05, Lib.Q.Value <= 0.01, Lib.PG.Q.Value <= 0.01" in table.notes[0]
        assert table.feature_labels["P10007"] == "G7"
    frame.drop(columns="PG.MaxLFQ").to_parquet(tmp_path / "report.parquet")
    with pytest.raises(TableError, match="without quantities"):
        read_table(tmp_path / "report.parquet")


# --- annotations ------------------------------------------------------------------------------


def annotated(tmp_path, text, ids=("S1", "S2", "S3")):
    values = "id,a\n" + "".join(f"{name},{i}\n" for i, name in enumerate(ids))
    about = write(tmp_path, text, "about.csv")
    return read_table(write(tmp_path, values), annotations=about)


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
        ("sample,group\nT1,a\nT2,b\n", "needs a column that holds the row names .* such as 'S1'"),
        ("sample,group\nS1,a\nS1,b\nS2,c\n", "more than one row for 'S1' in column 'sample'"),
        ("sample\nS1\nS2\n", "row names of the table, such as 'S1', and another one"),
    ],
)
def test_files_that_cannot_be_joined_are_refused(tmp_path, text, message):
    with pytest.raises(TableError, match=message):
        annotated(tmp_path, text)


# --- numbers that name, date or count rows are not clustered ------------------------------------

RNG = np.random.default_rng(0)
ROWS = 30


def sources(folder, **columns):
    """A frame and a file of it, with two measurements."""
    a, b = np.random.default_rng(0).normal(size=(2, ROWS))
    frame = pd.DataFrame({**columns, "a": a, "b": b})
    frame.to_csv(folder / "t.csv", index=False)
    return frame, folder / "t.csv"


COUNT, NAMES = np.arange(ROWS), [f"n{i}" for i in range(ROWS)]
NUMBERS, PADDED = RNG.permutation(ROWS) + 7000, [f"{i:05d}" for i in range(ROWS)]
IDENTIFIER, RUNNING = "an identifier by its name", "counts the rows in their order"


@pytest.mark.parametrize(
    ("name", "ids"),
    [("respondent_id", NUMBERS), ("patientID", NUMBERS), ("Case No", NUMBERS), ("plot", PADDED)],
)
def test_identifiers_and_numbers_with_zeros_in_front_name_the_rows(tmp_path, name, ids):
    for source in sources(tmp_path, **{name: ids}):
        table = read_table(source)
        assert (table.id_name, table.features) == (name, ["a", "b"])
        assert list(table.ids) == [str(i) for i in ids]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"patient_id": COUNT // 2, "visitId": COUNT * 3}, IDENTIFIER),
        ({"plot": np.repeat(PADDED[:15], 2)}, "text, such as '00000'"),
        ({"vial": COUNT}, RUNNING),
        ({"vial": COUNT + 1}, RUNNING),
        ({n: RNG.normal(size=ROWS) for n in ("ID_1", "lipid", "fluid", "id ratio")}, None),
        ({"cell number": RNG.permutation(ROWS)}, None),
        ({"dose": 2 * COUNT}, None),
    ],
)
def test_numbers_that_measure_nothing_are_left_out(tmp_path, columns, reason):
    for source in sources(tmp_path, name=NAMES, **columns):
        table, kept = read_table(source), [] if reason else [*columns]
        assert (table.id_name, table.features) == ("name", [*kept, "a", "b"])
        assert table.left_out == [(name, reason) for name in columns if reason]
        first = next(iter(columns))
        if not str(reason).startswith("text"):  # whoever names a column gets it
            assert read_table(source, columns=[first, "a"]).features == [first, "a"]


def long(folder, samples=12, features=10, **more):
    i, j = np.divmod(np.arange(samples * features), features)
    values = np.random.default_rng(0).normal(size=len(i))
    table = {"SampleID": [f"s{a}" for a in i], "Assay": [f"p{a}" for a in j], "NPX": values}
    pd.DataFrame(table | more).to_csv(folder / "long.csv", index=False)
    return folder / "long.csv"


def test_a_long_table_is_told_to_be_made_wide(tmp_path):
    path = long(tmp_path, LOD=1.2)
    with pytest.raises(TableError, match=r"long format .*'SampleID' and 'Assay'.; pivot it"):
        read_table(path)
    assert read_table(path, columns=["NPX"]).shape == (120, 1)
    # Numbers do not name the rows: a plate with two measurements of each well.
    plate = long(tmp_path, samples=8, SampleID=np.repeat(np.arange(8.0), 10),
                 Assay=np.tile(np.arange(10.0), 8), bg=1.5)  # fmt: skip
    assert read_table(plate, drop=["SampleID", "Assay"]).shape == (80, 2)
    # Two groups crossed are a design, and many columns of numbers a wide table.
    assert read_table(long(tmp_path, features=2)).shape == (24, 1)
    many = {f"m{j}": np.arange(120.0) ** 2 for j in range(5)}
    assert read_table(long(tmp_path, **many)).shape == (120, 6)
