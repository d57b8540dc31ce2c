"""Small tables in every dialect of text are read as what was written."""

import itertools

import numpy as np
import pytest

from mnarkmeans import read_table

SEPARATORS = [(",", "."), ("\t", "."), (";", ","), (";", "."), ("|", ".")]


def dialects(n, p):
    """Texts of one table: delimiter and decimal mark, names of rows, mark of a gap, header."""
    X = np.round(np.random.default_rng(10 * n + p).normal(3.0, 2.0, size=(n, p)), 3)
    if n > 1:
        X[-1, -1] = np.nan
    features = [f"f{j}" for j in range(p)]
    for (delimiter, decimal), ids, mark, header in itertools.product(
        SEPARATORS, ([], ["id"]), ("", "NA"), (True, False)
    ):
        rows = [[*ids, *features]] if header else []
        for i, values in enumerate(X):
            cells = [mark if np.isnan(v) else f"{v:.3f}".replace(".", decimal) for v in values]
            rows.append([*(f"r{i}" for _ in ids), *cells])
        yield X, ids, header, "\n".join(delimiter.join(row) for row in rows) + "\n"


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("p", [2, 3, 5])
def test_what_is_written_is_read(n, p, tmp_path):
    for X, ids, header, text in dialects(n, p):
        if ids and not header:
            continue  # names of rows without a header: the first line may be one
        (tmp_path / "t.csv").write_text(text)
        found = read_table(tmp_path / "t.csv")
        np.testing.assert_array_equal(found.values, X)
        assert list(found.ids) == [f"r{i}" if ids else str(i + 1) for i in range(n)]
        assert list(found.features) == [f"f{j}" if header else f"V{j + 1}" for j in range(p)]


def test_a_row_of_values_is_no_header(tmp_path):
    """Names of rows and no header: the first row looks like those below it. Masses do not."""
    X = np.random.default_rng(0).lognormal(8, 2, size=(8, 6)).round(1)
    rows = [",".join([f"r{i}", *map(str, values)]) for i, values in enumerate(X)]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    found = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(found.values, X)
    assert list(found.ids) == [f"r{i}" for i in range(8)]
    assert "holds values, not names" in " ".join(found.notes)
    for names in (np.arange(1, 7), np.arange(2016, 2022), np.linspace(100.05, 812.4, 6).round(3)):
        head = ",".join(["sample", *map(str, names)])
        (tmp_path / "t.csv").write_text("\n".join([head, *rows]))
        found = read_table(tmp_path / "t.csv")
        assert list(found.features) == [str(name) for name in names]
        np.testing.assert_array_equal(found.values, X)
