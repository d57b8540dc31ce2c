"""
First steps: fit, predict, fill
===============================

The estimator looks like scikit-learn's ``KMeans`` and takes tables with gaps as they are.
"""

# %%
# A small table with names. ``NaN`` marks a gap.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters

toy = make_gaussian_clusters(
    90, 4, [[5, 5, 0, 0], [0, 5, 5, 0], [0, 0, 5, 5]], fraction=0.35, random_state=1
)
table = pd.DataFrame(toy.data, columns=["north", "east", "south", "west"])
table.head().round(1)

# %%
# Fit, and look at the centres.
model = MNARKMeans(n_clusters=3, random_state=0).fit(table)
pd.DataFrame(model.cluster_centers_, columns=table.columns).round(2)

# %%
# New rows may have gaps too.
new = pd.DataFrame([[4.8, np.nan, np.nan, np.nan]], columns=table.columns)
print("cluster:", model.predict(new)[0])
model.impute(new).round(2)

# %%
# Before and after filling, rows sorted by cluster. Gaps stay white on the left.
order = np.argsort(model.labels_, kind="stable")
fig, axes = plt.subplots(1, 2, figsize=(7, 4), sharey=True, layout="constrained")
for ax, values, title in zip(
    axes, [table, model.impute(table)], ["as measured", "filled from the centres"], strict=True
):
    image = ax.imshow(values.iloc[order], aspect="auto", cmap="viridis", interpolation="none")
    ax.set(title=title, xticks=range(4), xticklabels=table.columns)
axes[0].set_ylabel("rows, sorted by cluster")
fig.colorbar(image, ax=axes, label="value")
plt.show()
