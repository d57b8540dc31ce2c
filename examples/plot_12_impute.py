"""
Imputing from centres
=====================

``impute`` fills a missing value from the centre of the row's cluster. The centres take into account
that small values are missing, so the filled values are less biased upwards than those of other
imputers.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters

rng = np.random.default_rng(0)
centers = rng.normal(scale=2.0, size=(4, 8))
toy = make_gaussian_clusters(400, 8, centers, strength=0.7, random_state=0)
gaps = np.isnan(toy.data)

filled = {
    "column means": SimpleImputer().fit_transform(toy.data),
    "10 nearest rows": KNNImputer(n_neighbors=10).fit_transform(toy.data),
    "zeros": np.nan_to_num(toy.data),
    "k-POD (lam=0)": MNARKMeans(4, lam=0, random_state=0).fit(toy.data).impute(toy.data),
    "MNARKMeans": MNARKMeans(4, random_state=0).fit(toy.data).impute(toy.data),
}

# %%
# How far the imputed values lie from the true ones (root mean square), and the distribution of
# the imputed values beside that of the true ones.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
error = [np.sqrt(np.mean((f[gaps] - toy.complete[gaps]) ** 2)) for f in filled.values()]
left.barh(list(filled), error, color=["0.75", "0.75", "0.75", "0.75", "#0072B2"])
left.invert_yaxis()
left.set(xlabel="root mean square error of filled values")
for (name, values), color in zip(
    filled.items(), ["0.7", "0.5", "#009E73", "#D55E00", "#0072B2"], strict=True
):
    right.plot(
        np.sort(np.abs(values[gaps])), np.linspace(0, 1, gaps.sum()), color=color, label=name
    )
truth = np.sort(np.abs(toy.complete[gaps]))
right.plot(truth, np.linspace(0, 1, gaps.sum()), "k--", label="true values")
right.set(xlabel="size of the values", ylabel="share of missing values below", xlim=(0, 4))
right.legend(fontsize=8)
plt.show()

# %%
# Zeros are closest here: values are missing *because* they were near zero, so zero is the best
# single guess, but it is the same guess for every group. Impute from centres for a heatmap or to
# keep groups apart; single imputed values are not accurate.
