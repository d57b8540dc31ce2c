"""
When not to use it
==================

If values go missing for reasons that have nothing to do with their size, gaps say nothing, and a
method that listens to them hears voices. A ``lam`` near zero is then the right setting.
"""

# %%
# The same three groups lose 40 % of their values in two ways: completely at random, and near zero.
import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import center_mse

lams = np.r_[0, np.geomspace(0.05, 5, 10)]
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for mechanism, color in [("mcar", "#D55E00"), ("mnar0", "#0072B2")]:
    toy = make_gaussian_clusters(
        1500, 2, 3, separation=4, mechanism=mechanism, fraction=0.4, random_state=0
    )
    errors = []
    for lam in lams:
        model = MNARKMeans(3, lam=lam, random_state=0).fit(toy.data)
        errors.append(center_mse(toy.centers, model.cluster_centers_))
    auto = MNARKMeans(3, lam="auto", random_state=0).fit(toy.data)
    ax.plot(lams, errors, "o-", color=color, label=f"{mechanism} (auto chose {auto.lam_:.2f})")
ax.set_xscale("symlog", linthresh=0.05)
ax.set(xlabel="lam", ylabel="error of the centres")
ax.legend()
plt.show()
