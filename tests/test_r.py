"""The page for R users, run by a real R."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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


def lines(text):
    """Without the spaces at their ends, of which R prints some."""
    return [line.rstrip() for line in text.strip().splitlines() if line.strip()]
