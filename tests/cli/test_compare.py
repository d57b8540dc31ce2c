"""`mnarkmeans compare`: every way of clustering this table, side by side."""

from __future__ import annotations

import json

import numpy as np
from outputs import FILES, leftovers, rows

from mnarkmeans import MNARKMeans
from mnarkmeans.baselines import BASELINES


def test_compare_leaves_out_and_stops_at_the_limit(server, tables, tmp_path):
    arguments = [
        "compare",
        tables / "t.csv",
        "-k",
        2,
        "--methods",
        "kpod,zero",
        "--methods",
        "mean",
        "--without",
        "zero",
        "--without",
        "mean",
    ]
    done = server.run(*arguments, "--time-limit", 0)
    assert done.code == 0
    assert "not done after 0 s" in done.out + done.err
    assert "1 of 1, k-POD, 0 s at most" in done.err
    assert "filled with zero" not in done.out


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


def test_our_mixture_is_one_of_the_methods(server, tables, tmp_path):
    only = [name for name in BASELINES if name != "zero"]
    arguments = ["compare", tables / "t.csv", "-k", 2, "--without", ",".join(only), "--json"]
    done = server.run(*arguments)
    assert done.code == 0, done.err
    told = {m["method"]: m for m in json.loads(done.out)["methods"]}
    assert list(told) == ["mnarkmeans", "mixture", "zero"]
    assert told["mixture"]["clusters"] == 2
    done = server.run(*arguments, "--without", "mixture")
    assert [m["method"] for m in json.loads(done.out)["methods"]] == ["mnarkmeans", "zero"]
    done = server.run(*arguments, "--without", "zero", "--time-limit", 0)
    (found,) = [m for m in json.loads(done.out)["methods"] if m["method"] == "mixture"]
    assert found["note"] == "not done after 0 s"
    assert found["ari"] is None


def test_the_mixture_has_the_reference_of_the_table():
    from mnarkmeans.cli._compare import MIXTURE, makers_of  # here: its locks are the system's

    X = 10.0 + np.random.default_rng(0).normal(size=(60, 3))
    X[X < 9.5] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    makers = makers_of(MNARKMeans(2, random_state=0), "min")
    model = makers[MIXTURE]().fit(X)
    np.testing.assert_allclose(model.reference_, np.nanmin(X, axis=0))


def test_the_demo_names_only_files_that_stay(server, tmp_path):
    done = server.run("demo", "-o", "shown", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "mnarkmeans-new" not in done.out + done.err  # the folder it was written in at first
    for name in ("report.html", "summary.json"):
        assert "mnarkmeans-new" not in (tmp_path / "shown" / name).read_text()
    assert leftovers(tmp_path) == []
