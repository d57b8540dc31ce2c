"""
Sparse tables: you pay for what is there
========================================

In a sparse matrix what is not stored is missing, and costs nothing. Stored zeros are measured
zeros.
"""

# %%
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from mnarkmeans import MNARKMeans

rng = np.random.default_rng(0)
shares = [0.02, 0.04, 0.08, 0.16]
init = rng.exponential(size=(6, 500))


def seconds(X):
    """Per iteration, the best of three, after one that warms up."""
    model = MNARKMeans(6, lam=0.3, init=init, max_iter=10, tol=0, algorithm="lloyd", n_jobs=1)
    model.fit(X)
    taken = []
    for _ in range(3):
        start = perf_counter()
        model.fit(X)
        taken.append((perf_counter() - start) / model.n_iter_)
    return min(taken)


# %%
# The same number of rows and columns, more and more of it stored. Time per iteration grows in step
# with the stored entries.
times = [seconds(sparse.random(10_000, 500, share, format="csr", rng=1)) for share in shares]

fig, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
ax.plot(np.array(shares) * 100, np.array(times) * 1e3, "o-", color="#0072B2")
ax.set(xlabel="stored entries, %", ylabel="milliseconds per iteration", xlim=0, ylim=0)
ax.set_title("10,000 x 500, one thread")
plt.show()
