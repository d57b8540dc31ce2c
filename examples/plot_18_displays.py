"""
Ready-made plots
================

The classes of :mod:`mnarkmeans.displays` draw a fitted model in one line, on your own axes if you
pass them.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.displays import (
    CentersDisplay,
    ClustersDisplay,
    LossPathDisplay,
    MissingnessDisplay,
)

centers = np.random.default_rng(1).normal(scale=1.2, size=(4, 12))
toy = make_gaussian_clusters(300, 12, centers, fraction=0.35, random_state=0)
table = pd.DataFrame(toy.data, columns=[f"feature {j}" for j in range(12)])
model = MNARKMeans(4, random_state=0).fit(table)

# %%
# The centres, with the share missing behind each value; the rows in two dimensions; the missing
# rate against the magnitude; the loss after every iteration.
fig, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
CentersDisplay.from_estimator(model, table, ax=axes[0, 0])
ClustersDisplay.from_estimator(model, table, ax=axes[0, 1])
MissingnessDisplay.from_estimator(model, table, ax=axes[1, 0])
LossPathDisplay.from_estimator(model, ax=axes[1, 1])
plt.show()
