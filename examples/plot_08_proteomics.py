"""
Proteomics: a heatmap that shows what is missing
================================================

Label-free log2 intensities. Scarce proteins are detected in some samples only; in which ones is
informative.
"""

# %%
# A simulated table: 36 samples of three groups, 40 proteins, detection fading out below 22.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mnarkmeans import MNARKMeans
from mnarkmeans.metrics import clustering_error_rate

rng = np.random.default_rng(5)
kind = np.repeat([0, 1, 2], 12)
base = rng.normal(23.5, 1.5, size=40)
profiles = base + 1.6 * rng.normal(size=(3, 40)) * (rng.random(40) < 0.6)
complete = profiles[kind] + rng.normal(scale=0.9, size=(36, 40))
detected = rng.random(complete.shape) < 1 / (1 + np.exp(-2.5 * (complete - 22)))
samples = [f"sample{i:02d}" for i in range(36)]
table = pd.DataFrame(np.where(detected, complete, np.nan), index=samples)
table.columns = [f"P{j:05d}" for j in range(40)]

# %%
# Drop proteins that are rarely detected, then cluster with each protein's smallest observed value
# as the reference.
table = table.loc[:, table.notna().mean() >= 0.25]
model = MNARKMeans(3, reference="min", random_state=0).fit(table)
print(f"{table.isna().to_numpy().mean():.0%} missing in {table.shape[1]} proteins")
of_proteins = ", ".join(f"{lam:.2g}" for lam in np.unique(model.lam_))
print(f"lam {of_proteins}, CER {clustering_error_rate(kind, model.labels_):.3f}")

# %%
# Rows by cluster, proteins by mean. Grey is missing, and stays missing.
rows = np.argsort(model.labels_, kind="stable")
columns = table.mean().sort_values(ascending=False).index
cmap = plt.cm.viridis.with_extremes(bad="0.85")
fig, ax = plt.subplots(figsize=(8.5, 4.6), layout="constrained")
image = ax.imshow(table[columns].iloc[rows], aspect="auto", cmap=cmap, interpolation="none")
for edge in np.flatnonzero(np.diff(model.labels_[rows])) + 0.5:
    ax.axhline(edge, color="white", lw=3)
ax.set(xlabel="proteins, from abundant to rare", ylabel="samples, by cluster", yticks=[])
fig.colorbar(image, label="log2 intensity")
plt.show()
