"""
How many clusters? Indices that accept gaps
===========================================

scikit-learn's silhouette, Calinski-Harabasz and Davies-Bouldin indices refuse ``NaN``. The ones in
:mod:`mnarkmeans.metrics` take the table as it is.
"""

# %%
import matplotlib.pyplot as plt

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import calinski_harabasz_score, davies_bouldin_score, silhouette_score

toy = make_gaussian_clusters(400, 2, 4, separation=5, fraction=0.2, random_state=0)
ks = range(2, 8)
models = [MNARKMeans(k, lam=0.5, random_state=0).fit(toy.data) for k in ks]

# %%
# Four groups were made. The first two indices should be large, the last one small.
indices = {
    "silhouette": silhouette_score,
    "Calinski-Harabasz": calinski_harabasz_score,
    "Davies-Bouldin (small is good)": davies_bouldin_score,
}
fig, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for ax, (name, index) in zip(axes, indices.items(), strict=True):
    ax.plot(ks, [index(toy.data, model) for model in models], "o-", color="#0072B2")
    ax.axvline(4, color="0.8", zorder=0)
    ax.set(title=name, xlabel="number of clusters")
plt.show()
