"""The real command, in processes of its own: every verb, every format."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_server import COMMAND
from outputs import FILES, leftovers, rows
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeansCV, SelectionWarning
from mnarkmeans.cli._app import VERBS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tables"))
from lab_files import maxquant  # noqa: E402


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.npy", "t.npz", "t.h5ad"]
)
def test_fit_predict_impute_in_every_format(server, tables, fitted, tmp_path, name):
    if name == "t.h5ad":
        pytest.importorskip("anndata")
    out = tmp_path / "out"
    done = server.run("fit", tables / name, "-k", 2, "--lam", 0.5, "-o", out)
    assert done.code == 0, done.err
    assert {p.name for p in out.iterdir()} == FILES
    got, expected = rows(out / "labels.csv"), rows(fitted / "labels.csv")
    assert got[0] == ["id", "cluster", "distance", "confidence"]
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
    names = list("abcde") if "a" in filled else [f"V{j}" for j in range(1, 6)]
    values = filled[names].to_numpy(float)
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
    assert summary["sure"]["verdict"]["kind"] in ("separate", "continuum", "too few")
    assert len(summary["sure"]["stability"]) == 2
    labels = rows(fitted / "labels.csv")
    assert [r[0] for r in labels[1:]] == list(frame["sample"])
    truth = np.arange(60) % 2
    found = np.array([int(r[1]) for r in labels[1:]])
    assert max((found == truth).mean(), (found != truth).mean()) > 0.95
    centers = rows(fitted / "centers.csv")
    assert centers[0] == ["cluster", "a", "b", "c", "d", "e"]
    markers = rows(fitted / "markers.csv")
    assert ",".join(markers[0]) == (
        "cluster,rank,feature,effect,low,high,direction,difference,mean_inside,mean_outside,"
        "observed_inside,observed_outside"
    )
    assert {line[2] for line in markers[1:]} <= set("abcde")
    assert {line[0] for line in markers[1:]} == {"0", "1"}
    assert "<!doctype html>" in (fitted / "report.html").read_text()[:20]


@pytest.fixture(scope="module")
def protein_groups(tmp_path_factory):
    """A proteinGroups.txt of 24 samples in three groups."""
    folder = tmp_path_factory.mktemp("maxquant")
    name, group = maxquant(folder)
    return folder / name, group


def test_a_table_that_must_be_read_otherwise_is_refused_with_the_command(server, protein_groups):
    """The command that is printed works, and finds the groups."""
    file, group = protein_groups
    done = server.run("fit", file.name, "-k", 3, "-o", "out", cwd=file.parent)
    assert done.code == 2
    assert done.err.count("\n") == 1
    command = re.search(r"Run: mnarkmeans (.*) \(or add --as-is", done.err)[1]
    assert server.run(*shlex.split(command), cwd=file.parent).code == 0
    out = file.parent / "out"
    labels = pd.read_csv(out / "labels.csv")
    assert adjusted_rand_score(group, labels["cluster"]) > 0.9
    assert labels["id"][0] == "LFQ intensity S00"
    assert labels["sample"][0] == "S00"
    markers = pd.read_csv(out / "markers.csv")
    assert markers["gene"].str.startswith("GENE").all()
    fold = np.log2(markers["mean_inside"] / markers["mean_outside"])
    np.testing.assert_allclose(markers["log2_fold_change"], fold, rtol=0.01, atol=0.01)
    centers = pd.read_csv(out / "centers.csv", index_col="cluster")
    prepared = pd.read_csv(out / "centers_prepared.csv", index_col="cluster")
    np.testing.assert_allclose(np.log2(centers), prepared, rtol=1e-6)


def test_fit_and_diagnose_give_the_same_notes_of_the_same_table(server, protein_groups):
    file, _ = protein_groups
    options = ["--columns", "LFQ intensity *", "--transpose", "--missing-value", 0, "--log2"]
    notes = []
    for verb in (["fit", "-k", 3, "-o", "again", "--force"], ["diagnose"]):
        done = server.run(verb[0], file.name, *verb[1:], *options, cwd=file.parent)
        assert done.code == 0, done.err
        notes.append([line for line in done.err.splitlines() if "left out" in line])
    assert notes[0][:1] == notes[1][:1]
    done = server.run("fit", file.name, "-k", 3, "--as-is", "-q", "-o", "as-is", cwd=file.parent)
    assert (done.code, done.err) == (0, "")


def test_proteins_are_clustered_by_their_profile(server, protein_groups):
    file, _ = protein_groups
    done = server.run(
        "fit", file.name, "-k", 3, "--columns", "LFQ intensity *", "--missing-value", 0, "--log2",
        "--center-rows", "--as-is", "--json", "-o", "profiles", cwd=file.parent,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "rows centred by their mean" in json.loads(done.out)["preparation"]
    assert not (file.parent / "profiles" / "centers_prepared.csv").exists()
    done = server.run("predict", "profiles", file.name, "-o", "p.csv", cwd=file.parent)
    assert done.code == 0, done.err
    assert rows(file.parent / "p.csv") == rows(file.parent / "profiles" / "labels.csv")


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
    assert list(filled.columns) == list(shuffled.columns)
    assert (filled["extra"] == 1).all()
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
    (tmp_path / "more.csv").write_text("feature,value\na,20\nb,20\nc,20\nd,20\ne,20\nzz,1\n")
    done = server.run(
        "fit", tmp_path / "t.csv", "-k", 2, "--transpose", "--reference", tmp_path / "more.csv",
        "-o", tmp_path / "more",
    )  # fmt: skip
    assert "more.csv names features that the table does not have: 'zz'" in done.err
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


@pytest.mark.skipif(not hasattr(os, "pathconf"), reason="nobody tells how long names may be")
def test_an_output_that_is_there_and_empty_or_a_link(server, tables, tmp_path):
    (tmp_path / "real").mkdir()
    inode = (tmp_path / "real").stat().st_ino
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("elsewhere")
    arguments = ["fit", tables / "t.csv", "-k", 2, "--lam", 1, "-q", "-o"]
    assert server.run(*arguments, "link", cwd=tmp_path) == (0, "", "")
    assert (tmp_path / "link").is_symlink()
    assert {p.name for p in (tmp_path / "real").iterdir()} == FILES
    assert (tmp_path / "real").stat().st_ino == inode  # whoever stands in it keeps standing
    assert server.run(*arguments, "dangling", cwd=tmp_path) == (0, "", "")
    assert {p.name for p in (tmp_path / "elsewhere").iterdir()} == FILES
    (tmp_path / "here").mkdir()
    assert server.run(*arguments, ".", cwd=tmp_path / "here") == (0, "", "")
    assert {p.name for p in (tmp_path / "here").iterdir()} == FILES
    longest = os.pathconf(tmp_path, "PC_NAME_MAX") * "n"
    assert server.run(*arguments, longest, cwd=tmp_path) == (0, "", "")
    done = server.run(
        "predict", "here", tables / "t.csv", "-o", longest[:-4] + ".csv", cwd=tmp_path
    )
    assert done.code == 0, done.err
    assert leftovers(tmp_path) == []


def test_names_are_written_as_they_are_or_safe_for_spreadsheets(server, tables, tmp_path, frame):
    ids = ["=1+1", "+x", "@y", "-z", *frame["sample"][4:]]
    odd = frame.assign(sample=ids).rename(columns={"a": "=a", "b": "@b"})
    odd.to_csv(tmp_path / "t.csv", index=False)
    for option, mark in ([], ""), (["--spreadsheet-safe"], "'"):
        out = tmp_path / ("safe" if option else "plain")
        fit = ["fit", tmp_path / "t.csv", "-k", 2, "--lam", 1, "-o", out, *option]
        assert server.run(*fit).code == 0
        assert [r[0] for r in rows(out / "labels.csv")[1:5]] == [
            mark + name for name in ("=1+1", "+x", "@y", "-z")
        ]
        assert rows(out / "labels.csv")[5][0] == "s4"
        assert rows(out / "centers.csv")[0][1:4] == [mark + "=a", mark + "@b", "c"]
        filled = tmp_path / f"{out.name}.csv"
        done = server.run("impute", out, tmp_path / "t.csv", "-o", filled, *option)
        assert done.code == 0, done.err
        assert rows(filled)[0][:3] == ["sample", mark + "=a", mark + "@b"]
        assert rows(filled)[1][0] == mark + "=1+1"
        assert not any(cell.startswith("'") for row in rows(filled)[1:] for cell in row[1:])


def test_ids_are_kept_letter_by_letter(server, tables, tmp_path, frame):
    """007 is a number to a reader of tables, and a key to its owner."""
    odd = frame.assign(sample=[f"{i:03d}" for i in range(60)]).rename(columns={"sample": "id"})
    odd.to_csv(tmp_path / "t.csv", index=False)
    done = server.run("fit", tmp_path / "t.csv", "-k", 2, "--lam", 1, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert [r[0] for r in rows(tmp_path / "out" / "labels.csv")[1:4]] == ["000", "001", "002"]


def test_report_is_drawn_again(server, fitted, tmp_path):
    done = server.run("report", fitted, "--title", "Plasma & <b>co</b>")
    assert done.code == 0, done.err
    page = (fitted / "report.html").read_text()
    assert "<title>Plasma &amp; &lt;b&gt;co&lt;/b&gt;</title>" in page


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
    pytest.importorskip("matplotlib")
    done = server.run("diagnose", tables / "t.csv")
    assert done.code == 0, done.err
    assert "missing share" in done.out
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


def test_the_command_as_installed(tmp_path, tables):
    """Without the fork server: a fresh interpreter, a pipe, plain lines."""
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("mnarkmeans 0")
    assert "instruction set" in done.stdout
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


def test_every_verb_has_an_example(server):
    assert server.run("--help").code == 0
    for verb in VERBS:
        done = server.run(verb, "--help")
        assert done.code == 0
        assert "Example:" in done.out, verb
    assert server.run().code == 2


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="they are not part of the sdist")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_stands_in_the_lists(verb):
    guide = (ROOT / "docs" / "command_line.md").read_text()
    assert re.search(rf"^(\| `|mnarkmeans ){verb}\b", guide, re.M)
    assert f"`mnarkmeans {verb}`" in (ROOT / "llms.txt").read_text()


@pytest.mark.parametrize("far", ["1e9", "1e10", "1e100"])
def test_predict_gives_a_row_its_label_whatever_stands_beside_it(
    server, fitted, tables, tmp_path, far
):
    lines = (tables / "t.csv").read_text().splitlines()
    (tmp_path / "far.csv").write_text("\n".join([*lines, f"far,{','.join([far] * 5)},odd"]) + "\n")
    done = server.run("predict", fitted, tmp_path / "far.csv", "-o", tmp_path / "labels.csv")
    assert done.code == 0, done.err
    assert rows(tmp_path / "labels.csv")[:-1] == rows(fitted / "labels.csv")
