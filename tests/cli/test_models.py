"""Models: remembered reading and preparation, predict and impute, Python."""

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
    file, _ = maxquant(folder)
    done = do(
        "fit", file, "-k", 3, "--transpose", "--columns", "LFQ intensity *",
        "--missing-value", 0, "--log2", "--drop-rows", "Reverse=+", "--normalize", "median",
        "--max-missing", 0.9, "-o", "plasma", cwd=folder,
    )  # fmt: skip
    assert "8 rows dropped because Reverse is '+'" in done.err
    return folder, pd.read_csv(folder / file, sep="\t")


@pytest.mark.parametrize("name", ["filled.txt", "filled.parquet"])
def test_samples_of_a_model_are_labelled_and_their_file_comes_back_filled(proteins, tmp_path, name):
    folder, frame = proteins
    do("predict", "plasma", "proteinGroups.txt", "-o", tmp_path / "l.csv", cwd=folder)
    assert len(rows(tmp_path / "l.csv")) == 25
    assert rows(tmp_path / "l.csv") == rows(folder / "plasma" / "labels.csv")
    done = do("impute", "plasma", "proteinGroups.txt", "-o", tmp_path / name, cwd=folder)
    path = tmp_path / name
    filled = pd.read_csv(path, sep="\t") if name.endswith("txt") else pd.read_parquet(path)
    assert list(filled.columns) == list(frame.columns)
    assert list(filled["Protein IDs"]) == list(frame["Protein IDs"])
    others = [c for c in frame if not c.startswith("LFQ") and frame[c].notna().all()]
    pd.testing.assert_frame_equal(filled[others], frame[others], check_dtype=False)
    lfq = [c for c in frame if c.startswith("LFQ")]
    before, after = frame[lfq].to_numpy(float), filled[lfq].to_numpy(float)
    used = np.array([c in rows(folder / "plasma" / "centers.csv")[0] for c in frame["Protein IDs"]])
    np.testing.assert_array_equal(after[before != 0], before[before != 0])
    assert (after[used] > 0).all()
    assert (after[~used] == before[~used]).all()
    assert f"{int((before[used] == 0).sum()):,} of" in done.out


def test_features_that_share_a_name_are_filled_in_their_own_rows(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(10, 1, (30, 12)).round(3))
    frame = frame.add_prefix("s").assign(Gene=[f"G{j // 2}" for j in range(30)])
    frame.iloc[[0, 5], 3] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    do("fit", "t.csv", "-k", 2, "--transpose", "-o", "out", cwd=tmp_path)
    do("impute", "out", "t.csv", "-o", "f.csv", cwd=tmp_path)
    filled = pd.read_csv(tmp_path / "f.csv")
    assert filled.notna().all(axis=None)
    pd.testing.assert_frame_equal(filled.where(frame.notna()), frame)


def test_a_run_that_found_fewer_proteins_is_labelled_with_a_note(proteins, tmp_path):
    folder, frame = proteins
    frame[5:].to_csv(tmp_path / "t.txt", sep="\t", index=False)
    predict = ["predict", folder / "plasma", "t.txt", "-o"]
    done = do(*predict, "l.csv", cwd=tmp_path)
    assert "features are not in the table ('P10001;Q1', 'P10002;Q2'" in done.err
    assert labels(tmp_path / "l.csv") == labels(folder / "plasma" / "labels.csv")
    do("impute", folder / "plasma", "t.txt", "-o", "f.txt", cwd=tmp_path)
    assert len(pd.read_csv(tmp_path / "f.txt", sep="\t")) == len(frame) - 5
    frame[200:].to_csv(tmp_path / "t.txt", sep="\t", index=False)
    assert "but the table lacks 'P10001;Q1' and" in refused(*predict, "no.csv", cwd=tmp_path)


def test_rows_that_are_dropped_are_dropped_again(tables, tmp_path, frame):
    fit = ["fit", tables / "t.csv", "-k", 2, "--drop-rows", "kind=odd", "-o", "out"]
    assert "30 rows dropped because kind is 'odd'" in do(*fit, cwd=tmp_path).err
    do("predict", "out", tables / "t.csv", "-o", "l.csv", cwd=tmp_path)
    assert len(rows(tmp_path / "l.csv")) == 31
    assert rows(tmp_path / "l.csv") == rows(tmp_path / "out" / "labels.csv")
    frame.drop(columns="kind").to_csv(tmp_path / "new.csv", index=False)
    error = refused("predict", "out", "new.csv", "-o", "n.csv", cwd=tmp_path)
    assert "no column called 'kind'" in error


