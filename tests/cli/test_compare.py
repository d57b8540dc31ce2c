"""`mnarkmeans compare`: every way of clustering this table, side by side."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from outputs import FILES, leftovers, rows

from mnarkmeans import MNARKMeans
from mnarkmeans.baselines import BASELINES
from mnarkmeans.cli.compare import (
    MIXTURE,
    comparison_table,
    makers_of,
    run_one,
    score,
    within,
)


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
    assert "stopped: no result after 0 s" in done.out + done.err
    assert "1 of 1, k-POD" in done.err
    assert "zero imputation" not in done.out


def test_compare_with_and_without_output(server, tables, tmp_path):
    arguments = ["compare", tables / "t.csv", "-k", 2, "--labels", "kind", "--methods", "kpod,zero"]
    done = server.run(*arguments, "--json")
    assert done.code == 0, done.err
    told = {m["method"]: m for m in json.loads(done.out)["methods"]}
    assert set(told) == {"mnarkmeans", "kpod", "zero"}
    assert told["mnarkmeans"]["cer"] < 0.1
    done = server.run(*arguments, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    more = {"comparison.csv", "comparison_labels.csv", "annotations.csv"}
    assert {p.name for p in (tmp_path / "out").iterdir()} == FILES | more
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
    assert found["note"] == "stopped: no result after 0 s"
    assert found["ari"] is None


def test_the_mixture_has_the_reference_of_the_table():
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


def test_without_known_classes_the_numbers_are_agreement_and_ours_has_none(server, tables):
    done = server.run("compare", tables / "t.csv", "-k", 2, "--methods", "zero")
    assert done.code == 0, done.err
    lines = [line.split("\t") for line in done.out.splitlines() if "\t" in line]
    assert lines[0] == ["method", "agreement", "seconds"]
    assert lines[1][:2] == ["mnarkmeans", ""]
    assert -1 <= float(lines[2][1]) <= 1


def absent():
    raise ImportError('stepmix is not installed. Install it with: pip install "mnarkmeans[rivals]"')


def test_a_method_that_is_not_installed_is_named_with_the_command():
    result = run_one("gmm", absent, np.zeros((3, 2)))
    score(result, None, np.zeros(3, int))
    assert result["note"] == 'not installed: run pip install "mnarkmeans[rivals]"'
    assert comparison_table([result], None)[1][0][1] == "not installed"


def die():
    os._exit(3)


def test_work_in_a_process_of_its_own():
    assert within(60.0, sum, [1, 2])[0] == 3
    with pytest.raises(TimeoutError, match=r"no result after 0.1 s"):
        within(0.1, time.sleep, 600.0)
    with pytest.raises(ChildProcessError, match="ended without a result"):
        within(60.0, die)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_the_process_in_silence():
    code = """
import time
from mnarkmeans.cli.compare import within
if __name__ == "__main__":
    print("begins", flush=True)
    try:
        within(600.0, time.sleep, 600.0)
    except KeyboardInterrupt:
        print("stopped")
"""
    run = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert run.stdout is not None
    assert run.stdout.readline() == "begins\n"
    time.sleep(1.0)
    os.killpg(run.pid, signal.SIGINT)
    assert run.communicate(timeout=60)[0] == "stopped\n"
