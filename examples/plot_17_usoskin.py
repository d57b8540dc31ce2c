"""
Mouse neurons: where the reference sits
=======================================

The paper's single-cell data (Usoskin et al. 2015): 622 neurons of four kinds, zero counts are gaps.
The preparation of the table matters more than the exact ``lam``.

The data are read from the folder in ``MNARKMEANS_DATA``, or downloaded once.
"""

# %%
# "paper": every gene centred on the mean of its observed values. "log1p": logarithms, zero kept as
# the reference.
import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import load_usoskin
from mnarkmeans.metrics import clustering_error_rate

lams = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0]
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for preparation, color in [("paper", "#D55E00"), ("log1p", "#0072B2")]:
    cells = load_usoskin(preparation=preparation)
    errors = []
    for lam in lams:
        labels = MNARKMeans(4, lam=lam, random_state=0).fit_predict(cells.data)
        errors.append(clustering_error_rate(cells.target, labels))
    print(f"{preparation:6s}", np.round(errors, 3))
    ax.semilogx(lams, errors, "o-", color=color, label=f'preparation="{preparation}"')
ax.set(xlabel="lam", ylabel="clustering error rate", ylim=0)
ax.legend()
plt.show()
