"""What a type checker says to somebody who uses the package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mnarkmeans

pytest.importorskip("mypy")

SCRIPT = """
import numpy as np
from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, MNARKMeansCV, MNARMixture, load

X = np.zeros((3, 2))
model = MNARKMeans(3).fit(X)
reveal_type(model)  # MNARKMeans
reveal_type(model.labels_)  # ndarray
reveal_type(model.cluster_centers_)  # ndarray
reveal_type(model.inertia_)  # float
reveal_type(model.missingness_)  # Missingness
reveal_type(model.predict(X))  # ndarray
reveal_type(model.fit_predict(X))  # ndarray
reveal_type(model.impute(X))  # ndarray
reveal_type(MiniBatchMNARKMeans(3).partial_fit(X))  # MiniBatchMNARKMeans
reveal_type(MNARKMeansCV([2, 3]).fit(X).n_clusters_)  # int
reveal_type(MNARMixture(3).fit(X).means_)  # ndarray
reveal_type(load("folder"))  # MNARMixture
reveal_type(load("folder").predict(X))  # ndarray
MNARKMeans(3, algorithm="elkan")  # error
MNARKMeans(3, init="kmeans++")  # error
MNARMixture(3, mechanism="mnar")  # error
MNARKMeansCV(3, criterion="gap")  # error
"""


def test_results_have_types_and_unknown_choices_are_errors(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    parent = Path(mnarkmeans.__file__).parents[1]
    path = {} if parent.name == "site-packages" else {"MYPYPATH": str(parent)}
    options = ["--ignore-missing-imports", "--follow-imports=silent", "--no-error-summary"]
    said = subprocess.run(
        [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path}", str(script)],
        env={**os.environ, **path}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said_of = {int(line.split(":")[1]): line for line in said.stdout.splitlines()}
    for number, line in enumerate(SCRIPT.splitlines(), start=1):
        wanted = line.partition("  # ")[2]
        assert wanted in said_of.get(number, ""), (line, said.stdout, said.stderr)
        assert wanted == "error" or "error" not in said_of.get(number, "")
