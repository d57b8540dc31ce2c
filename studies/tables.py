"""Real tables with known groups and real missing values, from a folder of .npz files.

Each file holds x (rows x features, NaN where missing), y (groups) and reference (what a careful
user would give: zero, min, or auto where nobody can know). The folder is MNARKMEANS_DATA/real or,
beside the repository, ../shared/data/real.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mnarkmeans.datasets import load_usoskin
from studies.designs import Data, Design

CELLS = ("rnamix_celseq2", "sc_celseq2_5cl_p3", "sc_celseq2", "camp", "mecs")


def folder() -> Path:
    named = os.environ.get("MNARKMEANS_DATA")
    found = Path(named) / "real" if named else Path(__file__).parents[2] / "shared/data/real"
    if not found.is_dir():
        raise FileNotFoundError(f"no folder {found}; set MNARKMEANS_DATA to the one above real/")
    return found


def real() -> Iterator[Design]:
    for file in sorted(folder().glob("*.npz")):
        with np.load(file) as content:
            X, groups = content["x"].astype(float), content["y"]
            reference = str(content["reference"])
        classes = np.unique(groups, return_inverse=True)[1]
        data = Data(X, classes)
        group = "real cells" if file.stem in CELLS else "real others"
        given = 0.0 if reference == "zero" else reference
        yield Design(group, file.stem, int(classes.max()) + 1, lambda _, data=data: data, given)


def usoskin() -> Iterator[Design]:
    for preparation in ("log1p", "paper"):
        bunch = load_usoskin(folder().parent, preparation=preparation)
        data = Data(np.asarray(bunch.data, dtype=float), np.asarray(bunch.target))
        yield Design("usoskin", preparation, 4, lambda _, data=data: data)
