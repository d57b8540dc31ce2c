"""The benchmark's own arithmetic, and that its parts still fit the package."""

import csv
import sys

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of the package")

from benchmarks import (
    against,
    choice,
    choice_parts,
    comparisons,
    history,
    mixture,
    parts,
    passes,
    tasks,
)
from benchmarks.compare import Timing, figures
from benchmarks.jobs import JOBS, Job
from benchmarks.measured import Measured, best_in_turns


def test_a_goal_is_a_most_or_a_least():
    slower, faster = Measured("a", 3.0, 2.0, "b", 1.3), Measured("a", 2.0, 8.0, "b", 3, faster=True)
    assert (slower.ratio, slower.reached, slower.goal_text) == (1.5, False, "at most 1.3 x")
    assert (faster.ratio, faster.reached, faster.goal_text) == (4.0, True, "at least 3 x")
    assert Measured("a", 1.0, 1.0, "b").reached is None
    assert "NOT REACHED" in slower.line()


def test_contenders_take_turns_and_the_first_turn_does_not_count():
    ticks, order = iter([0, 9, 10, 19, 20, 21, 30, 35]), []
    work = {name: lambda name=name: order.append(name) for name in ("ours", "theirs")}
    assert best_in_turns(work, 1, lambda: next(ticks)) == {"ours": 1, "theirs": 5}
    assert order == ["ours", "theirs"] * 2


def test_a_goal_against_one_rival_is_not_measured_against_another():
    job = Job("x", 10, 2, 2, goal=3.0, goal_rival="scikit-learn lloyd")
    times = {"mnarkmeans": 1.0, "scikit-learn lloyd": 4.0, "faiss": 2.0, "NumPy": 0.5}
    timings = [Timing("x", "", 2, name, seconds, 1, 0.0) for name, seconds in times.items()]
    named, best = figures(job, timings)
    assert (named.against, named.ratio, named.reached) == ("scikit-learn lloyd", 4.0, True)
    assert (best.against, best.ratio, best.reached) == ("faiss", 2.0, None)


def test_the_history_grows_by_a_row_per_figure(tmp_path):
    path = tmp_path / "history.csv"
    for _ in range(2):
        history.append([Measured("dense", 0.5, 1.5, "faiss", 3, faster=True)], "cpu", 2, path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [(row["name"], row["ratio"], row["against"]) for row in rows]
    assert found == [("dense", "3", "faiss")] * 2


def test_every_job_is_a_task_for_two_builds():
    assert {job.name for job in JOBS} <= set(tasks.tasks())


def test_a_build_is_not_compared_with_itself(monkeypatch):
    # The other build is looked for without PYTHONPATH, which may be how this one was found.
    monkeypatch.setattr(against, "path_of_other", lambda environment: environment)
    with pytest.raises(SystemExit, match="both are the build in"):
        against.compare(sys.executable, "100 starts", 1)


def test_the_parts_of_a_fit_are_those_of_the_solver():
    small = Job("small", 300, 9, 3, starts=4)
    found = parts.parts(small.make(), threads=1, repeats=1, bounds=True, lam=1.0)
    assert set(found) == {"first look", "starts", "in one call", "solver", "last look", "whole fit"}
    slabs = Job("slabs", 60_000, 9, 3)
    found = parts.parts(slabs.make(), threads=1, repeats=1, bounds=False, lam=0.5)
    assert {"passes", "new centres", "last look"} <= set(found)
    assert np.all(found["passes"] > 0)


def test_the_parts_of_a_choice_are_those_of_the_likelihood():
    found = choice_parts.parts_of_choice(choice.table(300, 10, 3), 3, repeats=1)
    assert {*choice_parts.PARTS.values(), "a fit, lam fixed", "a fit, lam auto"} == set(found)
    assert all(part.in_core <= part.seconds for part in found.values())
    whole = found["a fit, lam auto"]
    assert whole.calls > found["mixtures"].calls > 0


def test_passes_are_timed_one_by_one():
    small = passes.Passes(Job("small", 300, 9, 3), 0.5)
    small.turn()
    assert {"first look", "pass, all rows join", "pass, no row changes"} <= set(small.best)


def test_bounds_leave_less_to_compare_than_all_and_more_than_nothing():
    data = Job("slabs", 60_000, 9, 9).make()
    path = comparisons.path_of(data)
    found = comparisons.shares(data.filled[:2048], path)
    assert set(found) == {"as it is", "movers", "pairs"}
    for shares in found.values():
        assert shares.shape == (len(path), 2)
        assert shares[0].tolist() == [1.0, 1.0]
        assert np.all((shares >= 0) & (shares <= 1))
    compared = {name: shares[:, 0].sum() for name, shares in found.items()}
    assert 1 < compared["pairs"] < min(compared["movers"], compared["as it is"]) < len(path)


def test_a_round_of_a_mixture_is_measured_against_both_rivals():
    pytest.importorskip("stepmix")
    figures = mixture.measure(1, clock=iter(range(10_000)).__next__, n=300, p=4, k=2)
    assert [figure.against for figure in figures][1] == "StepMix"
    assert {figure.goal for figure in figures} == {1.0, 20.0, None}


def test_mutants_are_programs():
    from benchmarks import mutation

    drawn = mutation.draw(30, seed=0, only=["_solver.py"])
    assert len(set(drawn)) == 30
    for mutant in drawn:
        text = (mutation.ROOT / mutant.path).read_text()
        assert mutant.apply(text) != text
        compile(mutant.apply(text), str(mutant.path), "exec")
    near, rest = mutation.test_files(drawn[0])
    assert near
    assert not set(near) & set(rest)
