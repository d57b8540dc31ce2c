"""
Rows that live elsewhere: Dask
==============================

``mnarkmeans.dask.MNARKMeans`` sends the centres to the blocks and brings small sums back. It is the
same step as in memory, so the result is the same for the same start.
"""

# %%
# A Dask array of blocks; with ``dask.distributed`` they would lie on other machines.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans import MNARKMeans
from mnarkmeans.dask import MNARKMeans as DaskMNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters

toy = make_gaussian_clusters(20_000, 4, 3, separation=4, fraction=0.3, random_state=0)
blocks = da.from_array(toy.data, chunks=(5_000, 4))
start = np.vstack([np.zeros(4), 3 * np.eye(4)[:2]])

# %%
here = MNARKMeans(3, lam=0.5, init=start, algorithm="lloyd").fit(toy.data)
there = DaskMNARKMeans(3, lam=0.5, init=start).fit(blocks)
print(
    "largest difference of the centres:",
    np.abs(here.cluster_centers_ - there.cluster_centers_).max(),
)

# %%
fig, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
ax.plot(range(1, here.n_iter_ + 1), here.loss_path_, lw=6, color="0.8", label="in memory")
ax.plot(
    range(1, there.n_iter_ + 1), there.loss_path_, "o-", color="#0072B2", label="Dask, 4 blocks"
)
ax.set(xlabel="iteration", ylabel="loss")
ax.legend()
plt.show()
