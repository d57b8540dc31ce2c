"""
Which reference? A detection limit
==================================

The reference is the value near which measurements go missing. For counts that is zero. For log2
intensities around 25 it is certainly not: there, values go missing below a detection limit.
"""

# %%
# Twelve proteins in 150 samples of three groups; values near the detection limit of their protein
# may be missing.
import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans import MNARKMeans
from mnarkmeans.metrics import clustering_error_rate
from mnarkmeans.missingness import ampute

rng = np.random.default_rng(0)
profiles = 24 + 1.3 * rng.normal(size=(3, 12))
kind = np.repeat([0, 1, 2], 50)
complete = profiles[kind] + 1.4 * rng.normal(size=(150, 12))
limit = complete.min(axis=0)
X = ampute(complete, "mnar0", fraction=0.4, reference=limit, rng=1)

# %%
# The same data, three references. ``"min"`` is the smallest observed value of each feature.
results = {}
for name, reference in [("0", 0.0), ("column mean", np.nanmean(X, axis=0)), ("min", "min")]:
    model = MNARKMeans(3, lam=0.5, reference=reference, random_state=0).fit(X)
    results[name] = clustering_error_rate(kind, model.labels_)
    print(f"reference {name:12s} CER {results[name]:.3f}")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
lost = np.isnan(X[:, 0])
bins = np.linspace(complete[:, 0].min(), complete[:, 0].max(), 25)
left.hist([complete[lost, 0], complete[~lost, 0]], bins, stacked=True, color=["#D55E00", "0.75"])
left.legend(["lost", "measured"])
left.set(xlabel="log2 intensity of the first protein", ylabel="samples", title="missing values")
right.barh(list(results), list(results.values()), color=["0.75", "0.75", "#0072B2"])
right.set(xlabel="clustering error rate", title="the effect of the reference")
plt.show()
