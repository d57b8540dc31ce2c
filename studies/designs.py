"""Simulated tables whose groups are known.

A design draws a complete table and then loses values: `make(seed)` returns the table with missing
values, the classes and, where they are known, the true centres. `reference` is what somebody who
knows how the values were lost would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from sklearn import datasets as bundled

from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.missingness import ampute

STRENGTHS = {"mnar0": (50, 5, 1.5), "mnar1": (15, 1.5, 0.1), "mnar2": (0.1, 0.3, 0.5)}


class Data(NamedTuple):
    X: np.ndarray
    classes: np.ndarray
    centers: np.ndarray | None = None


class Design(NamedTuple):
    group: str
    name: str
    k: int
    make: Callable[[int], Data]
    reference: float | str = 0.0


def without_empty_rows(X, classes, centers=None) -> Data:
    seen = ~np.isnan(X).all(axis=1)
    return Data(X[seen], classes[seen], centers)


def design(group: str, name: str, k: int, maker: Callable, lose: Callable, reference=0.0) -> Design:
    """A maker returns X, classes and centres; lose(X, classes, rng) returns X with gaps."""

    def make(seed: int) -> Data:
        rng = np.random.default_rng(seed)
        X, classes, centers = maker(rng)
        return without_empty_rows(lose(X, classes, rng), classes, centers)

    return Design(group, name, k, make, reference)


def by(mechanism: str, **options) -> Callable:
    return lambda X, classes, rng: ampute(X, mechanism, rng=rng, **options)


# --- the paper's designs ----------------------------------------------------------------------


def gaussian(group, name, k, p, side, mechanism, strength) -> Design:
    def make(seed: int) -> Data:
        made = make_gaussian_clusters(
            100 * k, p, k, separation=side, mechanism=mechanism, strength=strength,
            random_state=seed,
        )  # fmt: skip
        return Data(made.data, made.target, made.centers)

    return Design(group, name, k, make)


def figure_2() -> Iterator[Design]:
    for k, side, strength in product((2, 3, 4), (2, 3, 4), (0.1, 0.5, 1, 2, 10)):
        name = f"k={k} side={side} mnar0={strength}"
        yield gaussian("figure2", name, k, 2, side, "mnar0", strength)


def figure_2_others() -> Iterator[Design]:
    for mechanism, k in product(("mnar1", "mnar2"), (2, 3, 4)):
        for strength in STRENGTHS[mechanism]:
            name = f"k={k} side=3 {mechanism}={strength}"
            yield gaussian("figure2-others", name, k, 2, 3, mechanism, strength)


def figure_3() -> Iterator[Design]:
    for k, mechanism in product((3, 4), STRENGTHS):
        for strength in STRENGTHS[mechanism]:
            name = f"k={k} {mechanism}={strength}"
            yield gaussian("figure3", name, k, 50, 3, mechanism, strength)


# --- chance, and other shapes of clusters -----------------------------------------------------


def mixture(k, n, p, spread, noise, shares=None, features=None) -> Callable:
    """Normal centres in the first `features` features; noise(rng, size)."""

    def make(rng):
        centers = np.zeros((k, p))
        centers[:, : features or p] = spread * rng.normal(size=(k, features or p))
        classes = rng.choice(k, size=n, p=shares)
        return centers[classes] + noise(rng, (n, p)), classes, centers

    return make


def normal(rng, size):
    return rng.normal(size=size)


def correlated(rng, size):
    return np.sqrt(0.5) * (rng.normal(size=size) + rng.normal(size=(size[0], 1)))


def unequal_noise(rng, size):
    return rng.normal(size=size) * np.exp(0.7 * rng.normal(size=size[1]))


NOISE = {  # all of variance 1
    "normal": normal,
    "t3": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3.0),
    "Laplace": lambda rng, size: rng.laplace(size=size) / np.sqrt(2.0),
    "skewed": lambda rng, size: (rng.gamma(2.0, size=size) - 2.0) / np.sqrt(2.0),
}


def at_random() -> Iterator[Design]:
    for mechanism, (k, p), share in product(
        ("mcar", "mar"), ((2, 2), (3, 2), (4, 2), (3, 10), (3, 50)), (0.1, 0.3, 0.5)
    ):

        def maker(rng, k=k, p=p):
            made = make_gaussian_clusters(
                100 * k, p, k, separation=4, mechanism=None, random_state=rng
            )
            return made.data, made.target, made.centers

        name = f"k={k} p={p} {mechanism} {share:.0%}"
        yield design("random", name, k, maker, by(mechanism, fraction=share))


OWN = {  # name -> (k, maker, missing share)
    "unequal sizes": (3, mixture(3, 400, 20, 1.2, normal, (0.75, 0.15, 0.1)), 0.3),
    "correlated": (3, mixture(3, 300, 20, 1.2, correlated), 0.3),
    "heavy tails": (3, mixture(3, 300, 20, 1.2, lambda g, s: g.standard_t(3, s)), 0.3),
    "noise per feature": (3, mixture(3, 300, 20, 1.2, unequal_noise), 0.3),
    "n < p": (3, mixture(3, 60, 500, 1.0, normal, features=40), 0.3),
    "k = 8": (8, mixture(8, 600, 10, 2.0, normal), 0.3),
    "90 % missing": (3, mixture(3, 300, 60, 1.5, normal), 0.9),
    "sparse signal": (4, mixture(4, 300, 200, 1.5, normal, features=10), 0.4),
}


def own() -> Iterator[Design]:
    for (name, (k, maker, share)), mechanism in product(OWN.items(), STRENGTHS):
        wanted = min(share, 0.45) if mechanism == "mnar1" else share
        yield design("own", f"{name}, {mechanism}", k, maker, by(mechanism, fraction=wanted))


def with_scikit_learn() -> Iterator[Design]:
    loaders = (
        bundled.load_iris,
        bundled.load_wine,
        bundled.load_breast_cancer,
        bundled.load_digits,
    )
    for load, mechanism in product(loaders, ("mcar", "mar", "mnar0", "mnar1", "mnar2")):

        def maker(rng, load=load):
            table, classes = load(return_X_y=True)
            table = table[:, table.std(axis=0) > 0]
            table = (table - table.mean(axis=0)) / table.std(axis=0)
            rows = rng.permutation(len(table))[:500]
            return table[rows], classes[rows], None

        name, k = load.__name__.removeprefix("load_"), 10 if load is bundled.load_digits else 3
        k = 2 if load is bundled.load_breast_cancer else k
        yield design("bundled", f"{name}, {mechanism}", k, maker, by(mechanism, fraction=0.3))


# --- detection limits -------------------------------------------------------------------------


def below_limits(group: str) -> Iterator[Design]:
    """limit: six features; mixed: six more that are complete or lose values by chance, in turn."""
    for noise, softness, k, n, share in product(
        NOISE, (0.0, 0.5), (3, 5), (300, 2000), (0.1, 0.3, 0.5)
    ):

        def lose(X, classes, rng, softness=softness, share=share):
            lost = ampute(X, "limit", softness=softness, strength=share, rng=rng)
            if group == "mixed":
                lost[:, :6] = X[:, :6]
                lost[:, :6:2] = ampute(X[:, :6:2], "mcar", strength=share, rng=rng)
            return lost

        maker = mixture(k, n, 12 if group == "mixed" else 6, 1.2, NOISE[noise])
        name = f"{noise} softness={softness:g} k={k} n={n} {share:.0%}"
        yield design(group, name, k, maker, lose, "min")


def by_chance() -> Iterator[Design]:
    for noise, k, share in product(NOISE, (3, 5), (0.1, 0.3, 0.5)):
        maker = mixture(k, 300, 6, 1.2, NOISE[noise])
        name = f"{noise} k={k} {share:.0%}"
        yield design("chance", name, k, maker, by("mcar", strength=share), "min")


# --- families of losses, noises and shapes -----------------------------------------------------


def limit(softness: float) -> Callable:
    return by("limit", strength=0.3, softness=softness)


def uneven_chance(X, classes, rng):
    """By chance, at a rate of the row and of the feature."""
    odds = -1.0 + rng.normal(size=(len(X), 1)) + rng.normal(size=X.shape[1])
    return np.where(rng.random(X.shape) < 1 / (1 + np.exp(-odds)), np.nan, X)


def by_class(X, classes, rng):
    """By chance, at a rate of the class and the feature."""
    rates = rng.uniform(0.0, 0.6, size=(classes.max() + 1, X.shape[1]))
    return np.where(rng.random(X.shape) < rates[classes], np.nan, X)


LOSSES = {  # name -> (level of the table, how values are lost, reference)
    "hard limit": (20.0, limit(0.0), "min"),
    "soft limit": (20.0, limit(0.5), "min"),
    "chance": (20.0, by("mcar", fraction=0.3), "auto"),
    "uneven chance": (20.0, uneven_chance, "auto"),
    "exp(-2x^2)": (0.0, by("mnar0", strength=2.0), 0.0),
    "by class": (20.0, by_class, "auto"),
}


def two_levels(k, n, p, step, level, noise, shares=None) -> Callable:
    """Every feature is high in some classes and low in the others; `level` is the middle of 0."""

    def make(rng):
        high = rng.integers(0, 2, (k, p))
        centers = level + step * high if level else step * (2 * high - 1) / 1.4
        classes = rng.choice(k, size=n, p=shares)
        return centers[classes] + noise(rng, (n, p)), classes, centers

    return make


SHAPES = {(300, 8): 2.0, (120, 40): 1.0}  # rows and features -> step


def families() -> Iterator[Design]:
    for noise, loss, k, shape in product(NOISE, LOSSES, (3, 5), SHAPES):
        level, lose, reference = LOSSES[loss]
        maker = two_levels(k, *shape, SHAPES[shape], level, NOISE[noise])
        name = f"{loss}, {noise} k={k} {shape[0]} x {shape[1]}"
        yield design("families", name, k, maker, lose, reference)


def correlated_unequal() -> Iterator[Design]:
    for loss, shape in product(LOSSES, SHAPES):
        level, lose, reference = LOSSES[loss]
        step = 1.3 * SHAPES[shape]
        maker = two_levels(4, *shape, step, level, correlated, (0.5, 0.25, 0.15, 0.1))
        yield design("correlated", f"{loss}, {shape[0]} x {shape[1]}", 4, maker, lose, reference)


# --- many features ----------------------------------------------------------------------------


def expression(p, spread, share, loading, degrees) -> Callable:
    """Like tumours: 85 x p, five unequal classes that differ in a share of the features; noise
    with tails, of unequal size and partly common to all features."""

    def make(rng):
        differs = rng.random((5, p)) < share
        centers = np.where(differs, rng.normal(scale=spread, size=(5, p)), 0.0)
        classes = rng.choice(5, size=85, p=(0.4, 0.25, 0.15, 0.12, 0.08))
        noise = rng.standard_t(degrees, (85, p)) / np.sqrt(degrees / (degrees - 2.0))
        noise *= np.exp(0.3 * rng.normal(size=p))
        noise += loading * rng.normal(size=(85, 3)) @ rng.normal(size=(3, p))
        return centers[classes] + noise, classes, None

    return make


EXPRESSION = {
    "normal": expression(456, 0.7, 0.6, 0.25, 1000),
    "weak": expression(456, 0.5, 0.6, 0.25, 1000),
    "few features": expression(456, 1.0, 0.2, 0.25, 5),
    "correlated": expression(456, 0.7, 0.6, 0.4, 1000),
    "tails": expression(456, 0.7, 0.6, 0.25, 3),
    "weak, tails": expression(456, 0.5, 0.6, 0.25, 4),
    "wide, tails": expression(1500, 0.7, 0.3, 0.25, 3),
}


def expressions() -> Iterator[Design]:
    for name, maker in EXPRESSION.items():
        yield design("expression", name, 5, maker, by("mnar0", fraction=0.3))


class Cells(NamedTuple):
    """Single cells. Counts ~ negative binomial(depth of the cell x level of the gene in its type),
    some of them lost with probability exp(-dropout log(1 + count)^2). The table holds
    log(1 + count scaled to the median depth); zeros are the missing values."""

    n: int
    k: int
    depth: float  # median count of a gene
    markers: float  # share of the genes in which a type differs
    fold: float  # standard deviation of the log of the difference
    dropout: float = 0.3
    p: int = 1000
    spread: float = 0.3  # standard deviation of the log of the depth of a cell
    shares: tuple[float, ...] | None = None

    def make(self, seed: int) -> Data:
        rng = np.random.default_rng(seed)
        shares = self.shares or rng.dirichlet(np.full(self.k, 3.0)) * 0.9 + 0.1 / self.k
        types = rng.choice(self.k, size=self.n, p=shares)
        gene = rng.normal(scale=1.0, size=self.p)
        differs = rng.random((self.k, self.p)) < self.markers
        level = np.exp(gene + np.where(differs, rng.normal(scale=self.fold, size=differs.shape), 0))
        depth = self.depth * np.exp(self.spread * rng.normal(size=self.n))
        mean = depth[:, None] * level[types]
        shape = 2.0  # variance = mean + mean^2 / shape
        counts = rng.poisson(rng.gamma(shape, mean / shape)).astype(float)
        counts[rng.random(counts.shape) < np.exp(-self.dropout * np.log1p(counts) ** 2)] = 0.0
        total = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        values = np.log1p(counts * (np.median(total) / total))
        values[values == 0] = np.nan
        return without_empty_rows(values[:, ~np.isnan(values).all(axis=0)], types)


ALL_COUNTED = 50.0
CELLS = {
    "400 cells, k=5": Cells(400, 5, 1.0, 0.1, 1.0),
    "400 cells, k=8": Cells(400, 8, 1.0, 0.1, 1.0),
    "800 cells, k=6, shallow": Cells(800, 6, 0.4, 0.1, 1.2),
    "800 cells, k=8, deep": Cells(800, 8, 3.0, 0.05, 1.0),
    "300 cells, k=6, few markers": Cells(300, 6, 1.0, 0.03, 1.5),
    "600 cells, k=5, strong dropout": Cells(600, 5, 1.5, 0.1, 1.0, dropout=0.1),
    "500 x 600, uneven depth": Cells(500, 5, 1.5, 0.1, 1.0, ALL_COUNTED, 600, spread=0.6),
    "500 x 600, very uneven": Cells(500, 5, 1.5, 0.1, 1.0, ALL_COUNTED, 600, spread=1.0),
    "500 x 600, weak": Cells(500, 5, 1.5, 0.1, 0.6, ALL_COUNTED, 600, spread=0.6),
    "300 x 3,000": Cells(300, 5, 1.5, 0.05, 1.0, ALL_COUNTED, 3000, spread=0.6),
    "3,000 x 300": Cells(3000, 5, 1.5, 0.1, 1.0, ALL_COUNTED, 300, spread=0.6),
}


def cells() -> Iterator[Design]:
    for name, table in CELLS.items():
        yield Design("cells", name, table.k, table.make)


GROUPS: dict[str, Callable[[], Iterator[Design]]] = {
    "figure2": figure_2,
    "figure2-others": figure_2_others,
    "figure3": figure_3,
    "random": at_random,
    "own": own,
    "bundled": with_scikit_learn,
    "limit": lambda: below_limits("limit"),
    "mixed": lambda: below_limits("mixed"),
    "chance": by_chance,
    "families": families,
    "correlated": correlated_unequal,
    "expression": expressions,
    "cells": cells,
}
