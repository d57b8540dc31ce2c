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
