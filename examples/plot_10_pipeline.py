"""
In a scikit-learn pipeline
==========================

``transform`` gives the distance of each row to each centre: complete features, computed from a
table with missing values, that any classifier can use.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from mnarkmeans import MNARKMeans
from mnarkmeans.missingness import ampute

X, y = load_wine(return_X_y=True)
lowest = X.min(axis=0)

# %%
# ``MaxAbsScaler`` divides only, so the zero of the table stays where it is.
ours = make_pipeline(
    MaxAbsScaler(),
    MNARKMeans(12, reference="min", lam=0.5, n_init=3, random_state=0),
    StandardScaler(),
    LogisticRegression(max_iter=1000),
)
least = make_pipeline(
    SimpleImputer(strategy="constant", fill_value=0),  # on X - lowest: the least value of each
    StandardScaler(),
    LogisticRegression(max_iter=1000),
)
means = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000))
ours  # noqa: B018

# %%
# Accuracy by five-fold cross-validation as more and more low values go missing.
fractions = [0.1, 0.3, 0.5]
scores = {"distances to centres": [], "column means": [], "least values": []}
for fraction in fractions:
    gappy = ampute(X, "mnar2", fraction=fraction, reference=lowest, rng=0) - lowest
    for name, model in zip(scores, [ours, means, least], strict=True):
        scores[name].append(cross_val_score(model, gappy, y, cv=5).mean())

fig, ax = plt.subplots(figsize=(5.8, 3.4), layout="constrained")
for (name, values), color in zip(scores.items(), ["#0072B2", "#D55E00", "#009E73"], strict=True):
    ax.plot(np.array(fractions) * 100, values, "o-", color=color, label=name)
ax.set(xlabel="missing, %", ylabel="accuracy", ylim=(0, 1.02), title="wine, three kinds")
ax.legend()
plt.show()

# %%
# If all you want is to classify, filling with the smallest value does better here: it keeps all
# thirteen features. Use distances when you want the clusters as well, or few features out of many.
