"""Sheets as people make them: titles, two lines of names, numbers stored as text."""

import numpy as np
import pytest
from lab_files import workbook

from mnarkmeans.tables import TableError, read_table

pytest.importorskip("openpyxl")
NAN = np.nan


def book(folder, *sheets):
    named = {f"sheet {number}": lines for number, lines in enumerate(sheets, start=1)}
    return workbook(folder / "t.xlsx", **named)


PLAIN = [["sample", "a", "b"], ["r1", 1.5, None], ["r2", 4, "n.d."], ["r3", "7", 8]]
OTHER = [["id", "x"], ["q", 3], ["p", 4]]


def test_titles_and_empty_lines_are_skipped(tmp_path):
    for above, notes in (([], []), ([["Project 12"], [], [None, "by hand"]],
                                    ["2 lines were skipped above the table"])):  # fmt: skip
        table = read_table(book(tmp_path, [*above, *PLAIN, []]))
        np.testing.assert_array_equal(table.values, [[1.5, NAN], [4, NAN], [7, 8]])
        assert (list(table.ids), table.features) == (["r1", "r2", "r3"], ["a", "b"])
        assert [note for note in table.notes if "skipped" in note] == notes
        assert table.source["sheet"] == "sheet 1"


@pytest.mark.parametrize("reading", [{}, {"decimal": ","}])
def test_text_with_decimal_commas_is_read_beside_numbers(tmp_path, reading):
    lines = [
        ["sample", "a", "b", "c"], ["r1", 1.5, "11,0", 2.5], ["r2", 4, "n.d.", "<0,05"],
        ["r3", 7, "\u22123,25", 4.5], ["r4", 8, 2.5, "3,5"],
    ]  # fmt: skip
    table = read_table(book(tmp_path, lines), **reading)
    expected = [[1.5, 11, 2.5], [4, NAN, NAN], [7, -3.25, 4.5], [8, 2.5, 3.5]]
    np.testing.assert_array_equal(table.values, expected)
    assert "the comma was read as the decimal sign" in table.notes[-1]


def test_thousands_or_decimals_of_a_sheet_is_for_the_user_to_say(tmp_path):
    lines = [["sample", "a", "b"], ["r1", 1.5, "2,500"], ["r2", 3.5, "4,125"]]
    path = book(tmp_path, lines)
    with pytest.raises(TableError, match=r'column .b. looks like .*2,500.*decimal=","'):
        read_table(path)
    np.testing.assert_array_equal(read_table(path, decimal=",").values, [[1.5, 2.5], [3.5, 4.125]])
    lines[1][2] = "0,500"  # one clear number tells of all
    values = read_table(book(tmp_path, lines)).values
    np.testing.assert_array_equal(values, [[1.5, 0.5], [3.5, 4.125]])


HEADERS = {
    "groups": ([[None, "control", None, "treated"], ["Compound", "s1", "s2", "s1"]],
               ["control s1", "control s2", "treated s1"]),
    "units": ([["sample", "glucose", "sodium", "iron"], [None, "mg/dl", "mmol/l", "mg"]],
              ["glucose mg/dl", "sodium mmol/l", "iron mg"]),
    "replicates": ([["Compound", "control", None, "treated"], [None, 1, 2, 1]],
                   ["control 1", "control 2", "treated 1"]),
    "numbers": ([["Compound", 1, 2, 3]], ["1", "2", "3"]),
}  # fmt: skip


@pytest.mark.parametrize("what", HEADERS)
def test_lines_of_names_are_joined(tmp_path, what):
    lines, features = HEADERS[what]
    table = read_table(book(tmp_path, [*lines, ["C1", 1.5, 2, 3], ["C2", 4, None, 6]]))
    assert (list(table.ids), table.features) == (["C1", "C2"], features)
    joined = f"lines of names were joined, such as {features[0]!r}"
    assert (joined in " ".join(table.notes)) == (len(lines) > 1)


def test_the_first_sheet_that_holds_a_table_is_read_or_the_one_chosen(tmp_path):
    path = book(tmp_path, [["This workbook"], ["see sheet 2"]], PLAIN, OTHER)
    table = read_table(path)
    assert table.features == ["a", "b"]
    assert "sheet 'sheet 2' was read; the workbook also has 'sheet 1' and others" in table.notes
    for wanted in ("sheet 3", "3", 3):
        assert read_table(path, sheet=wanted).features == ["x"]
    for wanted, message in (("1", "no row of numbers"), ("sheet 4", "no sheet called 'sheet 4'")):
        with pytest.raises(TableError, match=message):
            read_table(path, sheet=wanted)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "nothing on this sheet"),
        ([["a", "b"], ["x", "y"]], "no row of numbers"),
        ([["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"], [1, 2]], "3 of the entries cannot be"),
        ([["id", "a", "a"], ["r", 1, 2]], "more than one column called 'a'"),
    ],
)
def test_sheets_that_are_no_tables_are_refused(tmp_path, lines, message):
    with pytest.raises(TableError, match=message):
        read_table(book(tmp_path, lines))
