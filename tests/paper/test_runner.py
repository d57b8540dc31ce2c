"""The runner: seeds, resuming, interruptions, two processes, and the small size of everything."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mnarkmeans import paper
from mnarkmeans.paper import EXPERIMENTS, Experiment, _runner
from mnarkmeans.paper.__main__ import main
from mnarkmeans.paper._experiment import task_rng
from mnarkmeans.paper._shared import markdown, matched

REAL = {"table3", "figure7", "beyond_usoskin", "beyond_lymphoma", "beyond_real"}


@pytest.fixture
def folder(monkeypatch):
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    path = Path(os.environ.get("MNARKMEANS_DATA", beside))
    monkeypatch.setenv("MNARKMEANS_DATA", str(path))
    return path


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_small(name, tmp_path, folder):
    if name in REAL and not (folder / "lymphoma.x.txt").is_file():
        pytest.skip("real data not found: set MNARKMEANS_DATA to the folder that holds them")
    written = paper.run(name, repetitions=1, n_jobs=1, out=tmp_path, quick=True)[name]
    table = pd.read_csv(written / "results.csv")
    assert len(table) > 0
    assert set(table.repetition) == {0}
    pictures = list(written.glob("*.png"))
    assert pictures
    assert {p.stem for p in pictures} == {p.stem for p in written.glob("*.svg")}
    text = (written / "comparison.md").read_text()
    assert text.startswith(f"# {EXPERIMENTS[name].title}")
    assert "| --- |" in text
    assert "nan" not in text.lower().replace("finance", "")


def counting(calls):
    def compute(setting, rng):
        calls.append(setting["a"])
        return [{"value": rng.random()}]

    return Experiment(
        "toy",
        "Toy",
        3,
        lambda quick: [{"a": 1}, {"a": 2}],
        compute,
        lambda table, folder: None,
        lambda table: "",
    )


def test_finished_repetitions_are_not_computed_again(tmp_path):
    calls = []
    first = _runner.compute(counting(calls), tmp_path, 2, n_jobs=1)
    assert len(calls) == 4
    again = _runner.compute(counting(calls), tmp_path, 2, n_jobs=1)
    assert len(calls) == 4
    np.testing.assert_allclose(first.value, again.value)
    more = _runner.compute(counting(calls), tmp_path, 3, n_jobs=1)
    assert len(calls) == 6
    assert len(more) == 6


def test_an_interruption_keeps_what_is_done(tmp_path):
    calls = []
    whole = counting(calls)

    def stops(setting, rng):
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole.compute(setting, rng)

    interrupted = Experiment("toy", "Toy", 3, whole.settings, stops, whole.draw, whole.compare)
    with pytest.raises(KeyboardInterrupt):
        _runner.compute(interrupted, tmp_path, 3, n_jobs=1)
    assert len(pd.read_csv(tmp_path / "results.csv")) == 3
    assert not list(tmp_path.glob(".mnarkmeans-*"))
    _runner.compute(whole, tmp_path, 3, n_jobs=1)
    assert len(calls) == 6


def test_a_run_that_failed_at_once_can_be_made_again(tmp_path):
    def fails(setting, rng):
        raise RuntimeError("no network")

    whole = counting([])
    failing = Experiment("toy", "Toy", 1, whole.settings, fails, whole.draw, whole.compare)
    with pytest.raises(RuntimeError, match="no network"):
        _runner.compute(failing, tmp_path, 1, n_jobs=1)
    assert not list(tmp_path.iterdir())
    (tmp_path / "results.csv").touch()  # of a process that was killed
    assert len(_runner.compute(whole, tmp_path, 1, n_jobs=1)) == 2
    (tmp_path / "results.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="does not hold the results of an earlier run"):
        _runner.compute(whole, tmp_path, 1, n_jobs=1)


def test_processes_change_nothing(tmp_path):
    one = _runner.compute(EXPERIMENTS["table2"], tmp_path / "1", 4, n_jobs=1, quick=True)
    two = _runner.compute(EXPERIMENTS["table2"], tmp_path / "2", 4, n_jobs=2, quick=True)
    pd.testing.assert_frame_equal(
        one.drop(columns="task_seconds"), two.drop(columns="task_seconds")
    )


def test_progress_counts_to_the_end(tmp_path):
    seen = []
    _runner.compute(counting([]), tmp_path, 2, n_jobs=1, progress=lambda *what: seen.append(what))
    assert [(name, done, total) for name, done, total, _ in seen] == [
        ("toy", done, 4) for done in (1, 2, 3, 4)
    ]
    assert seen[-1][3] == 0


def test_seeds_depend_on_setting_and_repetition_only():
    draws = {
        (a, repetition): task_rng({"a": a}, repetition).random()
        for a in (1, 2)
        for repetition in (0, 1)
    }
    assert len(set(draws.values())) == 4
    assert task_rng({"b": 2, "a": 1}, 0).random() == task_rng({"a": 1, "b": 2}, 0).random()


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ValueError, match="No experiment is called 'figure9'"):
        paper.run("figure9", out=tmp_path)
    with pytest.raises(ValueError, match="at least 1, found 0"):
        paper.run("table2", repetitions=0, out=tmp_path)


def test_pages_for_the_documentation(tmp_path):
    main(["table2", "--quick", "--repetitions", "1", "--jobs", "1", "-o", str(tmp_path / "out")])
    main(["--docs", str(tmp_path / "out"), str(tmp_path / "docs")])
    index = (tmp_path / "docs" / "index.md").read_text()
    assert "table2" in index
    assert "Hartigan-Wong" in index
    page = (tmp_path / "docs" / "table2.md").read_text()
    assert "![" in page
    assert (tmp_path / "docs" / "table2.png").is_file()
    with pytest.raises(FileNotFoundError, match="holds no comparison"):
        main(["--docs", str(tmp_path / "nothing"), str(tmp_path / "docs")])


def test_labels_are_renamed_to_agree_most():
    truth = np.array([0, 0, 1, 1, 2])
    np.testing.assert_array_equal(matched(truth, np.array([2, 2, 0, 0, 1])), truth)
    assert (matched(truth, np.array([1, 1, 1, 0, 0])) == truth).sum() == 3


def test_markdown_table():
    assert markdown(["a", "b"], [[1, 0.12345]]) == "| a | b |\n| --- | --- |\n| 1 | 0.123 |\n"
