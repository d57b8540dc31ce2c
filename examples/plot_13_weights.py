"""
Weights: rows that count more, or less
======================================

Weight 2 is the row twice; weight 0 is the row left out. A frequent use: one sample was measured
many times and should not count many times.
"""

# %%
# Three groups, but the first row of the third group was measured 200 times over.
import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters

toy = make_gaussian_clusters(240, 2, 3, separation=4, fraction=0.2, random_state=3)
complete = ~np.isnan(toy.data).any(axis=1)
first = np.flatnonzero((toy.target == 2) & complete)[0]
repeats = toy.data[first] + 0.05 * np.random.default_rng(0).normal(size=(200, 2))
X = np.vstack([toy.data, repeats])
weights = np.r_[np.ones(len(toy.data)), np.full(200, 1 / 200)]

# %%
# Without weights the repeats pull a centre to themselves.
fig, axes = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True, layout="constrained")
for ax, weight, title in zip(
    axes, [None, weights], ["every row counts 1", "200 repeats count 1 together"], strict=True
):
    model = MNARKMeans(3, lam=0.5, random_state=0).fit(X, sample_weight=weight)
    ax.scatter(*np.nan_to_num(X).T, c=model.labels_, cmap="Set2", s=12)
    ax.scatter(*model.cluster_centers_.T, facecolors="none", edgecolors="black", s=140, lw=2)
    ax.scatter(*toy.centers.T, marker="x", c="black", s=70)
    ax.set(title=title, aspect="equal")
plt.show()
