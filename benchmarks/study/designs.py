"""The data sets of the study: the paper's, and others that it has not seen.

A design makes one complete table with its classes and then loses values; `make(seed)` returns the
table with gaps, the classes and, where they are known, the true centres.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from sklearn import datasets as bundled

from benchmarks.study.wide import CELLS, CELLS_OTHERS, Cells, wide_tables
from mnarkmeans.datasets import load_lymphoma, load_usoskin, make_gaussian_clusters
from mnarkmeans.missingness import ampute

STRENGTHS = {"mnar0": (50, 5, 1.5), "mnar1": (15, 1.5, 0.1), "mnar2": (0.1, 0.3, 0.5)}
LAMS_FIGURE_2 = (0.01, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
LAMS_FIGURE_3 = (0.1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20)
LAMS_LYMPHOMA = (2, 4, 6, 8, 10)
LAMS_USOSKIN = (0.001, 0.01, 0.1, 1, 10)


class Data(NamedTuple):
    X: np.ndarray
    classes: np.ndarray
    centers: np.ndarray | None


class Design(NamedTuple):
    group: str
    name: str
    k: int
    paper_lams: tuple[float, ...]
    make: Callable[[int], Data]
    reference: float | str = 0.0  # where values get lost


def lose(X, classes, centers, mechanism, rng, **strength) -> Data:
    """Ampute and drop the rows that lost everything."""
    X = ampute(X, mechanism, rng=rng, **strength)
    seen = ~np.isnan(X).all(axis=1)
    return Data(X[seen], classes[seen], centers)


def gaussian(k, n, p, side, mechanism, strength) -> Callable[[int], Data]:
    def make(seed: int) -> Data:
        made = make_gaussian_clusters(
            n, p, k, separation=side, mechanism=mechanism, strength=strength, random_state=seed
        )
        return Data(made.data, made.target, made.centers)

    return make


def figure_2() -> Iterator[Design]:
    for k in (2, 3, 4):
        for side in (2, 3, 4):
            for strength in (0.1, 0.5, 1, 2, 10):
                name = f"k={k} side={side} mnar0={strength}"
                make = gaussian(k, 100 * k, 2, side, "mnar0", strength)
                yield Design("Figure 2", name, k, LAMS_FIGURE_2, make)


def figure_2_others() -> Iterator[Design]:
    for mechanism in ("mnar1", "mnar2"):
        for k in (2, 3, 4):
            for strength in STRENGTHS[mechanism]:
                name = f"k={k} side=3 {mechanism}={strength}"
                make = gaussian(k, 100 * k, 2, 3, mechanism, strength)
                yield Design("Figure 2, MNAR1-2", name, k, LAMS_FIGURE_2, make)


def at_random() -> Iterator[Design]:
    for mechanism in ("mcar", "mar"):
        for k, p in ((2, 2), (3, 2), (4, 2), (3, 10), (3, 50)):
            for share in (0.1, 0.3, 0.5):
                name = f"k={k} p={p} {mechanism} {share:.0%}"

                def make(seed: int, k=k, p=p, mechanism=mechanism, share=share) -> Data:
                    rng = np.random.default_rng(seed)
                    made = make_gaussian_clusters(
                        100 * k, p, k, separation=4, mechanism=None, random_state=rng
                    )
                    return lose(
                        made.data, made.target, made.centers, mechanism, rng, fraction=share
                    )

                lams = LAMS_FIGURE_3 if p > 2 else LAMS_FIGURE_2
                yield Design("MCAR and MAR", name, k, lams, make)


def figure_3() -> Iterator[Design]:
    for k in (3, 4):
        for mechanism, strengths in STRENGTHS.items():
            for strength in strengths:
                name = f"{mechanism}={strength}"
                make = gaussian(k, 100 * k, 50, 3, mechanism, strength)
                yield Design(f"Figure 3 k={k}", name, k, LAMS_FIGURE_3, make)


def lymphoma() -> Iterator[Design]:
    bunch = load_lymphoma()
    table, classes = np.asarray(bunch.data), np.asarray(bunch.target)
    for mechanism, strengths in STRENGTHS.items():
        for strength in strengths:

            def make(seed: int, mechanism=mechanism, strength=strength) -> Data:
                rng = np.random.default_rng(seed)
                return lose(table, classes, None, mechanism, rng, strength=strength)

            yield Design("Lymphoma", f"{mechanism}={strength}", 3, LAMS_LYMPHOMA, make)


def usoskin() -> Iterator[Design]:
    for preparation in ("paper", "log1p"):
        bunch = load_usoskin(preparation=preparation)
        data = Data(np.asarray(bunch.data, dtype=float), np.asarray(bunch.target), None)
        yield Design(f"Usoskin {preparation}", preparation, 4, LAMS_USOSKIN, lambda _, d=data: d)


def _mixture(k, n, p, spread, noise, shares=None, features=None) -> Callable:
    """Centres at random in some features, noise by `noise(rng, size)`; rows by `shares`."""

    def make(rng):
        centers = np.zeros((k, p))
        centers[:, : features or p] = spread * rng.normal(size=(k, features or p))
        classes = rng.choice(k, size=n, p=shares)
        return centers[classes] + noise(rng, (n, p)), classes, centers

    return make


def _normal(rng, size):
    return rng.normal(size=size)


def _correlated(rng, size):
    return rng.normal(size=size) * np.sqrt(0.5) + np.sqrt(0.5) * rng.normal(size=(size[0], 1))


def _unequal_noise(rng, size):
    return rng.normal(size=size) * np.exp(0.7 * rng.normal(size=size[1]))


OWN = {  # name -> (k, maker, missing share)
    "unequal sizes": (3, _mixture(3, 400, 20, 1.2, _normal, (0.75, 0.15, 0.1)), 0.3),
    "correlated": (3, _mixture(3, 300, 20, 1.2, _correlated), 0.3),
    "heavy tails": (3, _mixture(3, 300, 20, 1.2, lambda g, s: g.standard_t(3, s)), 0.3),
    "noise per feature": (3, _mixture(3, 300, 20, 1.2, _unequal_noise), 0.3),
    "n < p": (3, _mixture(3, 60, 500, 1.0, _normal, features=40), 0.3),
    "k = 8": (8, _mixture(8, 600, 10, 2.0, _normal), 0.3),
    "90 % missing": (3, _mixture(3, 300, 60, 1.5, _normal), 0.9),
    "sparse signal": (4, _mixture(4, 300, 200, 1.5, _normal, features=10), 0.4),
}


def own() -> Iterator[Design]:
    for name, (k, maker, share) in OWN.items():
        for mechanism in ("mnar0", "mnar1", "mnar2"):
            wanted = min(share, 0.45) if mechanism == "mnar1" else share

            def make(seed: int, maker=maker, mechanism=mechanism, wanted=wanted) -> Data:
                rng = np.random.default_rng(seed)
                return lose(*maker(rng), mechanism, rng, fraction=wanted)

            yield Design("own designs", f"{name}, {mechanism}", k, LAMS_FIGURE_3, make)


def with_scikit_learn() -> Iterator[Design]:
    loaders = {
        "iris": bundled.load_iris,
        "wine": bundled.load_wine,
        "breast cancer": bundled.load_breast_cancer,
        "digits": bundled.load_digits,
    }
    for name, load in loaders.items():
        table, classes = load(return_X_y=True)
        table = table[:, table.std(axis=0) > 0]
        table = (table - table.mean(axis=0)) / table.std(axis=0)
        k = len(np.unique(classes))
        for mechanism in ("mcar", "mar", "mnar0", "mnar1", "mnar2"):

            def make(seed: int, table=table, classes=classes, mechanism=mechanism) -> Data:
                rng = np.random.default_rng(seed)
                rows = rng.permutation(len(table))[:500]
                return lose(table[rows], classes[rows], None, mechanism, rng, fraction=0.3)

            yield Design("scikit-learn's data", f"{name}, {mechanism}", k, LAMS_FIGURE_3, make)


def _expression(p, spread, share, loading, degrees):
    """Tables like those of tumours: 85 x p, five unequal classes that differ in a share of the
    features, noise with tails, of unequal size and partly common to all features."""
    shares = (0.4, 0.25, 0.15, 0.12, 0.08)

    def make(rng):
        differs = rng.random((5, p)) < share
        centers = np.where(differs, rng.normal(scale=spread, size=(5, p)), 0.0)
        classes = rng.choice(5, size=85, p=shares)
        noise = rng.standard_t(degrees, (85, p)) / np.sqrt(degrees / (degrees - 2.0))
        noise *= np.exp(0.3 * rng.normal(size=p))
        noise += loading * rng.normal(size=(85, 3)) @ rng.normal(size=(3, p))
        return centers[classes] + noise, classes, None

    return make


EXPRESSION = {  # name -> maker
    "normal": _expression(456, 0.7, 0.6, 0.25, 1000),
    "weak": _expression(456, 0.5, 0.6, 0.25, 1000),
    "few features": _expression(456, 1.0, 0.2, 0.25, 5),
    "correlated": _expression(456, 0.7, 0.6, 0.4, 1000),
    "tails": _expression(456, 0.7, 0.6, 0.25, 3),
    "weak, tails": _expression(456, 0.5, 0.6, 0.25, 4),
    "wide, tails": _expression(1500, 0.7, 0.3, 0.25, 3),
}


def expression() -> Iterator[Design]:
    for name, maker in EXPRESSION.items():

        def make(seed: int, maker=maker) -> Data:
            rng = np.random.default_rng(seed)
            return lose(*maker(rng), "mnar0", rng, fraction=0.3)

        yield Design("expression", name, 5, LAMS_FIGURE_3, make)


NOISE = {  # all of variance 1
    "normal": _normal,
    "t3": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3.0),
    "Laplace": lambda rng, size: rng.laplace(size=size) / np.sqrt(2.0),
    "skewed": lambda rng, size: (rng.gamma(2.0, size=size) - 2.0) / np.sqrt(2.0),
}
SOFTNESS = {"hard": 0.0, "soft": 0.5}


def below_limits(mixed: bool) -> Iterator[Design]:
    """Values lost below a limit of their feature; mixed: in the second half of the features only,
    the first being complete or losing values by chance, in turn."""
    for noise, draw in NOISE.items():
        for kind, softness in SOFTNESS.items():
            for k in (3, 5):
                for n in (300, 2000):
                    for share in (0.1, 0.3, 0.5):
                        maker = _mixture(k, n, 12 if mixed else 6, 1.2, draw)

                        def make(
                            seed: int, maker=maker, softness=softness, share=share, k=k
                        ) -> Data:
                            rng = np.random.default_rng(seed)
                            X, classes, centers = maker(rng)
                            lost = ampute(X, "limit", softness=softness, strength=share, rng=rng)
                            if mixed:
                                lost[:, :6] = X[:, :6]
                                lost[:, :6:2] = ampute(X[:, :6:2], "mcar", strength=share, rng=rng)
                            seen = ~np.isnan(lost).all(axis=1)
                            return Data(lost[seen], classes[seen], centers)

                        name = f"{noise} {kind} k={k} n={n} {share:.0%}"
                        group = "mixed" if mixed else "limit"
                        yield Design(group, name, k, LAMS_FIGURE_2, make, "min")


def by_chance() -> Iterator[Design]:
    """The tables of `below_limits` with 300 rows, values lost by chance; a limit is looked for."""
    for noise, draw in NOISE.items():
        for k in (3, 5):
            for share in (0.1, 0.3, 0.5):
                maker = _mixture(k, 300, 6, 1.2, draw)

                def make(seed: int, maker=maker, share=share) -> Data:
                    rng = np.random.default_rng(seed)
                    return lose(*maker(rng), "mcar", rng, strength=share)

                name = f"{noise} k={k} {share:.0%}"
                yield Design("chance", name, k, LAMS_FIGURE_2, make, "min")


def wide() -> Iterator[Design]:
    for name, (k, maker, mechanism) in wide_tables().items():

        def make(seed: int, maker=maker, mechanism=mechanism) -> Data:
            rng = np.random.default_rng(seed)
            return lose(*maker(rng), mechanism, rng, fraction=0.3)

        yield Design("wide", name, k, LAMS_FIGURE_3, make)


def cells(group: str, tables: dict[str, Cells]) -> Iterator[Design]:
    for name, table in tables.items():

        def make(seed: int, table=table) -> Data:
            return Data(*table.make(np.random.default_rng(seed)))

        yield Design(group, name, table.k, LAMS_USOSKIN, make)


GROUPS = {
    "figure2": figure_2,
    "figure2-others": figure_2_others,
    "random": at_random,
    "figure3": figure_3,
    "lymphoma": lymphoma,
    "usoskin": usoskin,
    "own": own,
    "bundled": with_scikit_learn,
    "expression": expression,
    "wide": wide,
    "cells": lambda: cells("cells", CELLS),
    "cells-others": lambda: cells("cells-others", CELLS_OTHERS),
    "limit": lambda: below_limits(mixed=False),
    "mixed": lambda: below_limits(mixed=True),
    "chance": by_chance,
}
