"""Models: remembered reading and preparation, predict and impute, Python."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import do, labels, refused, rows
from lab_files import maxquant

import mnarkmeans

FEATURES = list("abcde")


@pytest.fixture(scope="module")
def proteins(tmp_path_factory):
    """A proteinGroups.txt, and a model of its samples."""
    folder = tmp_path_factory.mktemp("proteins")
    file, model = folder / maxquant(folder)[0], folder / "plasma"
    done = do(
        "fit", file, "-k", 3, "--transpose", "--columns", "LFQ intensity *",
        "--missing-value", 0, "--log2", "--drop-rows", "Reverse=+", "--normalize", "median",
        "--max-missing", 0.9, "-o", model,
    )  # fmt: skip
    assert "8 rows dropped because Reverse is '+'" in done.err
    return file, model, pd.read_csv(file, sep="\t")


@pytest.mark.parametrize("name", ["filled.txt", "filled.parquet"])
def test_samples_of_a_model_are_labelled_and_their_file_comes_back_filled(proteins, name):
    file, model, frame = proteins
    do("predict", model, file, "-o", "l.csv")
    assert len(rows("l.csv")) == 25
    assert rows("l.csv") == rows(model / "labels.csv")
    done = do("impute", model, file, "-o", name)
    filled = pd.read_csv(name, sep="\t") if name.endswith("txt") else pd.read_parquet(name)
    assert list(filled.columns) == list(frame.columns)
    assert list(filled["Protein IDs"]) == list(frame["Protein IDs"])
    others = [c for c in frame if not c.startswith("LFQ") and frame[c].notna().all()]
    pd.testing.assert_frame_equal(filled[others], frame[others], check_dtype=False)
    lfq = [c for c in frame if c.startswith("LFQ")]
    before, after = frame[lfq].to_numpy(float), filled[lfq].to_numpy(float)
    used = np.array([c in rows(model / "centers.csv")[0] for c in frame["Protein IDs"]])
    np.testing.assert_array_equal(after[before != 0], before[before != 0])
    assert (after[used] > 0).all()
    assert (after[~used] == before[~used]).all()
    assert f"{int((before[used] == 0).sum()):,} of" in done.out


def test_features_that_share_a_name_are_filled_in_their_own_rows():
    frame = pd.DataFrame(np.random.default_rng(0).normal(10, 1, (30, 12)).round(3))
    frame = frame.add_prefix("s").assign(Gene=[f"G{j // 2}" for j in range(30)])
    frame.iloc[[0, 5], 3] = np.nan
    frame.to_csv("t.csv", index=False)
    do("fit", "t.csv", "-k", 2, "--transpose", "-o", "out")
    do("impute", "out", "t.csv", "-o", "f.csv")
    filled = pd.read_csv("f.csv")
    assert filled.notna().all(axis=None)
    pd.testing.assert_frame_equal(filled.where(frame.notna()), frame)


def test_a_run_that_found_fewer_proteins_is_labelled_with_a_note(proteins):
    _, model, frame = proteins
    frame[5:].to_csv("t.txt", sep="\t", index=False)
    predict = ["predict", model, "t.txt", "-o"]
    done = do(*predict, "l.csv")
    assert "features are not in the table ('P10001;Q1', 'P10002;Q2'" in done.err
    assert labels("l.csv") == labels(model / "labels.csv")
    do("impute", model, "t.txt", "-o", "f.txt")
    assert len(pd.read_csv("f.txt", sep="\t")) == len(frame) - 5
    frame[200:].to_csv("t.txt", sep="\t", index=False)
    assert "but t.txt lacks 'P10001;Q1' and" in refused(*predict, "no.csv")


def test_rows_that_are_dropped_are_dropped_again(tables, frame):
    fit = ["fit", tables / "t.csv", "-k", 2, "--drop-rows", "kind=odd", "-o", "out"]
    assert "30 rows dropped because kind is 'odd'" in do(*fit).err
    do("predict", "out", tables / "t.csv", "-o", "l.csv")
    assert len(rows("l.csv")) == 31
    assert rows("l.csv") == rows("out/labels.csv")
    frame.drop(columns="kind").to_csv("new.csv", index=False)
    error = refused("predict", "out", "new.csv", "-o", "n.csv")
    assert "no column called 'kind'" in error


def test_a_european_file_comes_back_as_it_was():
    last = ["n.d." if i % 3 == 0 else f"{i % 2 * 7},25" for i in range(1, 10)]
    lines = ["Probe;a;b;Ort;leer"]
    lines += [f"P{i};{i % 2 * 5},{i};{cell};K;" for i, cell in enumerate(last, start=1)]
    Path("t.csv").write_text("\n".join(lines) + "\n")
    do("fit", "t.csv", "-k", 2, "-o", "out")
    do("impute", "out", "t.csv", "-o", "f.csv")
    after = Path("f.csv").read_text().splitlines()
    for old, new in zip(lines, after, strict=True):
        start, missing, end = old.partition("n.d.")
        filled = new.removeprefix(start).removesuffix(end)
        assert float(filled.replace(",", ".")) >= 0 if missing else new == old
    # One row is too little to see that 5,125 is no thousand: the model knows.
    Path("one.tsv").write_text("Probe\ta\tb\nX\t5,125\t7,250\n")
    do("predict", "out", "one.tsv", "-o", "l.csv")
    assert labels("l.csv") == labels("out/labels.csv")[:1]  # as P1


def test_preparation_is_repeated_on_new_tables(tables, frame):
    do(
        "fit", tables / "t.csv", "-k", 2, "--lam", 0.5, "--log1p", "--scale", "std",
        "--max-missing", 0.9, "--seed", 4, "--starts", 3, "-o", "out",
    )  # fmt: skip
    # Other order, one column more: found by name, prepared the same way.
    shuffled = frame[["e", "d", "kind", "c", "b", "a", "sample"]].assign(extra=1.0)
    shuffled.to_csv("new.csv", index=False)
    do("predict", "out", "new.csv", "-o", "p.csv")
    assert rows("p.csv") == rows("out/labels.csv")
    # Options that are given take precedence over those remembered.
    frame.fillna(-9).to_csv("coded.csv", index=False)
    do("predict", "out", "coded.csv", "--missing-value", -9, "-o", "c.csv")
    assert rows("c.csv") == rows("out/labels.csv")
    do("impute", "out", "new.csv", "-o", "f.csv")
    filled = pd.read_csv("f.csv")
    assert list(filled.columns) == list(shuffled.columns)
    assert (filled["extra"] == 1).all()
    assert (filled[FEATURES] > -1).all(axis=None)
    centers = pd.read_csv("out/centers.csv")
    gap = frame["a"].isna().to_numpy()
    label = np.array(labels("out/labels.csv"))
    np.testing.assert_allclose(filled["a"][gap], centers["a"].to_numpy()[label[gap]])
    with pytest.warns(UserWarning, match=r"fitted on prepared values \(log\(1 \+ x\)"):
        mnarkmeans.load("out")


@pytest.mark.parametrize("kind", [mnarkmeans.MNARKMeans, mnarkmeans.MNARMixture])
def test_models_go_from_the_command_line_to_python_and_back(fitted, tables, frame, kind):
    predicted = mnarkmeans.load(fitted).predict(frame[FEATURES])
    assert predicted.tolist() == labels(fitted / "labels.csv")
    model = kind(2, random_state=0).fit(frame[FEATURES])
    model.save("model")
    do("predict", "model", tables / "t.csv", "-o", "l.csv")
    last = "confidence" if kind is mnarkmeans.MNARMixture else "distance"
    assert rows("l.csv")[0] == ["id", "cluster", last]
    assert labels("l.csv") == model.predict(frame[FEATURES]).tolist()
    do("impute", "model", tables / "t.csv", "-o", "f.csv")
    filled = [[float(v) for v in r[1:6]] for r in rows("f.csv")[1:]]
    np.testing.assert_allclose(filled, model.impute(frame[FEATURES]), rtol=1e-12)


def test_a_missing_flag_of_a_frame_comes_back_empty(fitted, frame):
    flags = pd.array([True, False, None] * 20, dtype="boolean")
    frame.assign(flag=flags).to_parquet("t.parquet")
    do("impute", fitted, "t.parquet", "-o", "f.csv")
    assert [row[-1] for row in rows("f.csv")[1:4]] == ["True", "False", ""]
