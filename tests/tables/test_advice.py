"""What names and numbers of a table suggest."""

import shlex

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnarkmeans.tables import Preparation, ReadOptions, TableError, advise
from mnarkmeans.tables._table import quoted

RNG = np.random.default_rng(0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def frame_of(values, features=None, ids=None, id_name="sample"):
    features = features or [f"f{j}" for j in range(values.shape[1])]
    frame = pd.DataFrame(np.asarray(values, dtype=float), columns=features)
    frame.insert(0, id_name, ids or [f"r{i}" for i in range(len(values))])
    return frame


def suggested(frame, **given):
    """The options and steps that are suggested for a frame."""
    steps = {k: v for k, v in given.items() if k in Preparation.__dataclass_fields__}
    options = {k: v for k, v in given.items() if k not in steps}
    found = {}
    for one in advise(frame, ReadOptions.of(**options), Preparation(**steps)).suggestions:
        for name, value in one.changes.items():
            found[name] = (*found.get(name, ()), *value) if isinstance(value, tuple) else value
    return found


UNEVEN = 2.0 ** (RNG.normal(24, 1, (40, 60)) + np.linspace(0, 3, 40)[:, None])
COUNTS = 1.0 * RNG.poisson(np.outer(np.linspace(1, 9, 60), np.tile([0.1, 1, 1, 90], 8)))


MASSES = 2.0 ** RNG.normal(24, 1, (40, 60))
SUGGESTED = {
    "centred": (RNG.normal(size=(40, 5)), {}),
    "logarithms": (RNG.normal(25, 2, size=(40, 5)), {}),
    "survey": (RNG.integers(1, 8, (40, 5)), {}),
    "intensities": (MASSES, {"log2": True}),
    "uneven": (UNEVEN, {"log2": True, "normalize": "median"}),
    "zeros": (MASSES * (RNG.random((40, 60)) > 0.3), {"missing_value": ("0",), "log2": True}),
    "skewed": (np.exp(RNG.normal(0, 1.2, (200, 60))), {"log2": True}),
    "wide": (RNG.normal(0, 1, (40, 5)) * [1, 1, 1, 1, 50], {"scale": "std"}),
    "coded": (np.where(RNG.random((40, 5)) < 0.2, -99, RNG.random((40, 5))),
              {"missing_value": ("-99",)}),
    "counts": (COUNTS, {"missing_value": ("0",), "log1p": True, "normalize": "total"}),
}  # fmt: skip


@pytest.mark.parametrize(("values", "expected"), SUGGESTED.values(), ids=SUGGESTED)
def test_numbers_suggest_what_to_do(values, expected):
    frame = frame_of(values)
    assert suggested(frame) == expected
    assert suggested(frame, **expected) == {}  # what was said is not said again


def test_names_suggest_which_columns_are_samples(rng):
    names = ["Peptides", *(f"Intensity {i}" for i in "abc"), *(f"LFQ intensity {i}" for i in "abc")]
    frame = frame_of(rng.normal(25, 1, (40, 7)), names, id_name="Protein IDs")
    frame["Reverse"] = ["+"] + [None] * 39
    decoys = {"drop_rows": ("Reverse=+",)}
    assert suggested(frame) == {"columns": ("LFQ intensity *",), "transpose": True} | decoys
    assert suggested(frame, columns="Intensity *", transpose=True, drop_rows="Reverse=+") == {}
    # Whoever names the columns and does not transpose clusters the rows: they are centred.
    assert suggested(frame, columns="LFQ intensity *") == {"center_rows": True} | decoys
    frame[names] = 2.0 ** (3 * frame[names] - 50)
    found = suggested(frame, columns="LFQ intensity *")
    assert found == {"center_rows": True, "log2": True} | decoys
    known = frame_of(np.column_stack([rng.normal(size=9), np.arange(9) % 3]), ["a", "Group"])
    assert suggested(known) == {"drop": ("Group",)}
    compounds = frame_of(rng.normal(size=(6, 4)), ["m/z", "s1", "s2", "s3"], id_name="Compound")
    assert suggested(compounds) == {"transpose": True, "drop": ("m/z",)}


@pytest.mark.parametrize("form", ["ENSMUSG{:011d}", "P{:05d}", "P{:05d};Q12345", "sp|Q{:05d}|X_H"])
def test_rows_called_by_accessions_are_features(form, rng):
    ids = [form.format(i) for i in range(6)]
    frame = frame_of(rng.normal(size=(6, 4)), ids=ids, id_name="name")
    assert suggested(frame) == {"transpose": True}
    patients = frame_of(rng.normal(size=(6, 4)), ids=[f"patient {i}" for i in range(6)])
    assert suggested(patients) == {}


def test_controls_are_no_samples(rng):
    ids = [*(f"s{i}" for i in range(20)), "QC 1", "Blank 1"]
    frame = frame_of(rng.normal(size=(22, 4)), ids=ids)
    assert suggested(frame) == {"drop_rows": ("sample=*QC*", "sample=*Blank*")}
    frame["Sample type"] = ["Unknown"] * 20 + ["QC"] * 2
    assert suggested(frame) == {"drop_rows": ("Sample type=QC",)}
    pools = frame_of(rng.normal(size=(22, 4)), ids=[f"QC {i}" for i in range(20)] + ["a", "b"])
    assert suggested(pools) == {}


@pytest.mark.parametrize("measure", [np.sum, np.mean, np.median])
@pytest.mark.parametrize("name", ["Total", "Keskiarvo", "合計"])
def test_a_row_that_sums_up_the_others_is_known_by_its_numbers(measure, name, rng):
    values = rng.uniform(50, 60, (30, 6))
    below = np.vstack([values, measure(values, axis=0), values.std(axis=0)])
    for scale in (1, 100):  # numbers and shares
        frame = frame_of(below / scale, ids=[*(f"s{i}" for i in range(30)), name, "SD"])
        assert suggested(frame)["drop_rows"] == (f"sample={name}", "sample=SD")
    assert "drop_rows" not in suggested(frame_of(values))


def test_a_code_is_found_in_its_columns_whatever_the_others_hold(rng):
    answers = rng.integers(1, 6, (200, 6)).astype(float)
    answers[rng.random(answers.shape) < 0.1] = 99
    age = rng.integers(18, 90, 200)
    frame = frame_of(np.column_stack([answers, age]), [*"abcdef", "age"])
    assert suggested(frame) == {"missing_value": ("99",), "scale": "std"}


def test_zeros_that_are_answers_are_not_taken_for_missing(rng):
    half_steps = rng.integers(0, 8, (20, 6)) / 2
    few = np.repeat([[0, 0, 0, 1, 2, 0]], 4, axis=0)
    for answers in (rng.integers(0, 11, (80, 6)), rng.integers(0, 2, (80, 6)), half_steps, few):
        assert suggested(frame_of(answers)) == {}
    logs = np.where(rng.random((40, 6)) < 0.3, 0.0, rng.normal(2, 3, (40, 6)))
    assert suggested(frame_of(logs)) == {"missing_value": ("0",)}


def test_a_logarithm_is_due_where_the_noise_grows_with_the_value(rng):
    level, noise = rng.normal(3, 2.5, 80), rng.normal(0, 0.5, (30, 80))
    assert suggested(frame_of(2.0 ** (level + noise))) == {"log2": True}
    assert suggested(frame_of(2.0**level + 20 + noise)) == {}
    assert suggested(frame_of(np.log2(1 + 2.0 ** (level + noise)))) == {}


def test_a_column_of_classes_or_batches_is_no_feature(tmp_path, rng):
    frame = frame_of(np.column_stack([rng.normal(size=(9, 2)), np.arange(9) % 3]), ["a", "b", "p"])
    assert advise(frame).table.features == ["a", "b", "p"]
    advice = advise(frame, labels=("p",))
    assert advice.table.features == ["a", "b"]
    assert list(advice.table.labels["p"]) == list(np.arange(9) % 3)
    advice = advise(frame, preparation=Preparation(batch="p"))
    assert advice.table.features == ["a", "b"]
    assert "--batch p" in advice.command()
    about = tmp_path / "about.csv"
    frame[["sample"]].assign(run=1).to_csv(about, index=False)
    advice = advise(frame, preparation=Preparation(batch="run"), annotations=about)
    assert advice.table.features == ["a", "b", "p"]
    with pytest.raises(TableError, match="no column for batch= called 'rn'; did you mean 'run'"):
        advise(frame, preparation=Preparation(batch="rn"), annotations=about)


@given(word=st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1))
def test_a_word_of_a_command_is_one_word_of_the_shell(word):
    assert shlex.split(quoted(word)) == [word]


def test_the_command_says_all_that_was_said(rng):
    options = ReadOptions.of(missing_value=[0, "<x>"], columns="f*")
    steps = Preparation(scale="std", max_missing=0.5)
    advice = advise(frame_of(rng.normal(size=(100, 4))), options, steps)
    assert advice.command("my table.csv", more=("--reference", "min")) == (
        'mnarkmeans select "my table.csv" -k 2:8 --columns "f*" --missing-value 0 '
        '--missing-value "<x>" --max-missing 0.5 --scale std --reference min '
        '-o "my table-clusters"'
    )
    assert advice.command() in str(advice)
