"""What names and ranges suggest, and in which words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mnarkmeans.cli._options import Normalize, Reading, Scale, Source, Steps
from mnarkmeans.cli._spoken import spoken
from mnarkmeans.cli._suggest import command_for, sample_hints, structure_hints, value_hints
from mnarkmeans.cli._table import Table

RNG = np.random.default_rng(0)


def table_of(values, features=None, id_name="id"):
    features = features or [f"f{j}" for j in range(values.shape[1])]
    ids = np.array([f"r{i}" for i in range(len(values))], dtype=object)
    return Table(values, ids, features, id_name)


def added(hints):
    reading = {k: v for hint in hints for k, v in hint.reading.items()}
    return reading | {k: v for hint in hints for k, v in hint.steps.items()}


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (RNG.normal(size=(40, 5)), {}),
        (RNG.normal(25, 2, size=(40, 5)), {}),
        (RNG.integers(1, 8, (40, 5)).astype(float), {}),
        (2.0 ** RNG.normal(24, 1, (40, 60)), {"log2": True}),
        (
            2.0 ** (RNG.normal(24, 1, (40, 60)) + np.linspace(0, 3, 40)[:, None]),
            {"log2": True, "normalize": Normalize.median},
        ),
        (
            2.0 ** RNG.normal(24, 1, (40, 60)) * (RNG.random((40, 60)) > 0.3),
            {"missing_codes": ["0"], "log2": True},
        ),
        (np.exp(RNG.normal(0, 1.2, (200, 60))), {"log2": True}),
        (RNG.normal(0, 1, (40, 5)) * [1, 1, 1, 1, 50], {"scale": Scale.std}),
        (np.where(RNG.random((40, 5)) < 0.2, -99, RNG.random((40, 5))), {"missing_codes": ["-99"]}),
        (
            1.0 * RNG.poisson(np.outer(np.linspace(1, 9, 60), np.tile([0.1, 1, 1, 90], 8))),
            {"missing_codes": ["0"], "log1p": True, "normalize": Normalize.total},
        ),
    ],
    ids=["centred", "logarithms", "survey", "intensities", "uneven", "zeros", "skewed", "loud",
         "coded", "counts"],
)  # fmt: skip
def test_ranges_suggest_what_to_do(values, options):
    assert added(value_hints(table_of(values), Reading(), Steps())) == options
    # What was said is not said again.
    reading = Reading(missing_codes=options.get("missing_codes"))
    steps = Steps(**{k: v for k, v in options.items() if k != "missing_codes"})
    codes = [float(code) for code in reading.codes]
    said = table_of(np.where(np.isin(values, codes), np.nan, values))
    assert value_hints(said, reading, steps) == []


def test_names_suggest_which_columns_are_samples():
    names = ["Peptides", *(f"Intensity {i}" for i in "abc"), *(f"LFQ intensity {i}" for i in "abc")]
    table = table_of(np.ones((4, 7)), names, "Protein IDs")
    table.words.update({"Reverse": ("+",), "Comment": ("+", "-")})
    assert added(structure_hints(table, Reading())) == {
        "columns": ["LFQ intensity *"], "transpose": True, "drop_rows": ["Reverse=+"],
    }  # fmt: skip
    said = Reading(columns=["Intensity *"], transpose=True, drop_rows=["Reverse=+"])
    assert structure_hints(table, said) == []
    assert structure_hints(table_of(np.ones((4, 3)), ["a", "b", "c"], "sample"), Reading()) == []
    known = table_of(np.column_stack([RNG.normal(size=9), np.arange(9) % 3]), ["a", "Group"])
    assert added(structure_hints(known, Reading())) == {"drop": ["Group"]}
    compounds = table_of(np.ones((4, 3)), ["m/z", "s1", "s2"], "Compound")
    assert added(structure_hints(compounds, Reading())) == {"transpose": True, "drop": ["m/z"]}


def test_a_running_number_is_told_with_the_option_that_drops_it():
    values = np.column_stack([np.arange(9) + 1, RNG.normal(size=(9, 2)), np.arange(9) % 3])
    table = table_of(values, ["vial", "a", "b", "group"])
    hints = structure_hints(table, Reading())
    assert [hint.reading["drop"] for hint in hints] == [["group"], ["vial"]]
    assert structure_hints(table, Reading(drop=["group"])) == []
    assert structure_hints(table_of(values[:, [0, 0]]), Reading()) == []
    assert structure_hints(table_of(values[::-1]), Reading()) == []


def test_rows_called_by_accessions_are_features():
    for form in ("ENSMUSG{:011d}", "P{:05d}", "P{:05d};Q12345", "sp|Q{:05d}|X_HUMAN", "HMDB{:07d}"):
        table = table_of(np.ones((4, 3)), ["s1", "s2", "s3"])
        table.ids = np.array([form.format(i) for i in range(4)], dtype=object)
        assert added(structure_hints(table, Reading())) == {"transpose": True}
    table.ids = np.array([f"patient {i}" for i in range(4)], dtype=object)
    assert structure_hints(table, Reading()) == []


def test_decoys_are_found_by_the_word_of_their_flag_or_by_their_name():
    table = table_of(np.ones((3, 3)), [f"Abundance: F{i}" for i in range(3)], "Accession")
    table.words["Contaminant"] = ("False", "True")
    assert added(structure_hints(table, Reading()))["drop_rows"] == ["Contaminant=True"]
    table = table_of(np.ones((3, 3)), [f"LFQ intensity {i}" for i in range(3)], "Protein IDs")
    table.ids = np.array(["P1", "REV__P2", "CON__P3"], dtype=object)
    table.source["id_column"] = "Protein IDs"
    rules = ["Protein IDs=REV__*", "Protein IDs=CON__*"]
    assert added(structure_hints(table, Reading()))["drop_rows"] == rules


def test_pools_blanks_and_totals_are_no_samples():
    names = [*(f"s{i}" for i in range(20)), "QC 1", "Blank 1", "Total"]
    table = table_of(np.ones((23, 3)))
    table.ids = np.array(names, dtype=object)
    assert sample_hints(table, Reading()) == []  # nothing to name the rows by
    table.source["id_column"] = "sample"
    rules = [rule for hint in sample_hints(table, Reading()) for rule in hint.reading["drop_rows"]]
    assert rules == ["sample=*QC*", "sample=*Blank*", "sample=Total"]
    table.words["Sample type"] = ("Unknown", "QC")
    assert added(sample_hints(table, Reading())[:1]) == {"drop_rows": ["Sample type=QC"]}
    table.ids[:12] = [f"QC {i}" for i in range(12)]  # a table of pools
    del table.words["Sample type"]
    assert added(sample_hints(table, Reading())) == {"drop_rows": ["sample=Total"]}


def test_what_lies_beyond_the_hole_of_a_scale_is_a_code():
    answers = RNG.integers(1, 6, (200, 8)).astype(float)
    assert value_hints(table_of(answers), Reading(), Steps()) == []
    answers[RNG.random(answers.shape) < 0.1] = 9
    assert added(value_hints(table_of(answers), Reading(), Steps())) == {"missing_codes": ["9"]}
    # Up to ten a 9 is an answer, and one question of eight with a hole is chance.
    tens = RNG.integers(1, 11, (200, 8)).astype(float)
    assert value_hints(table_of(tens), Reading(), Steps()) == []
    answers[:, 1:] = RNG.integers(1, 6, (200, 7))
    assert value_hints(table_of(answers), Reading(), Steps()) == []


def test_units_of_their_own_want_a_scale():
    z = RNG.normal(size=(60, 10))
    units = np.linspace(1, 5, 10)
    assert added(value_hints(table_of((10 + z) * units), Reading(), Steps())) == {
        "scale": Scale.std
    }
    assert value_hints(table_of(30 * units + z), Reading(), Steps()) == []


def test_zeros_that_are_answers_are_not_taken_for_gaps():
    for answers in (RNG.integers(0, 11, (80, 6)), RNG.integers(0, 2, (80, 6))):
        assert value_hints(table_of(answers.astype(float)), Reading(), Steps()) == []
    logs = np.where(RNG.random((40, 6)) < 0.3, 0.0, RNG.normal(2, 3, (40, 6)))
    assert added(value_hints(table_of(logs), Reading(), Steps())) == {"missing_codes": ["0"]}


def survey(oldest):
    answers = RNG.integers(1, 6, (200, 6)).astype(float)
    answers[RNG.random(answers.shape) < 0.1] = 99
    age = np.append(RNG.integers(18, 90, 199), oldest)
    return table_of(np.column_stack([answers, age]), [*"abcdef", "age"])


def test_a_code_is_found_in_its_columns_whatever_the_others_hold():
    for oldest, told in ((89, False), (99, True)):
        hints = value_hints(survey(oldest), Reading(), Steps())
        assert added(hints) == {"missing_codes": ["99"]}
        assert ("in 'age' too, where it may be a value" in hints[0].why) == told
    # Counts may share their greatest value, and one column alone is no evidence.
    alone = RNG.integers(1, 6, (200, 3)).astype(float)
    alone[:20, 0] = 99
    alone[:, 1] = RNG.integers(18, 120, 200)
    assert "missing_codes" not in added(value_hints(table_of(alone), Reading(), Steps()))


def test_answers_beside_an_age_want_no_logarithm():
    table = survey(89)
    table.values = np.where(table.values == 99, np.nan, table.values)
    hints = value_hints(table, Reading(missing_codes=["99"]), Steps())
    assert added(hints) == {"scale": Scale.std}


def test_a_logarithm_is_due_where_the_noise_grows_with_the_value():
    level, noise = RNG.normal(3, 2.5, 80), RNG.normal(0, 0.5, (30, 80))
    assert added(value_hints(table_of(2.0 ** (level + noise)), Reading(), Steps())) == {
        "log2": True
    }
    assert value_hints(table_of(2.0**level + 20 + noise), Reading(), Steps()) == []
    logs = np.log2(1 + 2.0 ** (level + noise))
    assert value_hints(table_of(logs), Reading(), Steps()) == []


def test_rows_are_brought_to_one_size_where_sizes_stand_out():
    level, noise = RNG.normal(22, 2, 300), RNG.normal(0, 0.4, (20, 300))
    loaded = RNG.normal(0, 0.25, (20, 1))
    hints = value_hints(table_of(2.0 ** (level + noise + loaded)), Reading(), Steps())
    assert added(hints) == {"log2": True, "normalize": Normalize.median}
    assert added(value_hints(table_of(2.0 ** (level + noise)), Reading(), Steps())) == {
        "log2": True
    }
    few = table_of((2.0 ** (level + noise + loaded))[:, :30])
    assert added(value_hints(few, Reading(), Steps())) == {"log2": True}
    (told,) = value_hints(table_of(level + noise + loaded), Reading(), Steps())
    assert not told.typed()
    assert "take the median of each row off" in told.why
    assert value_hints(table_of(level + noise), Reading(), Steps()) == []


def test_the_command_says_all_that_was_said():
    source = Source(
        Path("my table.csv"),
        Reading(missing_codes=["0", "<x>"], header=False, columns=["LFQ *"]),
        Steps(scale=Scale.std, reference="min", max_missing=0.5),
    )
    assert command_for(source, 100) == (
        'mnarkmeans select "my table.csv" -k 2:8 --missing-value 0 --missing-value "<x>" '
        '--no-header --columns "LFQ *" --max-missing 0.5 --scale std --reference min '
        '-o "my table-clusters"'
    )


def test_advice_speaks_the_words_of_the_command():
    assert spoken("Use reference='min', reference=\"auto\" or lam=0.") == (
        "Use --reference min, --reference auto or --lam 0."
    )
    assert spoken("say so with missing_values=0 (--missing-value 0 on the command line).") == (
        "say so with --missing-value 0."
    )
    assert "mnar0  strength" not in spoken("  mnar0  strength 1.5   +2.0")
