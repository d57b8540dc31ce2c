"""24 cases computed with the authors' code: the loss after every iteration, the final centres."""

from pathlib import Path

import numpy as np
import pytest

from mnarkmeans import MNARKMeans

GOLDEN = np.load(Path(__file__).parent / "data" / "golden_lloyd.npz")
CASES = sorted({name.split("_")[0] for name in GOLDEN.files})


def test_there_are_24_cases():
    assert len(CASES) == 24


@pytest.mark.parametrize("case", CASES)
def test_loss_path_and_centers_of_the_authors_code(case):
    X, init, centers, path, lam = (
        GOLDEN[f"{case}_{part}"] for part in ("x", "init", "centers", "path", "lam")
    )
    model = MNARKMeans(
        len(init), lam=float(lam), init=init, max_iter=100, tol=1e-5, algorithm="lloyd"
    ).fit(X)
    np.testing.assert_allclose(model.loss_path_, path, rtol=1e-9)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=0, atol=1e-9)
