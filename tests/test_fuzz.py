"""A short run of the fuzzer; ``python -m benchmarks.fuzz --minutes 60`` is a long one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "benchmarks").exists():
    pytest.skip("the benchmarks are not part of this copy of the sources", allow_module_level=True)
pytest.importorskip("dask.array")

from benchmarks.fuzz import __main__ as fuzz  # noqa: E402 - only where there are benchmarks
from benchmarks.fuzz import cases  # noqa: E402


def test_a_short_run_finds_nothing(capsys):
    status = fuzz.main(["--seed", "2026", "--cases", "40", "--minutes", "5", "--most", "tiny"])
    assert status == 0, capsys.readouterr().out


def test_the_same_seed_and_number_give_the_same_case():
    one, other = cases.make(3, 14), cases.make(3, 14)
    assert one.X.tobytes() == other.X.tobytes()
    assert one.describe() == other.describe()


@pytest.mark.parametrize("number", range(3))
def test_a_wrong_answer_is_found_and_reproduced(number, capsys, monkeypatch):
    """An oracle that is wrong in one row stands for a core that is."""
    from benchmarks.fuzz import checks

    right = checks.oracle.labels
    monkeypatch.setattr(checks.oracle, "labels", lambda *given: right(*given) + 1)
    assert fuzz.main(["--seed", "5", "--first", str(number), "--cases", "1", "--most", "tiny"]) == 1
    told = capsys.readouterr().out
    assert f"make(5, {number}, 'tiny')" in told
    assert "check(case" in told


def test_the_tests_that_the_page_of_promises_names_exist():
    page = (ROOT / "docs" / "guide" / "promises.md").read_text(encoding="utf8")
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", page)
    assert len(named) > 15
    for file, test in named:
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf8"), (file, test)
