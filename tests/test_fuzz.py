"""Short runs of the fuzzer and of the soak test; see docs/testing.md for the long ones."""

import pytest

pytest.importorskip("benchmarks", reason="only in the repository")
pytest.importorskip("dask.array")
pytest.importorskip("psutil", reason="comes with the extra dask")

from benchmarks.fuzz import __main__ as fuzz
from benchmarks.fuzz import cases, checks
from benchmarks.soak import figures, watch, work


def test_a_short_run_of_the_fuzzer_finds_nothing(capsys):
    status = fuzz.main(["--seed", "2026", "--cases", "40", "--minutes", "5", "--most", "tiny"])
    assert status == 0, capsys.readouterr().out


def test_the_same_seed_and_number_give_the_same_case():
    one, other = cases.make(3, 14), cases.make(3, 14)
    assert one.X.tobytes() == other.X.tobytes()
    assert one.describe() == other.describe()


@pytest.mark.parametrize("number", range(3))
def test_the_fuzzer_finds_a_wrong_label_and_says_how_to_repeat_it(number, capsys, monkeypatch):
    """An oracle that is wrong stands for a core that is."""
    right = checks.oracle.labels
    monkeypatch.setattr(checks.oracle, "labels", lambda *given: right(*given) + 1)
    assert fuzz.main(["--seed", "5", "--first", str(number), "--cases", "1", "--most", "tiny"]) == 1
    assert f"make(5, {number}, 'tiny')" in capsys.readouterr().out


def test_a_short_soak_compares_results_and_leaves_no_file():
    (seen,), left = watch.watch(["predictions"], 0.5, seed=0)
    assert not seen.trouble
    assert seen.compared == seen.turns * work.Predictions.QUESTIONS > 0
    assert left == []


def test_the_soak_finds_a_wrong_result():
    with work.Predictions(0) as asked:
        asked.answers = {"predict": asked.answers["predict"][::-1]}
        with pytest.raises(work.Wrong, match="predict of"):
            asked.turn()


def test_the_soak_reports_memory_that_grows_but_not_the_warm_up():
    warm = [10, 90, 100, 101, 100, 99, 101, 100]
    assert figures.is_flat(warm, 0.05, 0)
    seen = figures.Seen("fits", 8, 8, [int(1e9 + 5e7 * i) for i in range(8)], warm)
    assert seen.problems == ["fits: memory grew by 200 MB"]
    assert figures.Seen("fits").problems == ["fits: not one turn was finished"]
