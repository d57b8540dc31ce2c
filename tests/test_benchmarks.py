"""The benchmarks' own arithmetic, and that they still fit the package."""

import csv
import sys

import pytest

pytest.importorskip("benchmarks", reason="only in the repository")

from benchmarks import against, choice, compare, mixture, mutation
from benchmarks.jobs import JOBS, Job
from benchmarks.measured import Measured


def test_a_goal_is_a_most_or_a_least():
    slower, faster = Measured("a", 3.0, 2.0, "b", 1.3), Measured("a", 2.0, 8.0, "b", 3, faster=True)
    assert (slower.ratio, slower.reached) == (1.5, False)
    assert (faster.ratio, faster.reached) == (4.0, True)
    assert "MISSED" in slower.line()
    assert Measured("a", 1.0, 1.0, "b").reached is None


def test_programs_solve_the_same_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "PAUSE", 1e-9)
    clock = iter(range(1, 10**6)).__next__
    for job in (Job("dense", 400, 5, 3), Job("CSR", 400, 9, 3, sparse=True)):
        timings = compare.compare(job, ["scikit-learn lloyd"], 1, clock)
        assert [t.program for t in timings] == ["mnarkmeans", "scikit-learn lloyd"]
        assert timings[0].loss == pytest.approx(timings[1].loss)
    compare.write_table(tmp_path / "table.csv", timings)
    with (tmp_path / "table.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["scikit-learn lloyd"].endswith("(1.0)")
    pytest.importorskip("matplotlib")
    compare.draw_table(tmp_path / "table.csv", tmp_path / "table.png")
    assert (tmp_path / "table.png").stat().st_size > 1000


def test_every_job_is_a_task_for_two_builds_and_a_build_is_not_compared_with_itself(monkeypatch):
    assert {job.name for job in JOBS} <= set(against.tasks())
    # The other build is looked for without PYTHONPATH, which may be how this one was found.
    monkeypatch.setattr(against, "path_of_other", lambda environment: environment)
    with pytest.raises(SystemExit, match="both are the build in"):
        against.compare(sys.executable, "100 starts", 1)


def test_the_choice_and_a_mixture_are_measured():
    clock = iter(range(10_000)).__next__
    assert len(choice.measure(1, clock, [(60, 4, 2)])) == 2
    pytest.importorskip("stepmix")
    figures = mixture.measure(1, clock, n=300, p=4, k=2)
    assert {figure.goal for figure in figures} == {1.0, 20.0, None}


def test_mutants_are_programs_and_are_met_by_the_tests_that_reach_them():
    drawn = mutation.draw(30, seed=0, only=["_solver.py"])
    assert len(set(drawn)) == 30
    for mutant in drawn:
        assert mutant.apply() != mutant.text
        compile(mutant.apply(), mutant.path, "exec")
    reached = [*mutation.places(drawn[0])]
    recorded = {"slow": (9.0, reached), "quick": (0.1, reached), "beside": (0.1, [])}
    assert mutation.choose(drawn[0], recorded) == {"quick": 0, "slow": 1}
    # Those that were argued to change no result are known.
    every = mutation.draw(10**6, seed=0, only=["_solver.py", "core/loss.h"])
    argued = {(m.text[m.start : m.stop], m.new) for m in every if mutation.argued(m)}
    assert {("25", "26"), ("*", "/")} <= argued
    assert len(argued) < len(every) / 4
