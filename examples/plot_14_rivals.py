"""
Other methods, side by side
===========================

:data:`mnarkmeans.baselines.BASELINES` holds the usual methods for tables with missing values, all
with the same interface.
"""

# %%
# The paper's setting with noise features: three groups that differ in two features of fifty, 30 %
# missing, three repetitions. The slower methods (MICE, FWPD, scImpute) are left out.
import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans import MNARKMeans
from mnarkmeans.baselines import BASELINES
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import clustering_error_rate

print("there are:", ", ".join(BASELINES))

# %%
# Filling with zero is ``lam=1``. 18 is the value that the paper used in this setting; far above 1,
# ``lam`` also suppresses noise features.
methods = {name: BASELINES[name] for name in ("zero", "mean", "knn", "kpod")}
methods["ours, lam=auto"] = lambda k, seed: MNARKMeans(k, random_state=seed)
methods["ours, lam=18"] = lambda k, seed: MNARKMeans(k, lam=18.0, random_state=seed)
errors = {name: [] for name in methods}
for seed in range(3):
    toy = make_gaussian_clusters(300, 50, 3, fraction=0.3, random_state=seed)
    for name, make in methods.items():
        labels = make(3, seed).fit_predict(toy.data)
        errors[name].append(clustering_error_rate(toy.target, labels))

for name, values in errors.items():
    print(f"{name:24s} mean CER {np.mean(values):.3f}")

# %%
fig, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
ax.boxplot(list(errors.values()), orientation="horizontal", tick_labels=list(errors))
ax.invert_yaxis()
ax.set(xlabel="clustering error rate, three repetitions", title="2 of 50 features matter")
plt.show()
