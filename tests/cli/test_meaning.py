"""Tables that can be read and mean something else are told, not clustered."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnarkmeans.cli._errors import UserError
from mnarkmeans.cli._formats import read_file
from mnarkmeans.cli._options import Reading

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
    with pytest.raises(UserError, match=r"6 columns, such as 'q0', hold answers in words.*1 to 5"):
        read_file(path)
    assert read_file(path, Reading(columns=["age*"])).features == ["age0"]
    assert read_file(answers(tmp_path, questions=2)).features == ["age0"]  # sex, site
    assert len(read_file(answers(tmp_path, questions=4, numbers=5)).features) == 5


def long(folder, samples=12, features=10, **more):
    i, j = np.divmod(np.arange(samples * features), features)
    values = np.random.default_rng(0).normal(size=len(i))
    table = {"SampleID": [f"s{a}" for a in i], "Assay": [f"p{a}" for a in j], "NPX": values}
    pd.DataFrame(table | more).to_csv(folder / "long.csv", index=False)
    return folder / "long.csv"


def test_a_long_table_is_told_to_be_made_wide(tmp_path):
    path = long(tmp_path, LOD=1.2)
    with pytest.raises(UserError, match=r"'SampleID' and 'Assay': a long table; make it wide"):
        read_file(path)
    assert read_file(path, Reading(columns=["NPX"])).shape == (120, 1)
    # Two groups crossed are a design, and many columns of numbers a wide table.
    assert read_file(long(tmp_path, features=2)).shape == (24, 1)
    many = {f"m{j}": np.arange(120.0) for j in range(5)}
    assert read_file(long(tmp_path, **many)).shape == (120, 6)
