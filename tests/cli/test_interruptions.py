"""The real command, killed and interrupted: no broken files, and work goes on where it stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import numpy as np
import pytest
from command_server import COMMAND
from outputs import FILES, rows


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
