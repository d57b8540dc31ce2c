"""The page for R users, run by a real R, and the missing values of R."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, MNARKMeansCV, MNARMixture
from mnarkmeans.missingness import diagnose

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "r.md"
BLOCK = re.compile(
    r"(?P<skip><!-- not run: .+? -->\s*\n)?^```r\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<shown>.*?)^```)?",
    re.MULTILINE | re.DOTALL,
)
MARK = "---- end of block ----"


def unless_needed(reason: str):
    """Skips; where the test is there for R's sake (.ci/nightly r), it fails instead."""
    if os.environ.get("MNARKMEANS_NEEDS_R"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def rscript():
    program = shutil.which("Rscript")
    if program is None:
        unless_needed("R is not installed")
    for module in ("pandas", "typer"):
        pytest.importorskip(module)
    asked = [program, "-e", 'cat(as.character(packageVersion("reticulate")))']
    told = subprocess.run(asked, capture_output=True, text=True)
    if told.returncode:
        unless_needed("R has no reticulate")
    version = tuple(map(int, told.stdout.split(".")[:2]))
    if version < (1, 38) and np.__version__ >= "2":
        unless_needed(f"reticulate {told.stdout} does not know NumPy {np.__version__}")
    return program


def test_the_page_for_r_users_prints_what_it_shows(rscript, tmp_path):
    if not PAGE.exists():
        pytest.skip("the documentation is not part of this copy of the sources")
    blocks = [found for found in BLOCK.finditer(PAGE.read_text("utf8")) if not found["skip"]]
    assert len(blocks) > 4
    program = "\n".join(f'{found["code"]}\ncat("{MARK}\\n")' for found in blocks)
    (tmp_path / "page.R").write_text(program, "utf8")
    shutil.copy(PAGE.with_name("mnarkmeans.R"), tmp_path)
    done = subprocess.run(
        [rscript, "--vanilla", "page.R"], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"RETICULATE_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = [lines(part) for part in done.stdout.split(f"{MARK}\n")]
    for found, got in zip(blocks, printed, strict=False):
        assert got == lines(found["shown"] or ""), found["code"]


def lines(text: str) -> list[str]:
    """Without the spaces at their ends, of which R prints some."""
    return [line.rstrip() for line in text.strip().splitlines() if line.strip()]


# --- the gaps of R, without R -------------------------------------------------------------------

R_NA = np.array([0x7FF00000000007A2], dtype=np.uint64).view(np.float64)[0]


def with_gaps(mark):
    """A table with its gaps marked; R's NA is a NaN whose arithmetic the processor complains of."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) + 3 * rng.integers(3, size=(80, 1))
    gaps = rng.random(X.shape) < 0.25
    gaps[:, 0] = False
    X[gaps] = np.nan
    X.view(np.uint64)[gaps] = np.array([mark]).view(np.uint64)[0]
    return X


@pytest.mark.parametrize(
    "model",
    [
        MNARKMeans(3, random_state=0),
        MNARKMeans(3, reference="auto", random_state=0),
        MNARKMeans(3, lam=0.5, reference="min", init="random", random_state=0),
        MNARKMeansCV([2, 3], n_init=2, n_splits=3, random_state=0),
        MiniBatchMNARKMeans(3, random_state=0),
        MNARMixture(3, random_state=0),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::mnarkmeans.SelectionWarning")
def test_gaps_of_r_are_gaps_like_others(model):
    ours, theirs = clone(model).fit(with_gaps(np.nan)), clone(model).fit(with_gaps(R_NA))
    for name in ("cluster_centers_", "labels_", "means_", "weights_"):
        if hasattr(ours, name):
            np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))
    for method in ("predict", "impute", "score"):
        got, expected = (getattr(ours, method)(with_gaps(mark)) for mark in (R_NA, np.nan))
        np.testing.assert_array_equal(got, expected)


def test_a_look_at_the_gaps_of_r():
    said = [diagnose(with_gaps(mark)).to_frame() for mark in (R_NA, np.nan)]
    assert said[0].equals(said[1])
