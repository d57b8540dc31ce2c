"""fit, select, diagnose and report: the real command, in processes of its own."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import COMMAND, FILES, do, labels, names, read_json, refused, rows, run
from lab_files import maxquant
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans, MNARKMeansCV, SelectionWarning
from mnarkmeans.cli import _console
from mnarkmeans.cli._main import VERBS

FORMATS = ["t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.npy", "t.npz", "t.h5ad"]


@pytest.mark.parametrize("name", FORMATS)
def test_fit_predict_impute_in_every_format(tables, fitted, name):
    if name == "t.h5ad":
        pytest.importorskip("anndata")
    do("fit", tables / name, "-k", 2, "--lam", 0.5, "-o", "out")
    assert names("out") == FILES
    got, expected = rows("out/labels.csv"), rows(fitted / "labels.csv")
    assert got[0] == ["id", "cluster", "distance", "confidence"]
    # Sparse sums round in another order, so clusters may change names, nothing else.
    assert len({(a[1], b[1]) for a, b in zip(got[1:], expected[1:], strict=True)}) == 2
    distances = [[float(row[2]) for row in table[1:]] for table in (got, expected)]
    np.testing.assert_allclose(*distances, rtol=1e-9)
    do("predict", "out", tables / name, "-o", "labels.csv")
    assert rows("labels.csv") == got
    do("impute", "out/model.json", tables / name, "-o", "filled.parquet")
    filled = pd.read_parquet("filled.parquet")
    original = pd.read_csv(tables / "t.csv")[["a", "b", "c", "d", "e"]].to_numpy()
    assert name in ("t.npy", "t.npz") or filled.iloc[0, 0] == "=1+1"
    values = filled[list("abcde") if "a" in filled else [f"V{j}" for j in range(1, 6)]]
    assert np.isfinite(values).all(axis=None)
    np.testing.assert_allclose(values.where(~np.isnan(original)), original, rtol=1e-12)
    assert names() == {"out", "labels.csv", "filled.parquet"}


def test_the_report_names_the_reference_that_was_chosen_though_all_of_it_is_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) + 3.0 * (np.arange(60) % 2)[:, None] * (np.arange(5) % 2)
    X[X < -0.3] = np.nan  # a detection limit
    X -= np.nanmin(X, axis=0)
    pd.DataFrame(X, columns=list("abcde")).to_csv("t.csv", index=False)
    do("fit", "t.csv", "-k", 2, "-q", "-o", "out")
    assert read_json("out/summary.json")["missingness"]["reference"] == "min"
    settings = read_json("out/report.json")["settings"]
    assert settings["Reference"] == "auto: smallest observed value of each feature"
    paper = "--criterion", "paper", "--splits", 2, "--starts", 1
    do("select", "t.csv", "-k", 2, *paper, "-q", "-o", "paper")
    assert read_json("paper/report.json")["settings"]["Reference"] == "auto: zero"


def test_files_of_a_fit(fitted, frame):
    summary = read_json(fitted / "summary.json")
    assert (summary["n_clusters"], summary["lam"]) == (2, 0.5)
    assert summary["data"]["rows"] == sum(summary["cluster_sizes"]) == 60
    assert summary["data"]["left_out"] == [{"column": "kind", "reason": "text, such as 'even'"}]
    assert summary["command"].startswith("mnarkmeans fit ")
    assert summary["sure"]["verdict"]["kind"] in ("separate", "continuum", "undecided", "too few")
    assert len(summary["sure"]["stability"]) == 2
    assert [row[0] for row in rows(fitted / "labels.csv")[1:]] == list(frame["sample"])
    assert adjusted_rand_score(np.arange(60) % 2, labels(fitted / "labels.csv")) > 0.8
    assert rows(fitted / "centers.csv")[0] == ["cluster", "a", "b", "c", "d", "e"]
    markers = pd.read_csv(fitted / "markers.csv")
    assert list(markers) == [
        "cluster", "rank", "feature", "effect", "low", "high", "direction", "difference",
        "mean_inside", "mean_outside", "observed_inside", "observed_outside",
    ]  # fmt: skip
    assert {*markers["feature"]} <= {*"abcde"}
    assert {*markers["cluster"]} == {0, 1}
    page = (fitted / "report.html").read_text()
    assert "<!doctype html>" in page[:20]
    assert f">{summary['data']['sha256'][:16]}<" in page
    do("report", fitted, "--title", "Plasma & <b>co</b>")  # drawn again
    page = (fitted / "report.html").read_text()
    assert "<title>Plasma &amp; &lt;b&gt;co&lt;/b&gt;</title>" in page


def test_shares_of_markers_have_four_digits_however_small():
    X = np.random.default_rng(0).normal(10 * (np.arange(60) < 30)[:, None], size=(60, 3))
    X[31:, 2] = np.nan
    np.save("t.npy", X)
    do("fit", "t.npy", "-k", 2, "--reference", "min", "-q", "-o", "out")
    assert 0.03333 in {*pd.read_csv("out/markers.csv")["observed_outside"]}


def test_a_report_that_is_a_link_is_written_where_it_leads(fitted):
    shutil.copytree(fitted, "out")
    Path("shared").mkdir()
    Path("shared/report.html").write_text("another page")
    Path("out/report.html").replace("shared/page.html")
    try:
        Path("out/report.html").symlink_to("../shared/page.html")
    except OSError:
        pytest.skip("links are not for everybody here")
    do("report", "out", "--title", "Plasma")
    assert "<title>Plasma" in Path("shared/page.html").read_text("utf8")
    assert Path("shared/report.html").read_text() == "another page"


def test_a_table_that_must_be_read_otherwise_is_refused_with_the_command(tmp_path):
    """The command that is printed works, and finds the groups."""
    file, group = maxquant(tmp_path)
    error = refused("fit", file, "-k", 3, "-o", "out")
    command = re.search(r"Run: mnarkmeans (.*) \(or add --as-is", error)[1]
    do(*shlex.split(command))
    table = pd.read_csv("out/labels.csv")
    assert adjusted_rand_score(group, table["cluster"]) > 0.9
    assert (table["id"][0], table["sample"][0]) == ("LFQ intensity S00", "S00")
    markers = pd.read_csv("out/markers.csv")
    assert markers["gene"].str.startswith("GENE").all()
    fold = np.log2(markers["mean_inside"] / markers["mean_outside"])
    np.testing.assert_allclose(markers["log2_fold_change"], fold, rtol=0.01, atol=0.01)
    centers = pd.read_csv("out/centers.csv", index_col="cluster")
    prepared = pd.read_csv("out/centers_prepared.csv", index_col="cluster")
    np.testing.assert_allclose(np.log2(centers), prepared, rtol=1e-6)
    done = do("fit", file, "-k", 3, "--as-is", "-q", "-o", "as-is")
    assert done.err == ""


def test_references_for_features_in_rows(tables, frame):
    turned = frame.drop(columns="kind").set_index("sample").T + 20
    turned.to_csv("t.csv", index_label="Protein IDs")
    Path("ref.csv").write_text("feature,value\na,20\nb,20\nc,20\nd,20\ne,20\nzz,1\n")
    fit = ["fit", "t.csv", "-k", 2, "--transpose", "--lam", 0.5, "--reference"]
    do(*fit, "min", "-o", "min")
    assert [row[0] for row in rows("min/labels.csv")[1:]] == list(frame["sample"])
    assert rows("min/centers.csv")[0][1:] == list("abcde")
    do(*fit, "ref.csv", "-o", "file")
    done = do(*fit, 20, "--json", "-o", "number")
    assert (json.loads(done.out)["output"], done.err) == ("number", "")
    do("predict", "file", "t.csv", "-o", "p.csv")
    for file in "number/labels.csv", "p.csv":
        assert rows(file) == rows("file/labels.csv")
    X = frame[list("abcde")]  # with --center the reference is the mean of each feature
    do("fit", tables / "t.csv", "-k", 2, "--lam", 0.5, "--center", "-o", "mean")
    model = MNARKMeans(2, lam=0.5, reference=X.mean(), n_init=20, random_state=0).fit(X)
    summary = read_json("mean/summary.json")
    assert summary["inertia"] == pytest.approx(model.inertia_)


def test_nothing_is_overwritten_without_force(tables):
    arguments = ["fit", tables / "t.csv", "-q", "-o", "out", "-k"]
    assert run(*arguments, 2) == (0, "", "")
    before = Path("out/labels.csv").read_bytes()
    assert "exists; add --force" in refused(*arguments, 3)
    assert Path("out/labels.csv").read_bytes() == before
    Path("out/mine.txt").write_text("keep me")
    do(*arguments, 2, "--force")
    assert Path("out/mine.txt").read_text() == "keep me"
    assert names("out") == FILES | {"mine.txt"}
    assert names() == {"out"}


@pytest.mark.skipif(not hasattr(os, "pathconf"), reason="nobody tells how long names may be")
def test_an_output_that_is_there_and_empty_or_a_link(tables):
    Path("real").mkdir()
    inode = Path("real").stat().st_ino
    Path("link").symlink_to("real")
    Path("dangling").symlink_to("elsewhere")
    arguments = ["fit", tables / "t.csv", "-k", 2, "--lam", 1, "-q", "-o"]
    longest = os.pathconf(".", "PC_NAME_MAX") * "n"
    for name in ("link", "dangling", longest):
        assert run(*arguments, name) == (0, "", "")
    assert Path("link").is_symlink()
    assert names("real") == names("elsewhere") == FILES
    assert Path("real").stat().st_ino == inode  # whoever stands in it keeps standing
    Path("here").mkdir()
    with contextlib.chdir("here"):
        assert run(*arguments, ".") == (0, "", "")
    assert names("here") == FILES
    do("predict", "here", tables / "t.csv", "-o", longest[:-4] + ".csv")
    assert not any(name.startswith(".mnarkmeans") for name in names())


def test_select_agrees_with_the_estimator(tables, frame):
    done = do(
        "select", tables / "t.csv", "-k", "2:3", "--lams", "0,0.5,2", "--splits", 3, "--starts", 1,
        "--json", "-o", "out",
    )  # fmt: skip
    summary = json.loads(done.out)
    assert names("out") == FILES | {"selection.csv"}
    search = MNARKMeansCV(
        [2, 3], lams=[0, 0.5, 2], reference="auto", n_splits=3, n_init=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        search.fit(frame[list("abcde")])
    assert (summary["n_clusters"], summary["lam"]) == (search.n_clusters_, search.lam_)
    assert summary["selection"]["best_index"] == search.best_index_
    assert summary["inertia"] == pytest.approx(search.inertia_)
    candidates = rows("out/selection.csv")
    assert len(candidates) == 7
    assert [r[-1] for r in candidates].count("True") == 1
    assert labels("out/labels.csv") == search.labels_.tolist()
    page = Path("out/report.html").read_text()
    assert "Found again" in page
    assert "Instability" in page


def test_diagnose_prints_and_writes(tables):
    pytest.importorskip("matplotlib")
    assert "share of missing values" in do("diagnose", tables / "t.csv").out
    found = json.loads(do("diagnose", tables / "t.npz", "--json", "-o", "out").out)
    assert found["rows"] == 60
    assert found["advice"]
    assert names("out") == {
        "diagnosis.txt", "diagnosis.json", "diagnosis.png", "features.csv", "rows.csv",
        "magnitude.csv", "mechanisms.csv",
    }  # fmt: skip
    assert rows("out/features.csv")[1][0] == "V1"
    assert len(rows("out/rows.csv")) == 61


# --- the command itself -----------------------------------------------------------------------


def test_the_command_as_installed(tables):
    """A fresh interpreter, a pipe, plain lines; the verdict first."""
    done = subprocess.run(
        [*COMMAND, "fit", str(tables / "t.csv"), "-k", "2", "-o", "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "fitting ..." in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "note: t.csv: 60 rows, 5 features" in done.stderr
    assert "rows are named by 'sample'" in done.stderr
    assert "left out 'kind'" in done.stderr
    summary = read_json("out/summary.json")
    assert done.stdout.startswith(summary["sure"]["headline"])
    assert f"written to out; open {Path('out') / 'report.html'}\n" in done.stdout


def test_without_its_extra_the_command_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from mnarkmeans.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'pip install "mnarkmeans[cli]"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_and_version():
    assert run().code == 2
    version = do("--version").out
    assert version.startswith("mnarkmeans 0")
    assert "instruction set" in version
    assert "Examples" in do("--help").out
    for verb in VERBS:
        assert "Example:" in do(verb, "--help").out, verb


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_a_bar_on_a_terminal_and_lines_in_a_pipe(capsys, monkeypatch, terminal):
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
    monkeypatch.setattr(_console, "SECONDS_BETWEEN_LINES", 0.0)
    with _console.Console(False, False).progress("choosing", 4) as step:
        step("k = 2")
        step("k = 4", 3)
        step("k = 5", 4)
    printed = capsys.readouterr().err
    if terminal:
        assert "\u2501" in printed
        assert "100%" in printed
    else:
        assert printed.splitlines() == [
            "choosing ...", "choosing: 1/4 k = 2, about 1 s left",
            "choosing: 3/4 k = 4, about 1 s left", "choosing: 4/4 k = 5",
        ]  # fmt: skip
