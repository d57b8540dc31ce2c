"""Draw docs/_static/why.png: the same points seen by four methods, and how far each is off.

Three Gaussian clusters on a triangle; the closer a coordinate lies to zero, the likelier it is
missing (the setting of Figure 1 of the paper). Run: python docs/why.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import confusion_matrix

from mnarkmeans import MNARKMeans
from mnarkmeans.metrics import center_mse
from mnarkmeans.missingness import ampute

COLORS = np.array(["#0072B2", "#E69F00", "#009E73"])
SIDE = 4.0
TRIANGLE = np.array([[0, 0], [SIDE, 0], [SIDE / 2, SIDE * np.sqrt(3) / 2]])


def matched(target, labels):
    """The labels with the names that agree best with the target."""
    table = confusion_matrix(target, labels)
    rows, columns = linear_sum_assignment(-table)
    names = np.empty(len(table), int)
    names[columns] = rows
    return names[labels]


def main():
    rng = np.random.default_rng(0)
    target = rng.integers(3, size=600)
    complete = TRIANGLE[target] + rng.normal(size=(600, 2))
    X = ampute(complete, "mnar0", strength=1.0, rng=rng)
    keep = ~np.isnan(X).all(axis=1)
    X, complete, target = X[keep], complete[keep], target[keep]
    mean_filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    zero_filled = np.nan_to_num(X)
    methods = {
        "k-means, gaps filled with means": KMeans(3, n_init=100, random_state=0).fit(mean_filled),
        "k-POD: gaps ignored": MNARKMeans(3, lam=0.0, n_init=100, random_state=0).fit(X),
        "k-means, gaps filled with 0": KMeans(3, n_init=100, random_state=0).fit(zero_filled),
        "mnarkmeans": MNARKMeans(3, n_init=100, random_state=0).fit(X),
    }
    figure, axes = plt.subplots(1, 4, figsize=(14, 4.4), sharex=True, sharey=True)
    for ax, (name, model) in zip(axes, methods.items(), strict=True):
        labels = matched(target, model.labels_)
        wrong = labels != target
        ax.axhline(0, color="0.85", lw=0.8, zorder=0)
        ax.axvline(0, color="0.85", lw=0.8, zorder=0)
        ax.scatter(*complete[~wrong].T, c=COLORS[target[~wrong]], s=9, alpha=0.6, lw=0)
        ax.scatter(*complete[wrong].T, c="black", s=14, marker="x", lw=0.9)
        ax.scatter(*TRIANGLE.T, marker="o", s=120, fc="none", ec="black", lw=1.2)
        ax.scatter(*model.cluster_centers_.T, marker="P", s=110, c="white", ec="black", lw=1.2)
        error = center_mse(TRIANGLE, model.cluster_centers_)
        ax.set_title(
            f"{name}\n{wrong.sum()} of {len(target)} points wrong, centres off by {error:.2f}",
            fontsize=10,
        )
        ax.set_aspect("equal")
        print(f"{name}: {wrong.sum()} of {len(target)} wrong, centre error {error:.3f}")
    share = np.isnan(X).mean()
    figure.supxlabel(
        f"{share:.0%} of the values are missing, the likelier the closer they lie to zero; drawn "
        "where they truly are.\n○ true centre   ✚ centre found   × wrong cluster   "
        "(centre error: sum of squared distances)",
        fontsize=9.5, fontfamily="DejaVu Sans",
    )  # fmt: skip
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "_static" / "why.png", dpi=150)


if __name__ == "__main__":
    main()
