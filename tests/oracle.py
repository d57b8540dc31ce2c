"""The loss and its updates as plain loops: slow, obvious, and right by inspection."""

import math

import numpy as np


def row_loss(row, center, lam, reference):
    total = 0.0
    for x, mu, pull, c in zip(row, center, np.broadcast_to(lam, len(row)), reference, strict=True):
        total += pull * (mu - c) ** 2 if math.isnan(x) else (x - mu) ** 2
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
    centers, lams = np.array(centers, dtype=float), np.broadcast_to(lam, X.shape[1])
    for l in range(len(centers)):
        for j in range(X.shape[1]):
            above, below = 0.0, 0.0
            for row, label, w in zip(X, labels, weights, strict=True):
                if label != l:
                    continue
                if math.isnan(row[j]):
                    below += lams[j] * w
                else:
                    above += w * (row[j] - reference[j])
                    below += w
            if below > 0:
                centers[l, j] = reference[j] + above / below
    return centers


def rescue(labels, losses, weights, k):
    """Each empty cluster takes the row that costs most, the first of equals, where others stay."""
    labels, losses = np.array(labels), np.array(losses)
    for l in range(k):
        members = [sum(w > 0 for w in weights[labels == m]) for m in range(k)]
        if members[l] > 0:
            continue
        best = -1
        for i, (label, cost) in enumerate(zip(labels, losses, strict=True)):
            spare = weights[i] > 0 and members[label] > 1 and cost > 0
            if spare and (best < 0 or cost > losses[best]):
                best = i
        if best >= 0:
            labels[best], losses[best] = l, 0.0
    return labels


def loss(X, labels, centers, lam, reference, weights):
    rows = zip(X, labels, weights, strict=True)
    return sum(w * row_loss(row, centers[label], lam, reference) for row, label, w in rows)


def lloyd(X, centers, lam, reference, weights, n_iter):
    """Centres and losses of n_iter iterations."""
    path = []
    for _ in range(n_iter):
        labels, losses = assign(X, centers, lam, reference)
        labels = rescue(labels, losses, weights, len(centers))
        centers = update(X, labels, centers, lam, reference, weights)
        path.append(loss(X, labels, centers, lam, reference, weights))
    return centers, np.array(path)


# --- the same in NumPy, bit for bit what the core promises, for tables that loops would take too
# --- long on


def distances(X, centers, lam, reference):
    """(n, k) float64: sums of direct differences, in the order of the features."""
    X, centers = np.asarray(X, np.float64), np.asarray(centers, np.float64)
    lam = np.broadcast_to(np.asarray(lam, np.float64), X.shape[1:])
    total = np.zeros((len(X), len(centers)))
    for j, mu in enumerate(centers.T):
        x = X[:, j, None]
        away = mu - reference[j]
        total += np.where(np.isnan(x), lam[j] * (away * away), (x - mu) * (x - mu))
    return total


def labels(X, centers, lam, reference):
    """The first of the nearest centres; rows without values: of those nearest to the reference."""
    X, centers = np.asarray(X, np.float64), np.asarray(centers, np.float64)
    nearest = np.argmin(distances(X, centers, lam, reference), axis=1)
    empty = np.isnan(X).all(axis=1)
    if empty.any():
        pull = np.broadcast_to(np.asarray(lam, np.float64), X.shape[1:])
        pull = pull if pull.any() else np.ones(X.shape[1])
        nothing = np.full((1, X.shape[1]), np.nan)
        nearest[empty] = np.argmin(distances(nothing, centers, pull, reference))
    return nearest


def loss_of(X, labels, centers, lam, reference, weights):
    """The loss of a partition by direct differences, some rows at a time."""
    centers = np.asarray(centers, np.float64)
    gap = np.broadcast_to(np.asarray(lam, np.float64), X.shape[1:]) * (centers - reference) ** 2
    total = 0.0
    for start in range(0, len(X), 10_000):
        some = slice(start, start + 10_000)
        x, own = np.asarray(X[some], np.float64), np.asarray(labels[some])
        cost = np.where(np.isnan(x), gap[own], (x - centers[own]) ** 2).sum(axis=1)
        total += float(np.asarray(weights[some]) @ cost)
    return total


def centers_of(X, labels, centers, lam, reference, weights):
    """The centres that minimise the loss of a partition, in long doubles, and by how much sums in
    float64 may miss them: terms are of the size of a feature's spread, and each is rounded."""
    X = np.asarray(X, np.float64)
    lam = np.broadcast_to(np.asarray(lam, np.float64), X.shape[1:])
    eps, out = np.finfo(np.float64).eps, np.array(centers, dtype=np.float64)
    slack = np.zeros_like(out)
    counted = np.where(np.isnan(X), 0.0, 1.0) * np.asarray(weights)[:, None]
    filled = np.where(np.isnan(X), 0.0, X)
    mean = (counted * filled).sum(axis=0) / np.where(counted.any(axis=0), counted.sum(axis=0), 1.0)
    spread = np.where(np.isnan(X), 0.0, np.abs(X - mean)).max(axis=0)
    for l in range(len(out)):
        own = np.flatnonzero((labels == l) & (np.asarray(weights) > 0))
        w = np.asarray(weights)[own, None].astype(np.longdouble)
        seen = ~np.isnan(X[own])
        count, size = (w * seen).sum(axis=0), w.sum()
        above = (w * np.where(seen, filled[own].astype(np.longdouble) - mean, 0)).sum(axis=0)
        pull = lam * (w * ~seen).sum(axis=0)
        below, apart = count + pull, reference.astype(np.longdouble) - mean
        above, start = np.where(
            pull > count, [above - count * apart, reference], [above + pull * apart, mean]
        )
        known = count > 0
        with np.errstate(all="ignore"):
            mu = np.where(known, start + above / below, np.where(pull > 0, reference, out[l]))
            away = np.where(known, lam * size / below * np.abs(mu - reference), 0)
            apart = np.where(known, np.minimum(count, pull) / below, 0) * np.abs(apart)
        out[l] = mu
        slack[l] = eps * ((len(own) + 8) * (spread + away) + 8 * apart + 4 * np.abs(mu))
    return out, slack + np.finfo(np.float64).tiny
