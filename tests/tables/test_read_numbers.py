"""Numbers as people write them: decimal commas, marks for missing, words nobody explained."""

from __future__ import annotations

import numpy as np
import pytest
from written import write

from mnarkmeans.tables import TableError, read_table

MARKS = ["NA", "n.d.", "N.A.", "-", "?", "<LOD", "< loq", "<0,5", "BDL", "filtered", "#N/A", ""]


def european(n=60, marks=MARKS, seed=0):
    """A table of three groups as a German Excel saves it, and the groups."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    X = 4.0 * np.eye(3)[group].repeat(4, axis=1) + rng.normal(0, 0.5, (n, 12)) + 5
    texts = np.char.replace(X.round(2).astype(str), ".", ",").astype(object)
    lost = rng.random(X.shape) < 0.25
    texts[lost] = rng.choice(marks, lost.sum())
    lines = [";".join(["Probe", *(f"Stoff {j}" for j in range(12)), "Ort"])]
    lines += [";".join([f"P{i:03d}", *row, "Köln"]) for i, row in enumerate(texts)]
    return "\n".join(lines) + "\n", np.where(lost, np.nan, X.round(2)), group


def test_decimal_commas_and_the_marks_of_laboratories(tmp_path):
    text, X, _ = european()
    table = read_table(write(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.values, X)
    assert table.features == [f"Stoff {j}" for j in range(12)]
    assert table.left_out == [("Ort", "text, such as 'Köln'")]
    told = " ".join(table.notes)
    for mark in MARKS[1:9]:
        assert f"'{mark}'" in told


def test_limits_are_told_together(tmp_path):
    text = "id;a;b\nr;<0.25;2.5\ns;2.5;<1.5\nt;1.5;<1.5\nu;3.5;n.d.\nv;3.5;<LOD\n"
    (told,) = read_table(write(tmp_path, "t.csv", text)).notes
    assert told.startswith(
        "read as missing: '<number' (3 times), 'n.d.' (once), '<LOD' (once); values below"
    )


def test_unknown_marks_are_listed_with_what_to_add(tmp_path):
    text, X, _ = european(marks=["n.f.", "weg", "NA"])
    with pytest.raises(TableError, match=r"'n\.f\.' .*'weg'") as caught:
        read_table(write(tmp_path, "t.csv", text))
    assert "--missing-value n.f. --missing-value weg" in caught.value.command_line.replace(
        "--missing-value weg --missing-value n.f.", "--missing-value n.f. --missing-value weg"
    )
    table = read_table(tmp_path / "t.csv", missing_value=["n.f.", "weg"])
    np.testing.assert_array_equal(table.values, X)


def test_a_few_marks_do_not_turn_a_column_into_text(tmp_path):
    """Three quarters of the entries are a word nobody explained: still a measured column."""
    lines = ["id,a,b"] + [f"r{i},{i / 8 if i % 4 == 0 else 'weg'},{i}" for i in range(40)]
    with pytest.raises(TableError, match=r"column 'a' .* 30 of the entries are words: 'weg'"):
        read_table(write(tmp_path, "t.csv", "\n".join(lines) + "\n"))


def test_a_table_whose_measured_columns_cannot_be_read_is_an_error(tmp_path):
    lines = ["id,a,b,c,n"] + [f"r{i},{i}.5 mg,{i} %,{i}.1 mg,{i}" for i in range(20)]
    with pytest.raises(TableError, match=r"3 columns look like measurements.*'0.5 mg'.*'a'"):
        read_table(write(tmp_path, "t.csv", "\n".join(lines) + "\n"))


def test_thousands_or_decimals_is_for_the_user_to_say(tmp_path):
    lines = ["id\ta\tb"] + [f"r{i}\t{i},125\t{i},250" for i in range(1, 20)]
    path = write(tmp_path, "t.tsv", "\n".join(lines) + "\n")
    with pytest.raises(TableError, match=r'2 columns look like measurements.*decimal=","'):
        read_table(path)
    table = read_table(path, decimal=",")
    np.testing.assert_array_equal(table.values[2], [3.125, 3.25])


def test_a_fraction_of_one_leaves_no_doubt(tmp_path):
    table = read_table(write(tmp_path, "t.tsv", "id\ta\tb\nr\t0,125\t2,250\ns\t1,500\t3,5\n"))
    np.testing.assert_array_equal(table.values, [[0.125, 2.25], [1.5, 3.5]])


def test_a_column_of_commas_in_a_file_of_points(tmp_path):
    text = "id;a;b;c\nr;1.5;2.5;3,25\ns;2.5;n.d.;<0,5\nt;2.5;4.5;11,5\n"
    table = read_table(write(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.values[:, 2], [3.25, np.nan, 11.5])
    assert "the comma was read as decimal sign in one column: 'c'" in table.notes


def test_one_column_that_may_hold_thousands_is_asked_for(tmp_path):
    """Also beside columns that are read: to leave it out in silence would be a wrong result."""
    text = "id\ta\tb\tc\nr\t1.5\t2.5\t3,250\ns\t2.5\tn.d.\t950\nt\t2.5\t4.5\t11,500\n"
    with pytest.raises(TableError, match=r'one column looks .*3,250. in column .c..*decimal=","'):
        read_table(write(tmp_path, "t.tsv", text))


@pytest.mark.parametrize("minus", ["\u2212", "\u2013"])
def test_the_minus_of_print_is_a_minus(tmp_path, minus):
    text = f"id;a;b\nr;{minus}0.13;{minus}1,5\ns;0.64;{minus}2,5\nt;{minus}1e{minus}3;{minus}\n"
    table = read_table(write(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.values, [[-0.13, -1.5], [0.64, -2.5], [-1e-3, np.nan]])


def test_a_column_with_points_in_a_file_of_commas(tmp_path):
    text = "id;a;b;rt\nr;1,5;2,5;3.25\ns;2,5;n.d.;4.5\n"
    table = read_table(write(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.values, [[1.5, 2.5, 3.25], [2.5, np.nan, 4.5]])
    table = read_table(write(tmp_path, "t.csv", text.replace("3.25", "3.125")))
    np.testing.assert_array_equal(table.values[:, 2], [3.125, 4.5])
    text = "id;a;b;count\nr;1,5;2,5;3.250\ns;2,5;n.d.;4.500\n"
    assert ("count", "text, such as '3.250'") in read_table(write(tmp_path, "t.csv", text)).left_out


def test_quoted_decimal_commas_between_commas(tmp_path):
    text = 'id,a,b\nr,"1,5","2,25"\ns,"3,5",n.d.\n'
    table = read_table(write(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.values, [[1.5, 2.25], [3.5, np.nan]])


def test_names_are_kept_where_numbers_have_commas(tmp_path):
    text = "id;a\n1,5;1,5\n2,5;3,5\n"
    assert list(read_table(write(tmp_path, "t.csv", text)).ids) == ["1,5", "2,5"]


@pytest.mark.parametrize(
    "text",
    [
        "id;a;b\nr;1.234,5;2.000\ns;0,25;12,5\nt;1.000.000,5;2,5\n",
        'id,a,b\nr,"1,234.5",2000\ns,0.25,12.5\nt,"1,000,000.5",2.5\n',
    ],
)
def test_thousands_set_apart_are_read_where_decimals_leave_no_doubt(tmp_path, text):
    table = read_table(write(tmp_path, "t.csv", text.replace(";2.000\n", ";2000\n")))
    np.testing.assert_array_equal(table.values, [[1234.5, 2000], [0.25, 12.5], [1000000.5, 2.5]])


@pytest.mark.parametrize("top", ["", "My experiment\n", "Export;;\n\nby hand;;\n"])
@pytest.mark.parametrize("units", ["", ";mg/l;mmol/l\n"])
def test_titles_and_units_around_the_names(tmp_path, top, units):
    text = f"{top}id;a;b\n{units}r;1,5;2\ns;2,5;n.d.\nt;3,5;4\n"
    table = read_table(write(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.values, [[1.5, 2], [2.5, np.nan], [3.5, 4]])
    assert table.features == (["a mg/l", "b mmol/l"] if units else ["a", "b"])
    with pytest.raises(TableError, match=r"row 4 of .* 'u;1', has 2 fields"):
        read_table(write(tmp_path, "t.csv", text + "u;1\n"))
