"""Short runs of the fuzzer and of the soak test; see docs/testing.md for the long ones."""

import pytest

pytest.importorskip("benchmarks", reason="only in the repository")
pytest.importorskip("dask.array")
pytest.importorskip("psutil", reason="comes with the extra dask")

from benchmarks import soak
from benchmarks.fuzz import __main__ as fuzz
from benchmarks.fuzz import checks


def test_a_short_run_of_the_fuzzer_finds_nothing(capsys):
    status = fuzz.main(["--seed", "2026", "--cases", "40", "--minutes", "5", "--most", "tiny"])
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize("number", range(3))
def test_the_fuzzer_finds_a_wrong_label_and_says_how_to_repeat_it(number, capsys, monkeypatch):
    """An oracle that is wrong stands for a core that is."""
    right = checks.oracle.labels
    monkeypatch.setattr(checks.oracle, "labels", lambda *given: right(*given) + 1)
    assert fuzz.main(["--seed", "5", "--first", str(number), "--cases", "1", "--most", "tiny"]) == 1
    assert f"make(5, {number}, 'tiny')" in capsys.readouterr().out


def test_a_short_soak_finds_nothing():
    assert soak.watch(["predictions"], 0.5, seed=0) == []
