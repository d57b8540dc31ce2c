"""
Does the choice matter?
=======================

Clusters change with the number of them and with the penalty. One picture shows which rows go where,
and what makes the clusters that stay.
"""

# %%
# Four groups in eight features, a third of the values lost near zero.
import matplotlib.pyplot as plt

from mnarkmeans import MNARKMeansCV
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.displays import FlowDisplay
from mnarkmeans.metrics import cluster_markers

toy = make_gaussian_clusters(300, 8, 4, separation=5, fraction=0.35, random_state=0)
search = MNARKMeansCV([2, 3, 4, 5], n_splits=6, n_init=5, random_state=0).fit(toy.data)
print(f"chosen: k = {search.n_clusters_}, lam = {search.lam_:.2g}")

# %%
# Left: the chosen number of clusters and its neighbours. Right: the same number with other
# penalties. Straight ribbons are rows that stay together whatever one chooses.
fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
FlowDisplay.from_estimator(search, toy.data, along="k", ax=axes[0])
FlowDisplay.from_estimator(search, toy.data, along="lam", ax=axes[1])
plt.show()

# %%
# The features that make each cluster, by value or by gaps: here the first two, as they should.
for cluster, feature, direction in zip(
    *(cluster_markers(toy.data, search.labels_, top=2)[name] for name in
      ("cluster", "feature", "direction")), strict=True,
):  # fmt: skip
    print(f"cluster {cluster}: {feature} {direction}")
