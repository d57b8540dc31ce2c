"""The paper's figures and tables: the authors' procedure, and a runner that resumes."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
reproduction = pytest.importorskip("reproduction", reason="only in the repository")

from mnarkmeans import MNARKMeans  # noqa: E402
from mnarkmeans.datasets import make_gaussian_clusters  # noqa: E402
from reproduction import EXPERIMENTS, Experiment, _procedure, _runner  # noqa: E402
from reproduction.__main__ import main  # noqa: E402

REAL = {"table3", "figure7"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_small(name, tmp_path, request, monkeypatch):
    if name in REAL:
        monkeypatch.setenv("MNARKMEANS_DATA", str(request.getfixturevalue("data_folder")))
    monkeypatch.setattr(_procedure, "STARTS", 3)
    monkeypatch.setattr(_procedure, "STARTS_OF_CHOICE", 1)
    monkeypatch.setattr(_procedure, "SPLITS", 2)
    monkeypatch.setattr(reproduction.figure7, "embed", lambda filled: filled[:, :2])
    out, docs = tmp_path / "out", tmp_path / "docs"
    main([name, "--quick", "--repetitions", "1", "--jobs", "1", "-o", str(out)])
    table = pd.read_csv(out / name / "results.csv")
    assert set(table.repetition) == {0}
    pictures = {p.stem for p in out.glob("*/*.png")}
    assert pictures
    assert pictures == {p.stem for p in out.glob("*/*.svg")}
    text = (out / name / "comparison.md").read_text()
    assert text.startswith(f"# {EXPERIMENTS[name].title}")
    assert "| --- |" in text
    assert "nan" not in text.lower()
    main(["--pages", str(out), str(docs)])
    assert text in (docs / f"{name}.md").read_text()


def test_fit_is_the_penalised_loop_from_whole_kmeans():
    toy = make_gaussian_clusters(120, 4, 3, separation=4, fraction=0.3, random_state=0)
    starts = _procedure.draw_starts(toy.data, 3, 4, np.random.default_rng(0))
    filled = np.where(np.isnan(toy.data), np.nanmean(toy.data, axis=0), toy.data)
    for centers in starts:  # k-means has nothing left to do on the filled table
        again = MNARKMeans(3, lam=0.0, init=centers).fit(filled)
        np.testing.assert_allclose(again.cluster_centers_, centers)
    found = _procedure.fit(toy.data, 3, 0.7, np.random.default_rng(0), starts)
    model = MNARKMeans(3, lam=0.7, algorithm="lloyd")
    losses = [model.set_params(init=start).fit(toy.data).inertia_ for start in starts]
    np.testing.assert_allclose(found.start_losses_, losses, rtol=1e-4)
    assert found.inertia_ == pytest.approx(min(losses), rel=1e-4)


def test_instability_and_the_candidate_taken_are_the_authors():
    """All rows together against one row apart: m - 1 pairs differ, over (m-1)(m-2)/2."""
    apart = np.arange(40) == 0
    assert _procedure.disagreement(np.zeros(40, int), apart.astype(int)) == pytest.approx(2 / 38)
    take, sd = _procedure.take, np.array([0.1, 0.1, 0.1])
    assert take(np.array([0.3, 0.1, 0.2]), sd) == 1
    # the last is smallest: the first below its mean + sd
    assert take(np.array([0.3, 0.14, 0.1]), sd * [1, 1, 0.5]) == 1
    assert take(np.array([0.3, 0.2, 0.1]), sd * [1, 1, 0]) == 2


def counting(calls, stop_at=None):
    def compute(setting, rng):
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        calls.append(setting["a"])
        return [{"value": rng.random()}]

    return Experiment(
        "toy", "Toy", 3, lambda quick: [{"a": 1}, {"a": 2}], compute,
        lambda table, folder: None, lambda table: "",
    )  # fmt: skip


def test_an_interrupted_run_continues_where_it_stopped(tmp_path):
    calls = []
    with pytest.raises(KeyboardInterrupt):
        _runner.compute(counting(calls, stop_at=3), tmp_path, 2, n_jobs=1)
    assert [p.name for p in tmp_path.iterdir()] == ["results.csv"]
    resumed = _runner.compute(counting(calls), tmp_path, 2, n_jobs=1)
    assert len(calls) == 4
    whole = _runner.compute(counting([]), tmp_path / "whole", 2, n_jobs=1)
    np.testing.assert_allclose(resumed.value, whole.value)
    assert len(_runner.compute(counting(calls), tmp_path, 3, n_jobs=1)) == len(calls) == 6
    (tmp_path / "results.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="does not hold the results of an earlier run"):
        _runner.compute(counting(calls), tmp_path, 1, n_jobs=1)


def test_seeds_depend_on_setting_and_repetition_only():
    draws = {(a, r): _runner.task_rng({"a": a}, r).random() for a in (1, 2) for r in (0, 1)}
    assert len(set(draws.values())) == 4
    first, second = ({"b": 2, "a": 1}, {"a": 1, "b": 2})
    assert _runner.task_rng(first, 0).random() == _runner.task_rng(second, 0).random()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure9"], "no experiment is called 'figure9'"),
        (["table2", "--repetitions", "0"], "at least 1, found 0"),
        ([], "name an experiment"),
        (["--pages", "nowhere", "docs"], "nowhere holds no results"),
    ],
)
def test_mistakes_are_named(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
