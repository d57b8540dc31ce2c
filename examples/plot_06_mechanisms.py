"""
Five ways to lose a value
=========================

:func:`mnarkmeans.missingness.ampute` makes gaps on purpose, to see how a method copes. Three of
its mechanisms are the paper's: the closer to the reference, the likelier the loss.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from mnarkmeans.missingness import ampute

rng = np.random.default_rng(0)
X = rng.normal(size=(40_000, 2))

# %%
# Ask for 30 % of gaps from each, and count what was lost at which value.
edges = np.linspace(-3, 3, 31)
middle = (edges[1:] + edges[:-1]) / 2
fig, axes = plt.subplots(1, 5, figsize=(11, 2.6), sharey=True, layout="constrained")
for ax, name in zip(axes, ["mcar", "mar", "mnar0", "mnar1", "mnar2"], strict=True):
    lost = np.isnan(ampute(X, name, fraction=0.3, rng=0)[:, 1])
    where = np.digitize(X[:, 1], edges) - 1
    share = [lost[where == b].mean() for b in range(len(middle))]
    ax.fill_between(middle, share, step="mid", color="#0072B2", alpha=0.35)
    ax.step(middle, share, where="mid", color="#0072B2")
    ax.set(title=name, xlabel="value")
axes[0].set(ylabel="share lost", ylim=(0, 1.02))
plt.show()

# %%
# ``mcar`` and ``mar`` do not look at the value itself: for them the honest answer is a ``lam``
# near zero. For the three on the right, gaps carry information.
