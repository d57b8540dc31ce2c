"""What the choice of lam costs: in one fit (lam="auto"), by MNARKMeansCV, and as in the paper.

The authors' R/C++ is not run here: 12 times scikit-learn's KMeans with 100 starts, in the same run,
stands for its choice of lam.
"""

from __future__ import annotations

import warnings

import numpy as np

from mnarkmeans import MNARKMeans, MNARKMeansCV
from mnarkmeans.missingness import ampute

from .measured import Measured, best_in_turns

SHAPES = [(300, 50, 3), (10_000, 50, 5), (1_500, 1_000, 6), (150, 8_000, 4)]  # n, p, k
AUTHORS = 12  # x scikit-learn's n_init=100
LAMS = np.concatenate([[0.1], np.arange(2.0, 21.0, 2.0)])


def table(n: int, p: int, k: int) -> np.ndarray:
    """Clusters that differ in a fifth of the features, 30 % lost near zero, no empty row."""
    rng = np.random.default_rng(0)
    centers = np.zeros((k, p))
    centers[:, : p // 5] = rng.normal(scale=2.0, size=(k, p // 5))
    X = centers[rng.integers(k, size=n)] + rng.normal(size=(n, p))
    return ampute(X, "mnar0", fraction=0.3, rng=0)


def papers_table() -> np.ndarray:
    """The paper's design of Figure 3, k = 3: a triangle of side 3 in the first two features."""
    rng = np.random.default_rng(0)
    centers = np.zeros((3, 50))
    centers[:, :2] = [[0.0, 0.0], [3.0, 0.0], [1.5, 1.5 * np.sqrt(3.0)]]
    X = centers[rng.integers(3, size=300)] + rng.normal(size=(300, 50))
    return ampute(X, "mnar0", fraction=0.3, rng=0)


def papers_choice(X: np.ndarray) -> None:
    """11 candidates, 10 splits, 10 starts."""
    MNARKMeansCV(
        3, lams=LAMS, criterion="paper", n_splits=10, n_init=10, algorithm="lloyd", random_state=0
    ).fit(X)


def measure_papers(repeats: int, clock) -> list[Measured]:
    from sklearn.cluster import KMeans

    X = papers_table()
    filled = np.nan_to_num(X)
    contenders = {
        "ours": lambda: papers_choice(X),
        "theirs": lambda: KMeans(3, n_init=100, random_state=0).fit(filled),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the choice may fall on an end of the candidates
        best = best_in_turns(contenders, repeats, clock)
    return [
        Measured(
            "the paper's choice of lam, 300 x 50", best["ours"], AUTHORS * best["theirs"],
            f"{AUTHORS} x KMeans with 100 starts", 20, faster=True,
        )
    ]  # fmt: skip


def measure(repeats: int, clock, shapes=SHAPES) -> list[Measured]:
    """lam="auto" and MNARKMeansCV with its defaults, against one fit with lam fixed."""
    figures = []
    for n, p, k in shapes:
        X = table(n, p, k)
        contenders = {
            "fixed": lambda X=X, k=k: MNARKMeans(k, lam=0.5, reference=0.0, random_state=0).fit(X),
            "auto": lambda X=X, k=k: MNARKMeans(k, lam="auto", random_state=0).fit(X),
            "search": lambda X=X, k=k: MNARKMeansCV(k, random_state=0).fit(X),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = best_in_turns(contenders, repeats, clock)
        shape = f"{n:,} x {p:,}, k={k}"
        fixed = best["fixed"], "lam fixed"
        figures += [
            Measured(f'lam="auto", {shape}', best["auto"], *fixed, 8.0 if n * p <= 15_000 else 3.0),
            Measured(f"MNARKMeansCV, {shape}", best["search"], *fixed, 25.0),
        ]
    return figures
