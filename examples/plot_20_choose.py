"""
Let the data choose: lam and the number of clusters
===================================================

:class:`mnarkmeans.MNARKMeansCV` chooses both; the number of clusters is the one whose clusters are
found again when rows are left out.
"""

# %%
# Three groups in two features that matter, among eight. Candidates for both numbers.
import matplotlib.pyplot as plt
import pandas as pd

from mnarkmeans import MNARKMeansCV
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import clustering_error_rate

toy = make_gaussian_clusters(240, 8, 3, separation=5, fraction=0.3, random_state=0)
search = MNARKMeansCV([2, 3, 4, 5], n_splits=6, n_init=5, random_state=0).fit(toy.data)
print(f"chosen: {search.n_clusters_} clusters, lam {search.lam_:.2f}")
print(f"CER {clustering_error_rate(toy.target, search.labels_):.3f}")

# %%
# ``cv_results_`` has a row per candidate, ``stability_`` the share of each cluster that is found
# again.
table = pd.DataFrame(search.cv_results_)
table.sort_values("rank_instability").head().round(3)

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.5), layout="constrained")
for k, part in table.groupby("param_n_clusters"):
    left.plot(part["param_lam"], part["mean_instability"], "o-", ms=4, label=f"k = {k}")
left.set_xscale("symlog", linthresh=0.1)
left.set(xlabel="lam", ylabel="instability", ylim=0, title="how much clusters change")
left.legend()
right.bar(range(search.n_clusters_), search.stability_, color="#0072B2")
right.set(xlabel="cluster", ylabel="found again", ylim=(0, 1), title="how stable each cluster is")
right.set_xticks(range(search.n_clusters_))
plt.show()
