"""
Probabilities: a mixture
========================

Two overlapping clusters measured by an instrument that misses low values. The mixture chooses the
missingness mechanism and gives the probability of every cluster for every row.
"""

import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans import MNARMixture

rng = np.random.default_rng(0)
group = rng.integers(2, size=400)
X = np.where(group[:, None] == 1, 4.0, 2.0) + rng.normal(size=(400, 2))
X[X < 1.5] = np.nan
X = X[~np.isnan(X).all(axis=1)]

model = MNARMixture(2, random_state=0).fit(X)
print("what lost the values:", model.mechanism_)
print("means:", model.means_.round(2).tolist())

# %%
# Rows between the clusters are pale; missing values are drawn where the mixture expects them.

filled = model.impute(X)
sure = model.predict_proba(X).max(axis=1)
colours = np.array(["#0072b2", "#d55e00"])[model.predict(X)]
gaps = np.isnan(X).any(axis=1)
for rows, marker, label in ((~gaps, "o", "complete"), (gaps, "^", "with a missing value")):
    plt.scatter(
        *filled[rows].T, c=colours[rows], alpha=2 * sure[rows] - 1, marker=marker, label=label
    )
plt.legend()
plt.xlabel("first feature")
plt.ylabel("second feature")
plt.show()
