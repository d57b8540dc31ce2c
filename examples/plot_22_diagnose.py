"""
Describe what is missing first
==============================

:func:`mnarkmeans.missingness.diagnose` describes where values are missing, and says what to try. It
is a description, not a test.
"""

# %%
# The same clusters, with values missing in three ways: near zero, by chance, and above the range of
# the instrument.
import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.missingness import ampute, diagnose

complete = make_gaussian_clusters(600, 5, 3, separation=4, mechanism=None, random_state=0).complete
lost = {
    "near zero": ampute(complete, "mnar0", fraction=0.3, rng=0),
    "by chance": ampute(complete, "mcar", fraction=0.3, rng=0),
    "when large": np.where(np.abs(complete) > 3, np.nan, complete),
}
found = {name: diagnose(X) for name, X in lost.items()}

# %%
# The whole text for the first; a sentence for each.
print(found["near zero"])

# %%
for name, diagnosis in found.items():
    print(f"lost {name}: {diagnosis.kind}. {diagnosis.advice[0]}")

# %%
# Share of missing values by the observed mean of each feature in each cluster.
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for (name, diagnosis), color in zip(found.items(), ["#0072B2", "0.5", "#D55E00"], strict=True):
    share = 100 * diagnosis.curve.missing_share
    ax.plot(diagnosis.curve.mean, share, "o-", ms=4, color=color, label=f"missing {name}")
ax.set(xlabel="observed mean of cluster and feature", ylabel="missing, %", ylim=(0, 100))
ax.legend()
plt.show()
