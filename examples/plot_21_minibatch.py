"""
Rows that arrive in batches
===========================

:class:`mnarkmeans.MiniBatchMNARKMeans` learns from one batch after the other, gaps and all, and
never needs the whole table.
"""

# %%
import matplotlib.pyplot as plt

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import center_mse

toy = make_gaussian_clusters(30_000, 3, 3, separation=4, fraction=0.3, random_state=0)
whole = MNARKMeans(3, lam=0.7, random_state=0).fit(toy.data)

# %%
# Feed 300 rows at a time and watch the centres settle.
model = MiniBatchMNARKMeans(3, lam=0.7, random_state=0)
seen, errors = [], []
for first in range(0, 15_000, 300):
    model.partial_fit(toy.data[first : first + 300])
    seen.append(model.n_rows_seen_)
    errors.append(center_mse(toy.centers, model.cluster_centers_))

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(seen, errors, ".-", color="#0072B2", label="batches of 300 rows")
ax.axhline(
    center_mse(toy.centers, whole.cluster_centers_), color="#D55E00", ls="--", label="all at once"
)
ax.set(xlabel="rows seen", ylabel="error of the centres", ylim=0)
ax.legend()
plt.show()
