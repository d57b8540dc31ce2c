"""Sheets as people make them: titles, two lines of names, numbers stored as text."""

from __future__ import annotations

import numpy as np
import pytest

from mnarkmeans.tables import TableError, read_table

openpyxl = pytest.importorskip("openpyxl")


def book(folder, *sheets, name="t.xlsx"):
    made = openpyxl.Workbook()
    made.remove(made.active)
    for number, lines in enumerate(sheets, start=1):
        sheet = made.create_sheet(f"sheet {number}")
        for line in lines:
            sheet.append(line)
    made.save(folder / name)
    return folder / name


PLAIN = [["sample", "a", "b"], ["r1", 1.5, None], ["r2", 4, "n.d."], ["r3", "7", 8]]


def test_a_sheet_is_a_table(tmp_path):
    table = read_table(book(tmp_path, PLAIN))
    np.testing.assert_array_equal(table.values, [[1.5, np.nan], [4, np.nan], [7, 8]])
    assert list(table.ids) == ["r1", "r2", "r3"]
    assert table.source["sheet"] == "sheet 1"


COMMAS = [
    ["sample", "a", "b", "c"], ["r1", 1.5, "11,0", 2.5], ["r2", 4, "n.d.", "<0,05"],
    ["r3", 7, "\u22123,25", 4.5], ["r4", 8, 2.5, "3,5"],
]  # fmt: skip


@pytest.mark.parametrize("reading", [{}, {"decimal": ","}])
def test_text_with_decimal_commas_is_read_beside_numbers(tmp_path, reading):
    table = read_table(book(tmp_path, COMMAS), **reading)
    np.testing.assert_array_equal(
        table.values, [[1.5, 11, 2.5], [4, np.nan, np.nan], [7, -3.25, 4.5], [8, 2.5, 3.5]]
    )
    assert "the comma was read as decimal sign in 2 columns: 'b', 'c'" in table.notes


def test_thousands_or_decimals_of_a_sheet_is_for_the_user_to_say(tmp_path):
    lines = [["sample", "a", "b"], ["r1", 1.5, "2,500"], ["r2", 3.5, "4,125"]]
    with pytest.raises(
        TableError, match=r'one column looks like .*2,500. in column .b..*decimal=","'
    ):
        read_table(book(tmp_path, lines))
    table = read_table(book(tmp_path, lines), decimal=",")
    np.testing.assert_array_equal(table.values, [[1.5, 2.5], [3.5, 4.125]])
    lines[1][2] = "0,500"  # one clear number tells of all
    table = read_table(book(tmp_path, lines))
    np.testing.assert_array_equal(table.values, [[1.5, 0.5], [3.5, 4.125]])


def test_titles_are_passed_over_and_empty_lines_too(tmp_path):
    lines = [["Project 12"], [], [None, "exported by hand"], *PLAIN, []]
    table = read_table(book(tmp_path, lines))
    assert table.features == ["a", "b"]
    assert "2 lines were skipped above the table" in table.notes


HEADERS = {
    "groups": ([[None, "control", None, "treated"], ["Compound", "s1", "s2", "s1"]],
               ["control s1", "control s2", "treated s1"]),
    "units": ([["sample", "glucose", "sodium", "iron"], [None, "mg/dl", "mmol/l", "mg"]],
              ["glucose mg/dl", "sodium mmol/l", "iron mg"]),
    "groups and units": ([["sample", "sugars", None, "acids"], [None, "a", "b", "c"],
                          [None, "mM", "mM", "g"]], ["sugars a mM", "sugars b mM", "acids c g"]),
}  # fmt: skip


@pytest.mark.parametrize("what", HEADERS)
def test_lines_of_names_are_joined(tmp_path, what):
    lines, features = HEADERS[what]
    table = read_table(book(tmp_path, [*lines, ["C1", 1.5, 2, 3], ["C2", 4, None, 6]]))
    assert table.features == features
    assert list(table.ids) == ["C1", "C2"]
    assert f"lines of names were joined, such as {features[0]!r}" in " ".join(table.notes)


def test_the_first_sheet_that_holds_a_table_is_read(tmp_path):
    path = book(tmp_path, [["This workbook"], ["see sheet 2"]], PLAIN, [["id", "x"], ["q", 3]])
    table = read_table(path)
    assert table.features == ["a", "b"]
    assert "sheet 'sheet 2' was read; the workbook also has 'sheet 1' and others" in table.notes
    with pytest.raises(TableError, match="no row of numbers"):
        read_table(path, sheet="1")


def test_samples_called_by_numbers_are_names(tmp_path):
    table = read_table(book(tmp_path, [["Compound", 1, 2], ["C1", 5, 6], ["C2", 7, 8]]))
    assert table.features == ["1", "2"]


def test_a_sheet_is_chosen_by_name_or_number(tmp_path):
    other = [["id", "x"], ["q", 3], ["p", 4]]
    path = book(tmp_path, PLAIN, other)
    assert "sheet 'sheet 1' was read; the workbook also has 'sheet 2'" in read_table(path).notes
    for wanted in ("sheet 2", "2"):
        assert read_table(path, sheet=wanted).features == ["x"]
    with pytest.raises(TableError, match="no sheet called 'sheet 3'; did you mean"):
        read_table(path, sheet="sheet 3")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "nothing on this sheet"),
        ([["a", "b"], ["x", "y"]], "no row of numbers"),
        (
            [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"], [1, 2]],
            "no numeric column",
        ),
        ([["id", "a", "a"], ["r", 1, 2]], "more than one column called 'a'"),
    ],
)
def test_sheets_that_are_no_tables_are_told(tmp_path, lines, message):
    with pytest.raises(TableError, match=message):
        read_table(book(tmp_path, lines))
