"""The loss and its updates as plain loops: slow, obvious, and right by inspection."""

import math

import numpy as np


def is_gap(value, missing=math.nan):
    return math.isnan(value) or value == missing


def row_loss(row, center, lam, reference):
    total = 0.0
    for x, mu, c in zip(row, center, reference, strict=True):
        total += lam * (mu - c) ** 2 if is_gap(x) else (x - mu) ** 2
    return total


def assign(X, centers, lam, reference):
    """Labels and the loss of each row."""
    labels, losses = [], []
    for row in X:
        costs = [row_loss(row, center, lam, reference) for center in centers]
        labels.append(int(np.argmin(costs)))
        losses.append(min(costs))
    return np.array(labels), np.array(losses)


def update(X, labels, centers, lam, reference, weights):
    """The centres that minimise the loss of a partition."""
    centers = np.array(centers, dtype=float)
    for l in range(len(centers)):
        for j in range(X.shape[1]):
            above, below = 0.0, 0.0
            for row, label, w in zip(X, labels, weights, strict=True):
                if label != l:
                    continue
                if is_gap(row[j]):
                    below += lam * w
                else:
                    above += w * (row[j] - reference[j])
                    below += w
            if below > 0:
                centers[l, j] = reference[j] + above / below
    return centers


def loss(X, labels, centers, lam, reference, weights):
    rows = zip(X, labels, weights, strict=True)
    return sum(w * row_loss(row, centers[label], lam, reference) for row, label, w in rows)


def lloyd(X, centers, lam, reference, weights, n_iter):
    """Centres and losses of n_iter iterations; empty clusters stay where they are."""
    path = []
    for _ in range(n_iter):
        labels, _ = assign(X, centers, lam, reference)
        centers = update(X, labels, centers, lam, reference, weights)
        path.append(loss(X, labels, centers, lam, reference, weights))
    return centers, np.array(path)
