"""Numbers that name, date or count rows are not clustered."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnarkmeans.tables import TableError, read_table

RNG = np.random.default_rng(0)
ROWS = 30


def written(folder, ending="csv", **columns):
    frame = pd.DataFrame({**columns, "a": RNG.normal(size=ROWS), "b": RNG.normal(size=ROWS)})
    path = folder / f"table.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize(
    "name", ["respondent_id", "sample_id", "patientID", "ID_nr", "subject-id", "Case No", "ID"]
)
def test_a_column_that_is_called_an_identifier_names_the_rows(tmp_path, name, ending):
    table = read_table(written(tmp_path, ending, **{name: RNG.permutation(ROWS) + 7000}))
    assert table.features == ["a", "b"]
    assert table.id_name == name
    assert str(table.ids[0]).startswith("70")


def test_identifiers_that_do_not_name_the_rows_are_left_out(tmp_path):
    path = written(
        tmp_path,
        name=[f"n{i}" for i in range(ROWS)],
        patient_id=np.arange(ROWS) // 2,
        visitId=np.arange(ROWS) * 3,
    )
    table = read_table(path)
    assert (table.id_name, table.features) == ("name", ["a", "b"])
    assert table.left_out == [
        ("patient_id", "an identifier by its name"), ("visitId", "an identifier by its name"),
    ]  # fmt: skip
    assert read_table(path, columns=["patient_id", "a"]).features == ["patient_id", "a"]


def test_measurements_with_id_in_their_name_are_kept(tmp_path):
    columns = {name: RNG.normal(size=ROWS) for name in ("ID_1", "lipid", "fluid", "id ratio")}
    columns["cell number"] = RNG.permutation(ROWS)
    path = written(tmp_path, **{"sample": [f"s{i}" for i in range(ROWS)]}, **columns)
    assert read_table(path).features == [*columns, "a", "b"]


def test_zeros_in_front_make_names(tmp_path):
    codes = [f"{i:05d}" for i in RNG.permutation(ROWS)]
    table = read_table(written(tmp_path, plot=codes))
    assert (table.id_name, table.features, list(table.ids)) == ("plot", ["a", "b"], codes)
    twice = [f"{i // 2:05d}" for i in range(ROWS)]
    table = read_table(written(tmp_path, plot=twice))
    assert table.left_out == [("plot", "names made of digits, such as '00000'")]


def test_answers_in_words_beside_an_identifier_are_no_table_of_numbers(tmp_path):
    words = RNG.choice(["yes", "no"], (ROWS, 2))
    frame = pd.DataFrame({"respondent_id": [f"{i:05d}" for i in range(ROWS)]})
    frame[["has_car", "has_pet"]] = words
    frame.to_csv(tmp_path / "words.csv", index=False)
    with pytest.raises(TableError, match="no numeric column to cluster"):
        read_table(tmp_path / "words.csv")


def test_days_in_digits_are_left_out_as_days_are(tmp_path):
    days = pd.date_range("2023-12-20", periods=ROWS).strftime("%Y%m%d").astype(int).to_numpy()
    table = read_table(written(tmp_path, sampled=days))
    assert table.left_out == [("sampled", "dates, such as 20231220")]
    for other in (days * 10, np.full(ROWS, 20240101), days + np.arange(ROWS) * 100, days + 0.5):
        assert read_table(written(tmp_path, sampled=other)).features == ["sampled", "a", "b"]


def test_a_run_order_is_left_out(tmp_path):
    for name in ("Injection", "run order", "Index of run"):
        table = read_table(written(tmp_path, **{name: np.arange(ROWS) + 1}))
        assert table.left_out == [(name, "counts the rows in their order")]
    assert "dose" in read_table(written(tmp_path, dose=np.arange(ROWS) + 1)).features


WORDS = np.array(["disagree", "neutral", "agree", "fully agree"])


def answers(folder, questions, numbers=1):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(WORDS[rng.integers(0, 4, (40, questions))]).add_prefix("q")
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    for j in range(numbers):
        frame[f"age{j}"] = rng.integers(18, 80, 40)
    frame.to_csv(folder / "survey.csv", index=False)
    return folder / "survey.csv"


def test_answers_in_words_are_not_left_out_for_the_age(tmp_path):
    path = answers(tmp_path, questions=6)
    with pytest.raises(TableError, match=r"6 columns, such as 'q0', hold answers in words.*1 to 5"):
        read_table(path)
    assert read_table(path, columns=["age*"]).features == ["age0"]
    assert read_table(answers(tmp_path, questions=2)).features == ["age0"]  # sex, site
    assert len(read_table(answers(tmp_path, questions=4, numbers=5)).features) == 5


def long(folder, samples=12, features=10, **more):
    i, j = np.divmod(np.arange(samples * features), features)
    values = np.random.default_rng(0).normal(size=len(i))
    table = {"SampleID": [f"s{a}" for a in i], "Assay": [f"p{a}" for a in j], "NPX": values}
    pd.DataFrame(table | more).to_csv(folder / "long.csv", index=False)
    return folder / "long.csv"


def test_a_long_table_is_told_to_be_made_wide(tmp_path):
    path = long(tmp_path, LOD=1.2)
    with pytest.raises(TableError, match=r"'SampleID' and 'Assay' .a long table.; make it wide"):
        read_table(path)
    assert read_table(path, columns=["NPX"]).shape == (120, 1)
    # Two groups crossed are a design, and many columns of numbers a wide table.
    assert read_table(long(tmp_path, features=2)).shape == (24, 1)
    many = {f"m{j}": np.arange(120.0) for j in range(5)}
    assert read_table(long(tmp_path, **many)).shape == (120, 6)
