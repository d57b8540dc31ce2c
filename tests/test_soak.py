"""The soak's own judgement: what counts as growth, a wrong answer and a file left behind."""

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of the package")
pytest.importorskip("psutil", reason="comes with the extra dask")

from benchmarks.soak import figures, watch, work
from benchmarks.soak.__main__ import replace_figures


def test_memory_that_grows_is_told_and_warming_up_is_not_growth():
    warm = [10, 90, 100, 101, 100, 99, 101, 100]
    assert figures.is_flat(warm, 0.05, 0)
    seen = figures.Seen("fits", 8, 8, [int(1e9 + 5e7 * i) for i in range(8)], warm)
    assert seen.problems == ["fits: memory grew by 200 MB"]


def test_work_that_never_ends_a_turn_is_told():
    assert figures.Seen("fits").problems == ["fits: not one turn was finished"]


def test_a_short_run_compares_answers_and_leaves_nothing():
    (seen,), left = watch.watch(["predictions"], 0.5, seed=0)
    assert not seen.trouble
    assert seen.compared == seen.turns * work.Predictions.QUESTIONS > 0
    assert left == []


def test_a_wrong_answer_is_found():
    with work.Predictions(0) as asked:
        asked.answers["predict"] = asked.answers["predict"][::-1]
        asked.answers = {"predict": asked.answers["predict"]}
        with pytest.raises(work.Wrong, match="predict of"):
            asked.turn()


def test_what_a_killed_worker_could_not_take_away_is_no_file_left_behind(tmp_path):
    pytest.importorskip("distributed")
    place = tmp_path / "tmp" / "dask-scratch-space"
    (place / "worker-killed" / "storage").mkdir(parents=True)
    for name in ("worker-killed.dirlock", "worker-killed/storage/piece", "ours.tmp"):
        (place / name).touch()
    assert watch.left_behind(tmp_path) == ["tmp/dask-scratch-space/ours.tmp"]
    assert not (place / "worker-killed").exists()


def test_a_lock_of_a_worker_that_lives_is_left_behind(tmp_path):
    """It should have ended before the count."""
    diskutils = pytest.importorskip("distributed.diskutils")
    place = tmp_path / "dask-scratch-space"
    living = diskutils.WorkSpace(str(place)).new_work_dir(name="worker-living")
    try:
        assert watch.left_behind(tmp_path) == ["dask-scratch-space/worker-living.dirlock"]
    finally:
        living.release()
    assert watch.left_behind(tmp_path) == []


def test_figures_of_a_page_are_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Before\n\n<!-- figures -->\nold\n<!-- end of figures -->\nAfter\n")
    replace_figures(page, ["new"])
    replace_figures(page, ["newer"])
    assert page.read_text() == (
        "Before\n\n<!-- figures -->\n\nnewer\n\n<!-- end of figures -->\nAfter\n"
    )
