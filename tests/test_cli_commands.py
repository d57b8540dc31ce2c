"""The real command, in processes of its own: every verb, every format, every kind of mistake."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_server import CommandServer

from mnarkmeans import MNARKMeansCV
from mnarkmeans._selection import SelectionWarning

FILES = {"labels.csv", "centers.csv", "summary.json", "model.json", "model.npz", "report.json",
         "report.html"}  # fmt: skip
COMMAND = [sys.executable, "-m", "mnarkmeans"]


@pytest.fixture(scope="module")
def server():
    server = CommandServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    centers = np.array([[4.0, 0.3, 4.0, 0.3, 2.0], [0.3, 4.0, 0.3, 4.0, 2.0]])
    X = np.abs(centers[np.arange(60) % 2] + rng.normal(size=(60, 5)) * 0.6)
    X[rng.random(X.shape) < 0.9 * np.exp(-(X**2))] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    frame.insert(0, "sample", [f"s{i}" for i in range(60)])
    return frame.assign(kind=np.where(np.arange(60) % 2, "odd", "even"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory, frame):
    """The same table in every format."""
    folder = tmp_path_factory.mktemp("tables")
    numbers = frame[["a", "b", "c", "d", "e"]].to_numpy()
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t", na_rep="Filtered")
    frame.to_parquet(folder / "t.parquet")
    np.save(folder / "t.npy", numbers)
    stored = sp.csr_matrix(np.nan_to_num(numbers))
    sp.save_npz(folder / "t.npz", stored)
    anndata = pytest.importorskip("anndata")
    obs = frame[["kind"]].set_index(frame["sample"].rename(None))
    var = pd.DataFrame(index=list("abcde"))
    anndata.AnnData(stored, obs, var).write_h5ad(folder / "t.h5ad")
    return folder


@pytest.fixture(scope="module")
def fitted(server, tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("fitted") / "out"
    done = server.run("fit", tables / "t.csv", "-k", 2, "--lam", 0.5, "-o", out)
    assert done.code == 0, done.err
    return out


def rows(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def leftovers(folder):
    return sorted(p.name for p in folder.iterdir() if p.name.startswith(".mnarkmeans"))


# ---- every verb, every format -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.npy", "t.npz", "t.h5ad"]
)
def test_fit_predict_impute_in_every_format(server, tables, fitted, tmp_path, name):
    out = tmp_path / "out"
    done = server.run("fit", tables / name, "-k", 2, "--lam", 0.5, "-o", out)
    assert done.code == 0, done.err
    assert {p.name for p in out.iterdir()} == FILES
    got, expected = rows(out / "labels.csv"), rows(fitted / "labels.csv")
    assert got[0] == ["id", "cluster", "distance"]
    # Sparse sums round in another order, so clusters may change names, nothing else.
    assert len({(a[1], b[1]) for a, b in zip(got[1:], expected[1:], strict=True)}) == 2
    np.testing.assert_allclose(
        [float(r[2]) for r in got[1:]], [float(r[2]) for r in expected[1:]], rtol=1e-9
    )
    done = server.run("predict", out, tables / name, "-o", tmp_path / "labels.csv")
    assert done.code == 0, done.err
    assert rows(tmp_path / "labels.csv") == got
    done = server.run(
        "impute", out / "model.json", tables / name, "-o", tmp_path / "filled.parquet"
    )
    assert done.code == 0, done.err
    filled = pd.read_parquet(tmp_path / "filled.parquet")
    original = pd.read_csv(tables / "t.csv")[["a", "b", "c", "d", "e"]].to_numpy()
    values = filled.iloc[:, 1:].to_numpy(float)
    assert np.isfinite(values).all()
    seen = ~np.isnan(original)
    np.testing.assert_allclose(values[seen], original[seen], rtol=1e-12)
    assert leftovers(tmp_path) == []


def test_files_of_a_fit(fitted, frame):
    summary = json.loads((fitted / "summary.json").read_text())
    assert summary["n_clusters"] == 2
    assert summary["lam"] == 0.5
    assert summary["data"]["rows"] == 60
    assert summary["data"]["left_out"] == [{"column": "kind", "reason": "text, such as 'even'"}]
    assert sum(summary["cluster_sizes"]) == 60
    assert summary["command"].startswith("mnarkmeans fit ")
    labels = rows(fitted / "labels.csv")
    assert [r[0] for r in labels[1:]] == list(frame["sample"])
    truth = np.arange(60) % 2
    found = np.array([int(r[1]) for r in labels[1:]])
    assert max((found == truth).mean(), (found != truth).mean()) > 0.95
    centers = rows(fitted / "centers.csv")
    assert centers[0] == ["cluster", "a", "b", "c", "d", "e"]
    assert "<!doctype html>" in (fitted / "report.html").read_text()[:20]


def test_preparation_is_repeated_on_new_tables(server, tables, tmp_path, frame):
    out = tmp_path / "out"
    done = server.run(
        "fit", tables / "t.csv", "-k", 2, "--lam", 0.5, "--log1p", "--scale", "std",
        "--max-missing", 0.9, "--seed", 4, "--starts", 3, "-o", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    # Other order, one column more, one wholly missing row: found by name, prepared the same way.
    shuffled = frame[["e", "d", "kind", "c", "b", "a", "sample"]].assign(extra=1.0)
    shuffled.to_csv(tmp_path / "new.csv", index=False)
    done = server.run("predict", out, tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    assert rows(tmp_path / "p.csv") == rows(out / "labels.csv")
    done = server.run("impute", out, tmp_path / "new.csv", "-o", tmp_path / "f.csv")
    assert done.code == 0, done.err
    filled = pd.read_csv(tmp_path / "f.csv")
    assert list(filled.columns) == ["sample", "a", "b", "c", "d", "e"]
    assert (filled[list("abcde")] > -1).all(axis=None)
    centers = pd.read_csv(out / "centers.csv")
    gap = frame["a"].isna().to_numpy()
    label = pd.read_csv(out / "labels.csv")["cluster"].to_numpy()
    np.testing.assert_allclose(filled["a"][gap], centers["a"].to_numpy()[label[gap]])


def test_reference_min_and_file_and_transpose(server, tables, tmp_path, frame):
    turned = frame.drop(columns="kind").set_index("sample").T + 20
    turned.to_csv(tmp_path / "t.csv", index_label="Protein IDs")
    out = tmp_path / "min"
    done = server.run(
        "fit", tmp_path / "t.csv", "-k", 2, "--transpose", "--reference", "min", "-o", out
    )
    assert done.code == 0, done.err
    assert rows(out / "labels.csv")[1][0] == "s0"
    assert rows(out / "centers.csv")[0][1:] == list("abcde")
    (tmp_path / "ref.csv").write_text("feature,value\na,20\nb,20\nc,20\nd,20\ne,20\n")
    out = tmp_path / "file"
    done = server.run(
        "fit", tmp_path / "t.csv", "-k", 2, "--transpose", "--reference", tmp_path / "ref.csv",
        "--lam", 0.5, "--json", "-o", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["output"] == str(out)
    assert done.err == ""
    done = server.run("predict", out, tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    assert rows(tmp_path / "p.csv") == rows(out / "labels.csv")


def test_quiet_says_nothing_and_nothing_is_overwritten_without_force(server, tables, tmp_path):
    arguments = ["fit", tables / "t.csv", "-k", 2, "--lam", 1, "-q", "-o", "out"]
    assert server.run(*arguments, cwd=tmp_path) == (0, "", "")
    before = (tmp_path / "out" / "labels.csv").read_bytes()
    done = server.run("fit", tables / "t.csv", "-k", 3, "-o", "out", cwd=tmp_path)
    assert done.code == 2
    assert "exists; add --force" in done.err
    assert (tmp_path / "out" / "labels.csv").read_bytes() == before
    (tmp_path / "out" / "mine.txt").write_text("keep me")
    done = server.run(*arguments, "--force", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (tmp_path / "out" / "mine.txt").read_text() == "keep me"
    assert {p.name for p in (tmp_path / "out").iterdir()} == FILES | {"mine.txt"}
    assert leftovers(tmp_path) == []


def test_report_is_drawn_again(server, fitted, tmp_path):
    done = server.run("report", fitted, "--title", "Plasma & <b>co</b>")
    assert done.code == 0, done.err
    page = (fitted / "report.html").read_text()
    assert "<title>Plasma &amp; &lt;b&gt;co&lt;/b&gt;</title>" in page


def test_compare_with_and_without_output(server, tables, tmp_path):
    arguments = ["compare", tables / "t.csv", "-k", 2, "--labels", "kind", "--methods", "kpod,zero"]
    done = server.run(*arguments, "--json")
    assert done.code == 0, done.err
    told = {m["method"]: m for m in json.loads(done.out)["methods"]}
    assert set(told) == {"mnarkmeans", "kpod", "zero"}
    assert told["mnarkmeans"]["cer"] < 0.1
    done = server.run(*arguments, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert {p.name for p in (tmp_path / "out").iterdir()} == FILES | {
        "comparison.csv",
        "comparison_labels.csv",
    }
    assert rows(tmp_path / "out" / "comparison.csv")[0][:2] == ["method", "cer"]
    assert "Methods compared" in (tmp_path / "out" / "report.html").read_text()
    assert leftovers(tmp_path) == []


def test_select_agrees_with_the_estimator(server, tables, tmp_path, frame):
    done = server.run(
        "select", tables / "t.csv", "-k", "2:3", "--lams", "0,0.5,2", "--splits", 3, "--starts", 3,
        "--json", "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert {p.name for p in (tmp_path / "out").iterdir()} == FILES | {"selection.csv"}
    search = MNARKMeansCV([2, 3], lams=[0, 0.5, 2], n_splits=3, n_init=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        search.fit(frame[list("abcde")])
    assert (told["n_clusters"], told["lam"]) == (search.n_clusters_, search.lam_)
    assert told["selection"]["best_index"] == search.best_index_
    assert told["inertia"] == pytest.approx(search.inertia_)
    candidates = rows(tmp_path / "out" / "selection.csv")
    assert len(candidates) == 7
    assert [r[-1] for r in candidates].count("True") == 1
    labels = [int(r[1]) for r in rows(tmp_path / "out" / "labels.csv")[1:]]
    assert labels == search.labels_.tolist()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Found again" in page
    assert "Instability" in page


def test_diagnose_tells_and_writes(server, tables, tmp_path):
    done = server.run("diagnose", tables / "t.csv")
    assert done.code == 0, done.err
    assert "missing share against the distance" in done.out
    out = tmp_path / "out"
    done = server.run("diagnose", tables / "t.npz", "--json", "-o", out)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["rows"] == 60
    assert told["advice"]
    assert {p.name for p in out.iterdir()} == {
        "diagnosis.txt", "diagnosis.json", "diagnosis.png", "features.csv", "rows.csv",
        "magnitude.csv", "mechanisms.csv",
    }  # fmt: skip
    assert rows(out / "features.csv")[1][0] == "V1"
    assert len(rows(out / "rows.csv")) == 61


def test_reproduce_writes_and_resumes(server, tmp_path):
    arguments = ["reproduce", "table2", "--quick", "--repetitions", 1, "--jobs", 1, "-o", tmp_path]
    done = server.run(*arguments)
    assert done.code == 0, done.err
    before = (tmp_path / "table2" / "results.csv").read_bytes()
    done = server.run(*arguments)
    assert done.code == 0, done.err
    assert (tmp_path / "table2" / "results.csv").read_bytes() == before
    done = server.run("reproduce", "tabel2", "-o", tmp_path)
    assert done.code == 2
    assert "did you mean 'table2'" in done.err


def test_the_command_as_installed(tmp_path, tables):
    """Without the fork server: a fresh interpreter, a pipe, plain lines."""
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("mnarkmeans 0")
    done = subprocess.run(
        [*COMMAND, "fit", str(tables / "t.csv"), "-k", "2", "-o", "out"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "fitting ..." in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "rows are named by 'sample'" in done.stderr
    assert "left out 'kind'" in done.stderr


def test_without_its_extra_the_command_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from mnarkmeans.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'pip install "mnarkmeans[cli]"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_has_examples(server):
    assert server.run("--help").code == 0
    for verb in (
        "fit",
        "select",
        "diagnose",
        "predict",
        "impute",
        "compare",
        "reproduce",
        "report",
    ):
        done = server.run(verb, "--help")
        assert done.code == 0
        assert "Example:" in done.out
    assert server.run().code == 2


# ---- mistakes ----------------------------------------------------------------------------------

BAD_TABLES = {
    "empty.csv": b"",
    "header.csv": b"a,b\n",
    "ragged.csv": b"a,b\n1,2\n3\n",
    "twice.csv": b"a,a\n1,2\n3,4\n",
    "text.csv": b"a,b\nx,y\nu,v\n",
    "gaps.csv": b"a,b\nNA,\n,NaN\n",
    "latin.csv": "a,b\n1,é\n".encode("latin-1"),
    "binary.csv": b"\x00\x01\x02",
    "workbook.csv": b"PK\x03\x04....",
    "infinite.csv": b"a,b\n1,2\ninf,3\n4,5\n",
    "mixed.csv": b"a,b\n1,2\n3,n.d.\n5,6\n",
    "good.csv": b"id,a,b\nr,1,2\ns,3,4\nt,5,7\n",
    "negative.csv": b"a,b\n-5,2\n3,4\n",
    "broken.csv.gz": gzip.compress(b"a,b\n1,2\n")[:-9],
    "broken.parquet": b"PAR1",
    "broken.npy": b"\x93NUMPY\x01",
    "broken.npz": b"PK\x03\x04",
    "broken.h5ad": b"\x89HDF",
    "unknown.dat": b"1 2",
    "sheet.xlsx": b"PK",
    "other.csv": b"x,y\n1,2\n3,4\n",
}
FIT = ["-k", "2", "-o", "out"]
MISTAKES = [
    (["fit", "none.csv", *FIT], "there is no file none.csv"),
    (["fit", "folder", *FIT], "is a folder"),
    (["predict", "MODEL", ".", "-o", "l.csv"], "is a folder"),
    (["fit", "empty.csv", *FIT], "is empty"),
    (["fit", "header.csv", *FIT], "no rows below it"),
    (["fit", "ragged.csv", *FIT], "line 3 of ragged.csv has 1 fields"),
    (["fit", "twice.csv", *FIT], "more than one column called 'a'"),
    (["fit", "text.csv", *FIT], "no numeric column"),
    (["fit", "gaps.csv", *FIT], "no numeric column"),
    (["fit", "latin.csv", *FIT], "not UTF-8"),
    (["fit", "binary.csv", *FIT], "not a text file"),
    (["fit", "workbook.csv", *FIT], "Excel workbook"),
    (["fit", "infinite.csv", *FIT], "infinite value in row '2'"),
    (["fit", "mixed.csv", *FIT], '--missing-value "n.d."'),
    (["fit", "broken.csv.gz", *FIT], "damaged gzip"),
    (["fit", "broken.parquet", *FIT], "not a readable Parquet"),
    (["fit", "broken.npy", *FIT], "not a readable .npy"),
    (["fit", "broken.npz", *FIT], "not a readable .npz"),
    (["fit", "broken.h5ad", *FIT], "not a readable .h5ad"),
    (["fit", "unknown.dat", *FIT], "known format"),
    (["fit", "sheet.xlsx", *FIT], "spreadsheet"),
    (["fit", "good.csv", "-k", "9", "-o", "out"], "only 3 rows"),
    (["fit", "good.csv", "-k", "0", "-o", "out"], "at least 1"),
    (["fit", "good.csv", "-k", "two", "-o", "out"], "valid integer"),
    (["fit", "good.csv", "-o", "out"], "'-k'"),
    (["fit", "good.csv", *FIT, "--lam", "-1"], "at least 0"),
    (["fit", "good.csv", *FIT, "--lam", "much"], "not 'much'"),
    (["fit", "good.csv", *FIT, "--delimiter", ";"], "looks comma-separated"),
    (["fit", "good.csv", *FIT, "--id-column", "ids"], "did you mean 'id'"),
    (["fit", "good.csv", *FIT, "--drop", "z"], "no column called 'z'"),
    (["fit", "good.csv", *FIT, "--encoding", "klingon"], "not an encoding"),
    (["fit", "good.csv", *FIT, "--scale", "log"], "none, std, maxabs"),
    (["fit", "good.csv", *FIT, "--center", "--reference", "1"], "choose one"),
    (["fit", "good.csv", *FIT, "--reference", "max"], "a number, min, or a CSV file"),
    (["fit", "good.csv", *FIT, "--max-missing", "7"], "between 0 and 1"),
    (["fit", "good.csv", *FIT, "--embedding", "tsne"], "pca or umap"),
    (["fit", "good.csv", *FIT, "--missing-value", "1", "--missing-value", "3",
      "--missing-value", "5", "--missing-value", "2", "--missing-value", "4",
      "--missing-value", "7"], "no numeric column"),
    (["fit", "negative.csv", *FIT, "--log1p"], "above -1"),
    (["fit", "good.csv", *FIT, "--colour"], "colour"),
    (["fit", "good.csv", "-k", "2", "-o", "good.csv"], "is a file"),
    (["fit", "good.csv", "-k", "2", "-o", "good.csv/out"], "is a file, not a folder"),
    (["fit", "good.csv", "-k", "2", "-o", "/proc/out"], "could not be written"),
    (["cluster", "good.csv"], "No such command 'cluster'"),
    (["predict", "none", "good.csv", "-o", "l.csv"], "there is no model at none"),
    (["predict", "MODEL", "other.csv", "-o", "l.csv"], "none of the model's columns, such as 'a'"),
    (["predict", "MODEL", "good.csv", "-o", "l.xyz"], "must end in one of"),
    (["predict", "MODEL", "good.csv", "-o", "good.csv"], "exists; add --force"),
    (["impute", "MODEL", "none.csv", "-o", "l.csv"], "no file none.csv"),
    (["impute", "good.csv", "good.csv", "-o", "l.csv"], "not a whole model file"),
    (["report", "."], "holds no report.json"),
    (["report", "none"], "there is no folder none"),
    (["select", "good.csv", "-k", "5:2", "-o", "out"], "a range 2:8, not '5:2'"),
    (["select", "good.csv", "-k", "2:9", "-o", "out"], "only 3 rows"),
    (["select", "good.csv", "-k", "2", "--lams", "0,x", "-o", "out"], "one is 'x'"),
    (["select", "good.csv", "-k", "2", "--criterion", "luck", "-o", "out"], "'luck'"),
    (["diagnose", "none.csv"], "there is no file none.csv"),
    (["diagnose", "good.csv", "-o", "good.csv"], "is a file"),
    (["compare", "good.csv", "-k", "2", "--labels", "kind"], "no column called 'kind'"),
    (["compare", "good.csv", "-k", "2", "--methods", "magic"], "no method called 'magic'"),
]  # fmt: skip


@pytest.fixture(scope="module")
def bad(tmp_path_factory, server):
    folder = tmp_path_factory.mktemp("bad")
    (folder / "folder").mkdir()
    for name, content in BAD_TABLES.items():
        (folder / name).write_bytes(content)
    done = server.run("fit", "good.csv", "-k", 2, "--lam", 1, "-o", "model", cwd=folder)
    assert done.code == 0, done.err
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"), MISTAKES, ids=[" ".join(m[0])[:60] for m in MISTAKES]
)
def test_a_mistake_gets_one_sentence_and_writes_nothing(server, bad, arguments, message):
    before = sorted(bad.rglob("*"))
    arguments = ["model" if a == "MODEL" else a for a in arguments]
    done = server.run(*arguments, cwd=bad)
    assert done.code == 2, (done.out, done.err)
    assert message in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert done.out == ""
    assert sorted(bad.rglob("*")) == before


def test_a_mistake_in_json(server, bad):
    done = server.run("fit", "none.csv", *FIT, "--json", cwd=bad)
    assert done.code == 2
    assert json.loads(done.out) == {"error": "there is no file none.csv"}


def test_a_full_disk_leaves_nothing(server, tables, fitted, tmp_path):
    """A real limit on the size of files: the report does not fit."""
    done = server.run("fit", tables / "t.csv", "-k", 2, "-q", "-o", "out", cwd=tmp_path,
                      file_limit=6000)  # fmt: skip
    assert done.code == 2
    assert "no space left" in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    done = server.run("impute", fitted, tables / "t.csv", "-q", "-o", "new/f.csv", cwd=tmp_path,
                      file_limit=500)  # fmt: skip
    assert done.code == 2
    assert "no space left" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_told(server, tables, tmp_path):
    tmp_path.chmod(0o500)
    done = server.run("fit", tables / "t.csv", "-k", 2, "-o", tmp_path / "out")
    tmp_path.chmod(0o700)
    assert done.code == 2
    assert "may not be written to" in done.err


def test_an_edited_model_is_refused(server, fitted, tables, tmp_path):
    for name in ("model.json", "model.npz"):
        (tmp_path / name).write_bytes((fitted / name).read_bytes())
    text = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(text.replace('"lam_": 0.5', '"lam_": 5'))
    done = server.run("predict", tmp_path, tables / "t.csv", "-o", tmp_path / "l.csv")
    assert (done.code, "changed after it was written" in done.err) == (2, True)
    assert not (tmp_path / "l.csv").exists()


# ---- interruptions -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 20)) + 4 * rng.integers(0, 3, size=(12_000, 1))
    X[rng.random(X.shape) < 0.3] = np.nan
    path = tmp_path_factory.mktemp("large") / "large.npy"
    np.save(path, X)
    return path


def start(*arguments, cwd):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def wait_for(process, happened, seconds=120):
    end = time.monotonic() + seconds
    while not happened():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_fit_killed_while_writing_leaves_no_output_and_can_be_repeated(
    tmp_path, large, how, server
):
    arguments = ["fit", large, "-k", 3, "--lam", 0.5, "--starts", 2, "-o", "out"]
    process = start(*arguments, cwd=tmp_path)
    wait_for(process, lambda: any(tmp_path.glob(".mnarkmeans-*-out/labels.csv")))
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    assert not (tmp_path / "out").exists()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted" in err
        assert list(tmp_path.iterdir()) == []
        return
    assert process.returncode == -signal.SIGKILL
    done = server.run(*arguments, cwd=tmp_path)
    assert done.code == 0, done.err
    assert {p.name for p in (tmp_path / "out").iterdir()} == FILES
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_ctrl_c_while_fitting(tmp_path, large):
    process = start("fit", large, "-k", 3, "--starts", 400, "-o", "out", cwd=tmp_path)
    line = ""
    while "fitting" not in line:
        line = process.stderr.readline()
        assert line or process.poll() is None
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_select_killed_goes_on_where_it_stopped(tmp_path, tables, server):
    arguments = [
        "select", tables / "t.csv", "-k", "2:4", "--lams", "0,0.5,2", "--splits", 3, "-o", "out",
    ]  # fmt: skip
    process = start(*arguments, cwd=tmp_path)
    parts = tmp_path / ".mnarkmeans-parts-out"
    wait_for(process, lambda: (parts / "k2.json").exists())
    process.kill()
    process.communicate()
    assert not (tmp_path / "out").exists()
    marked = json.loads((parts / "k2.json").read_text())
    marked["part"]["results"]["mean_fit_time"] = [12345.0] * 3
    (parts / "k2.json").write_text(json.dumps(marked))
    done = server.run(*arguments, cwd=tmp_path)
    assert done.code == 0, done.err
    text = (tmp_path / "out" / "selection.csv").read_text()
    assert text.count("12345.0") == 3
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_compare_killed_goes_on_where_it_stopped(tmp_path, tables, server):
    arguments = ["compare", tables / "t.csv", "-k", 2, "--methods", "kpod,zero,fwpd", "-o", "out"]
    process = start(*arguments, cwd=tmp_path)
    parts = tmp_path / ".mnarkmeans-parts-out"
    wait_for(process, lambda: (parts / "kpod.json").exists())
    process.kill()
    process.communicate()
    assert not (tmp_path / "out").exists()
    marked = json.loads((parts / "kpod.json").read_text())
    marked["part"]["seconds"] = 12345.0
    (parts / "kpod.json").write_text(json.dumps(marked))
    done = server.run(*arguments, cwd=tmp_path)
    assert done.code == 0, done.err
    found = {r[0]: r for r in rows(tmp_path / "out" / "comparison.csv")}
    assert found["kpod"][4] == "12345.0"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
