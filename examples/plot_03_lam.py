"""
What lam does
=============

``lam`` is how strongly a missing value pulls its centre towards the reference. At 0 missing values
are ignored; at 1 they count as if the reference had been measured; above, they count for more.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import center_mse

toy = make_gaussian_clusters(900, 2, 3, separation=4, strength=1.0, random_state=0)
lams = np.r_[0, np.geomspace(0.05, 20, 15)]
fits = [MNARKMeans(3, lam=lam, random_state=0).fit(toy.data) for lam in lams]

# %%
# Each centre from ``lam=0`` (light) to ``lam=20`` (dark) moves towards zero. Somewhere on the way
# it passes the true centre.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.scatter(*toy.complete.T, s=5, c="0.85", linewidths=0)
for fit, shade in zip(fits, np.linspace(0.25, 1, len(fits)), strict=True):
    left.scatter(*fit.cluster_centers_.T, color=plt.cm.Blues(shade), s=28, zorder=3)
left.scatter(*toy.centers.T, marker="x", c="#D55E00", s=90, linewidths=2.5, zorder=4)
left.set(title="centres as lam grows (crosses: truth)", aspect="equal")

errors = [center_mse(toy.centers, fit.cluster_centers_) for fit in fits]
right.plot(lams, errors, "o-", color="#0072B2")
right.set_xscale("symlog", linthresh=0.05)
right.set(xlabel="lam", ylabel="error of the centres", title="between ignoring and exaggerating")

auto = MNARKMeans(3, lam="auto", random_state=0).fit(toy.data)
right.axvline(auto.lam_, color="#D55E00", ls="--")
right.annotate(f' lam="auto": {auto.lam_:.2f}', (auto.lam_, max(errors) * 0.9), color="#D55E00")
plt.show()
