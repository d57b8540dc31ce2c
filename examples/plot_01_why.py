"""
What missing small values do to k-means
=======================================

If small values are the ones that are missing, a method that ignores this puts centres where the
observed values are, too far from zero, and draws the wrong borders.
"""

# %%
# Three clusters of points. The closer a coordinate is to zero, the more likely it is missing.
# Points with a missing coordinate are drawn on the edge of the picture.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.impute import SimpleImputer

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import center_mse, clustering_error_rate

corners = [[0, 0], [4, 0], [2, 3.5]]
toy = make_gaussian_clusters(600, 2, corners, strength=0.5, random_state=4)
print(f"{np.isnan(toy.data).mean():.0%} of the values are missing")

# %%
# Four methods: fill with column means and run k-means; use only what is observed (``lam=0``,
# known as k-POD); fill with zeros and run k-means (``lam=1``); let missing values pull the
# centres towards zero with a strength chosen from the data.
filled = SimpleImputer().fit_transform(toy.data)
by_mean = KMeans(3, n_init=10, random_state=0).fit(filled)
by_kpod = MNARKMeans(3, lam=0, random_state=0).fit(toy.data)
by_zero = KMeans(3, n_init=10, random_state=0).fit(np.nan_to_num(toy.data))
ours = MNARKMeans(3, random_state=0).fit(toy.data)

# %%
# Crosses are the true centres, circles the ones found.
COLORS = np.array(["#0072B2", "#D55E00", "#009E73"])
EDGE = -4.2


def draw(ax, title, labels, centers):
    order = np.argsort(centers @ [1, 3])  # the same colour for the same corner
    colors = COLORS[np.argsort(order)[labels]]
    shown = np.where(np.isnan(toy.data), EDGE, toy.data)
    ax.scatter(*shown.T, c=colors, s=9, alpha=0.6, linewidths=0)
    ax.scatter(*toy.centers.T, marker="x", c="black", s=90, linewidths=2, zorder=3)
    ax.scatter(*centers.T, marker="o", facecolors="none", edgecolors="black", s=150, linewidths=2)
    ax.set(title=title, xlim=(EDGE - 0.5, 7.5), ylim=(EDGE - 0.5, 7.5), xticks=[], yticks=[])
    ax.set_aspect("equal")


fig, axes = plt.subplots(1, 4, figsize=(12, 3.7), layout="constrained")
found_by = {"column means": by_mean, "k-POD": by_kpod, "zeros": by_zero, "MNARKMeans": ours}
for ax, (name, found) in zip(axes, found_by.items(), strict=True):
    cer = clustering_error_rate(toy.target, found.labels_)
    miss = center_mse(toy.centers, found.cluster_centers_)
    draw(ax, f"{name}\nerror of centres {miss:.2f}", found.labels_, found.cluster_centers_)
    print(f"{name:24s} CER {cer:.3f}   error of the centres {miss:.2f}")
plt.show()

# %%
# What matters most is to treat a missing value as close to zero. Filling with zeros does that too,
# and its labels are about as good.
