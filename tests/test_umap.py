"""UMAP needs umap-learn and nothing else: coordinates come without a drawing."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

CODE = """
import numpy as np
from mnarkmeans._embedding import embed
X = np.random.default_rng(0).normal(size=(40, 4))
X[X > 1.5] = np.nan
found = embed(X, 0.5, method="umap")
assert found.points.shape == (40, 2)
assert np.isfinite(found.points).all()
assert found.axis_names == ("UMAP 1", "UMAP 2")
"""


@pytest.mark.skipif(find_spec("umap") is None, reason="umap-learn is not installed")
def test_two_coordinates_per_row_of_a_table_with_gaps():
    quick = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # compiling takes longer than 40 rows do
    subprocess.run([sys.executable, "-W", "ignore", "-c", CODE], env=quick, check=True)
