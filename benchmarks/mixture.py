"""What a round of EM costs: MNARMixture, GaussianMixture on the filled table, StepMix.

Every fit begins from the same means and takes a given number of rounds; the time of a few rounds
less that of one, divided by their number, is the time of a round, whatever the beginning costs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from mnarkmeans import MNARMixture

from .measured import Measured, best_in_turns

MORE = 8  # rounds beyond the first
MORE_OF_STEPMIX = 2


def table(n: int, p: int, k: int, missing: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping normal clusters, and their centres."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(k, p))
    X = centers[rng.integers(k, size=n)] + rng.normal(size=(n, p))
    X[rng.random(X.shape) < missing] = np.nan
    return X[~np.isnan(X).all(axis=1)], centers


def fitters(X: np.ndarray, centers: np.ndarray) -> dict[str, Callable[[int], object]]:
    """Name -> fit with so many rounds."""
    from sklearn.mixture import GaussianMixture

    k = len(centers)
    filled = np.nan_to_num(X)
    shared = {"means_init": centers, "tol": 0.0, "random_state": 0}
    plain = {"mechanism": "mcar", "variance_prior": 0.0, "temper": 1.0}
    return {
        "ours": lambda r: MNARMixture(k, max_iter=r, tails="normal", **plain, **shared).fit(X),
        "heavy": lambda r: MNARMixture(k, max_iter=r, tails="t", **plain, **shared).fit(X),
        "scikit-learn": lambda r: GaussianMixture(
            k, covariance_type="diag", init_params="random_from_data", max_iter=r, **shared
        ).fit(filled),
        "StepMix": lambda r: _stepmix(k, X, r),
    }


def _stepmix(k: int, X: np.ndarray, rounds: int) -> None:
    from stepmix import StepMix

    StepMix(
        k, measurement="gaussian_diag_nan", n_init=1, max_iter=rounds, abs_tol=0.0, rel_tol=0.0,
        verbose=0, progress_bar=0, random_state=0,
    ).fit(X)  # fmt: skip


def measure(repeats: int, clock, n: int = 100_000, p: int = 20, k: int = 5) -> list[Measured]:
    """A round of ours against a round of theirs."""
    X, centers = table(n, p, k)
    more = {name: MORE for name in ("ours", "heavy", "scikit-learn")} | {"StepMix": MORE_OF_STEPMIX}
    contenders = {}
    for name, fit in fitters(X, centers).items():
        contenders[f"{name}, one"] = lambda fit=fit: fit(1)
        contenders[f"{name}, more"] = lambda fit=fit, rounds=1 + more[name]: fit(rounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nobody converges in so few rounds
        best = best_in_turns(contenders, repeats, clock)
    rounds = {
        name: max(best[f"{name}, more"] - best[f"{name}, one"], 1e-9) / more[name] for name in more
    }
    shape = f"{n:,} x {p}, k={k}"
    return [
        Measured(f"a round of MNARMixture, {shape}", rounds["ours"], rounds["scikit-learn"],
                 "GaussianMixture (diag), filled", 1.0),
        Measured(f"a round of MNARMixture, {shape}", rounds["ours"], rounds["StepMix"], "StepMix",
                 20.0, faster=True),
        Measured(f'a round with tails="t", {shape}', rounds["heavy"], rounds["scikit-learn"],
                 "GaussianMixture (diag), filled"),
    ]  # fmt: skip
