"""
Scaling is fine, centring moves the reference
=============================================

Dividing a feature by its spread leaves zero where it was. Subtracting its mean does not: after
``StandardScaler`` the old zero lies somewhere else, and the reference has to go with it.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from mnarkmeans import MNARKMeans
from mnarkmeans.metrics import clustering_error_rate
from mnarkmeans.missingness import ampute

rng = np.random.default_rng(2)
k, p = 4, 30
centers = rng.exponential(2.0, size=(k, p)) * (rng.random((k, p)) < 0.4)
target = rng.integers(k, size=400)
complete = np.abs(centers[target] + rng.normal(size=(400, p)))
X = ampute(complete, "mnar0", fraction=0.5, rng=3)

# %%
# Three preparations of the same table.
scaler = StandardScaler().fit(X)
old_zero = scaler.transform(np.zeros((1, p)))[0]
runs = {
    "divided by the spread": (X / scaler.scale_, 0.0),
    "centred, reference left at 0": (scaler.transform(X), 0.0),
    "centred, reference moved along": (scaler.transform(X), old_zero),
}
errors = {}
for name, (table, reference) in runs.items():
    model = MNARKMeans(k, lam=0.5, reference=reference, random_state=0).fit(table)
    errors[name] = clustering_error_rate(target, model.labels_)
    print(f"{name:32s} CER {errors[name]:.3f}")

# %%
# Moving the reference along gives the result of not centring at all.
fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
ax.barh(list(errors), list(errors.values()), color=["#0072B2", "#D55E00", "#0072B2"])
ax.invert_yaxis()
ax.set(xlabel="clustering error rate", title="same data, three preparations")
plt.show()