def test_a_european_file_comes_back_as_it_was(tmp_path):
    last = ["n.d." if i % 3 == 0 else f"{i % 2 * 7},25" for i in range(1, 10)]
    lines = ["Probe;a;b;Ort;leer"]
    lines += [f"P{i};{i % 2 * 5},{i};{cell};K;" for i, cell in enumerate(last, start=1)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    do("fit", "t.csv", "-k", 2, "-o", "out", cwd=tmp_path)
    do("impute", "out", "t.csv", "-o", "f.csv", cwd=tmp_path)
    after = (tmp_path / "f.csv").read_text().splitlines()
    for old, new in zip(lines, after, strict=True):
        start, missing, end = old.partition("n.d.")
        filled = new.removeprefix(start).removesuffix(end)
        assert float(filled.replace(",", ".")) >= 0 if missing else new == old
    # One row is too little to see that 5,125 is no thousand: the model knows.
    (tmp_path / "one.tsv").write_text("Probe\ta\tb\nX\t5,125\t7,250\n")
    do("predict", "out", "one.tsv", "-o", "l.csv", cwd=tmp_path)
    assert labels(tmp_path / "l.csv") == labels(tmp_path / "out" / "labels.csv")[:1]  # as P1


def test_preparation_is_repeated_on_new_tables(tables, tmp_path, frame):
    out = tmp_path / "out"
    do(
        "fit", tables / "t.csv", "-k", 2, "--lam", 0.5, "--log1p", "--scale", "std",
        "--max-missing", 0.9, "--seed", 4, "--starts", 3, "-o", out,
    )  # fmt: skip
    # Other order, one column more: found by name, prepared the same way.
    shuffled = frame[["e", "d", "kind", "c", "b", "a", "sample"]].assign(extra=1.0)
    shuffled.to_csv(tmp_path / "new.csv", index=False)
    do("predict", out, tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    assert rows(tmp_path / "p.csv") == rows(out / "labels.csv")
    # Options that are given take precedence over those remembered.
    frame.fillna(-9).to_csv(tmp_path / "coded.csv", index=False)
    coded = ["predict", out, tmp_path / "coded.csv", "--missing-value", -9]
    do(*coded, "-o", tmp_path / "c.csv")
    assert rows(tmp_path / "c.csv") == rows(out / "labels.csv")
    do("impute", out, tmp_path / "new.csv", "-o", tmp_path / "f.csv")
    filled = pd.read_csv(tmp_path / "f.csv")
    assert list(filled.columns) == list(shuffled.columns)
    assert (filled["extra"] == 1).all()
    assert (filled[FEATURES] > -1).all(axis=None)
    centers = pd.read_csv(out / "centers.csv")
    gap = frame["a"].isna().to_numpy()
    label = np.array(labels(out / "labels.csv"))
    np.testing.assert_allclose(filled["a"][gap], centers["a"].to_numpy()[label[gap]])
    with pytest.warns(UserWarning, match=r"fitted on prepared values \(log\(1 \+ x\)"):
        mnarkmeans.load(out)


@pytest.mark.parametrize("kind", [mnarkmeans.MNARKMeans, mnarkmeans.MNARMixture])
def test_models_go_from_the_command_line_to_python_and_back(fitted, tables, frame, tmp_path, kind):
    predicted = mnarkmeans.load(fitted).predict(frame[FEATURES])
    assert predicted.tolist() == labels(fitted / "labels.csv")
    model = kind(2, random_state=0).fit(frame[FEATURES])
    model.save(tmp_path / "model")
    do("predict", "model", tables / "t.csv", "-o", "l.csv", cwd=tmp_path)
    last = "confidence" if kind is mnarkmeans.MNARMixture else "distance"
    assert rows(tmp_path / "l.csv")[0] == ["id", "cluster", last]
    assert labels(tmp_path / "l.csv") == model.predict(frame[FEATURES]).tolist()
    do("impute", "model", tables / "t.csv", "-o", "f.csv", cwd=tmp_path)
    filled = [[float(v) for v in r[1:6]] for r in rows(tmp_path / "f.csv")[1:]]
    np.testing.assert_allclose(filled, model.impute(frame[FEATURES]), rtol=1e-12)
