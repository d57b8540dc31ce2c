"""The real command, killed and interrupted: no broken files, and work goes on where it stopped."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from commands import COMMAND, FILES, do, names, refused, rows, run

from mnarkmeans._io import pack, unpack

if not hasattr(signal, "SIGKILL"):
    pytest.skip("this system ends processes in another way", allow_module_level=True)

PARTS = Path(".mnarkmeans-parts-out")
PATIENCE = 600  # seconds, on a machine that is busy with something else; a hang is still a failure


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 20)) + 4 * rng.integers(0, 3, size=(4_000, 1))
    X[rng.random(X.shape) < 0.3] = np.nan
    path = tmp_path_factory.mktemp("large") / "large.npy"
    np.save(path, X)
    return path


def start(*arguments):
    command, pipe = [*COMMAND, *map(str, arguments)], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def wait_for(process, happened):
    end = time.monotonic() + PATIENCE
    while not happened():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_fit_killed_while_writing_leaves_no_output_and_can_be_repeated(large, how):
    arguments = ["fit", large, "-k", 3, "--lam", 0.5, "--starts", 2, "-o", "out"]
    process = start(*arguments)
    wait_for(process, lambda: any(Path().glob(".mnarkmeans-*-out/labels.csv")))
    process.send_signal(how)
    _, err = process.communicate(timeout=PATIENCE)
    assert not Path("out").exists()
    if how != signal.SIGKILL:
        assert process.returncode == 128 + how
        assert "no file was left half-written" in err
        assert "Traceback" not in err
        assert names() == set()
        return
    assert process.returncode == -signal.SIGKILL
    do(*arguments)
    assert names("out") == FILES
    assert names() == {"out"}


def wait_until_it_fits(process):
    line = ""
    while "fitting" not in line:
        line = process.stderr.readline()
        assert line or process.poll() is None


def test_ctrl_c_while_fitting(large):
    process = start("fit", large, "-k", 40, "--starts", 400, "-o", "out")
    wait_until_it_fits(process)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err.endswith("error: interrupted; no file was left half-written\n")
    assert "Traceback" not in err
    assert names() == set()


def test_select_goes_on_where_it_stopped(tables):
    arguments = [
        "select", tables / "t.csv", "-k", "2:4", "--lams", "0,0.5,2", "--splits", 3, "-o", "out",
    ]  # fmt: skip
    # A file of another job stands where the last part would be written: the run ends there.
    (PARTS / "k4.npz").mkdir(parents=True)
    assert run(*arguments).code == 2
    assert not Path("out").exists()
    assert names(PARTS) == {"k2.npz", "k3.npz", "k4.npz"}
    (PARTS / "k4.npz").rmdir()
    mark(PARTS / "k2.npz", "k2/seconds", np.full(3, 12345.0))
    finished = shutil.copytree(PARTS, "finished")
    for prepared, times in (["--scale", "std"], 0), ([], 3):  # another job, this one
        do(*arguments, *prepared)
        text = Path("out/selection.csv").read_text()
        assert text.count("12345.0") == times
        assert names() == {"out", "finished"}
        shutil.rmtree("out")
        shutil.copytree(finished, PARTS)


def test_compare_goes_on_where_it_stopped(tables):
    arguments = ["compare", tables / "t.csv", "-k", 2, "--methods", "kpod,zero,fwpd", "-o", "out"]
    (PARTS / "fwpd.npz").mkdir(parents=True)
    assert run(*arguments).code == 2
    (PARTS / "fwpd.npz").rmdir()
    labels = unpack((PARTS / "kpod.npz").read_bytes())["kpod/labels"]
    mark(PARTS / "kpod.npz", "kpod/labels", np.zeros_like(labels))
    (PARTS / "zero.npz").write_bytes(b"damaged")
    do(*arguments)
    found = {r[0]: r for r in rows("out/comparison.csv")}
    assert (found["kpod"][3], found["zero"][3]) == ("1", "2")
    assert names() == {"out"}


def mark(path, name, value):
    arrays = unpack(path.read_bytes())
    assert arrays[name].shape == value.shape
    path.write_bytes(pack(arrays | {name: value}))


def test_of_two_fits_into_one_folder_the_second_is_refused_before_any_work(large, tables):
    first = start("fit", large, "-k", 3, "--starts", 100, "-o", "out")
    wait_until_it_fits(first)
    first.send_signal(signal.SIGSTOP)
    Path("link").symlink_to("out")
    for name, force in ("out", []), ("./link", ["--force"]):
        error = refused("fit", tables / "t.csv", "-k", 2, "-o", name, *force)
        assert "another run is writing to" in error
    Path("link").unlink()
    first.send_signal(signal.SIGCONT)
    assert first.communicate(timeout=PATIENCE)[0]
    assert first.returncode == 0
    assert len(rows("out/labels.csv")) == 4_001
    assert names() == {"out"}
    assert names("out") == FILES
