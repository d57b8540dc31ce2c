"""
Starts, moves and the loss
==========================

k-means ends in a local optimum; which one depends on the start. Moving single rows afterwards
(``algorithm="hartigan"``) never makes it worse, and often better.
"""

# %%
import matplotlib.pyplot as plt

from mnarkmeans import MNARKMeans
from mnarkmeans.datasets import make_gaussian_clusters

toy = make_gaussian_clusters(150, 30, 4, separation=4, fraction=0.5, random_state=0)
models = {
    name: MNARKMeans(4, lam=4.0, n_init=60, algorithm=name, random_state=0).fit(toy.data)
    for name in ("lloyd", "hartigan")
}

# %%
# ``start_losses_`` has the final loss of every start, ``loss_path_`` the way down of the best one.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
for (name, model), color in zip(models.items(), ["#D55E00", "#0072B2"], strict=True):
    left.plot(sorted(model.start_losses_), ".", color=color, label=name)
    right.plot(range(1, model.n_iter_ + 1), model.loss_path_, "o-", color=color, label=name)
left.set(xlabel="60 starts, sorted", ylabel="final loss")
right.set(xlabel="iteration of the best start", ylabel="loss")
left.legend()
plt.show()
