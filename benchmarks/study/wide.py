"""Tables with many features: small ones of unequal classes, and single cells.

wide     x = centre of the class + noise + a + b,  a: a few factors common to all rows,
         b: one factor of the largest class alone ("broad"), which k-means takes for clusters
cells    counts ~ negative binomial(mean = depth x share of the gene in the class); a count is
         lost with probability exp(-dropout x log(1 + count)^2); what is seen is
         log(1 + count per cell of median depth), and zeros, of both kinds, are the gaps
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Wide(NamedTuple):
    """A wide table: rows, features, sizes of the classes, and how they differ."""

    n: int
    p: int
    shares: tuple[float, ...]
    markers: float  # share of the features in which a class differs from the others
    spread: float  # by how much
    broad: float = 0.0  # the factor of the largest class, in a quarter of the features
    tails: float = 1000.0  # degrees of freedom of the noise

    def make(self, rng: np.random.Generator):
        k = len(self.shares)
        differs = rng.random((k, self.p)) < self.markers
        centers = np.where(differs, rng.normal(scale=self.spread, size=(k, self.p)), 0.0)
        classes = rng.choice(k, size=self.n, p=self.shares)
        noise = rng.standard_t(self.tails, (self.n, self.p)) / np.sqrt(
            self.tails / (self.tails - 2.0)
        )
        noise *= np.exp(0.3 * rng.normal(size=self.p))
        noise += 0.2 * rng.normal(size=(self.n, 3)) @ rng.normal(size=(3, self.p))
        loading = np.where(rng.random(self.p) < 0.25, rng.normal(size=self.p), 0.0)
        factor = np.where(classes == np.argmax(self.shares), rng.normal(size=self.n), 0.0)
        return centers[classes] + noise + self.broad * np.outer(factor, loading), classes, None


FIVE = (0.4, 0.25, 0.15, 0.12, 0.08)
THREE = (0.68, 0.17, 0.15)
WIDE = {
    "85 x 456, five classes": Wide(85, 456, FIVE, 0.5, 0.7),
    "85 x 456, few markers": Wide(85, 456, FIVE, 0.15, 1.2),
    "85 x 456, weak, tails": Wide(85, 456, FIVE, 0.5, 0.55, tails=4.0),
    "85 x 3,000, weak": Wide(85, 3000, FIVE, 0.3, 0.5),
    "62 x 2,000, broad class": Wide(62, 2000, THREE, 0.3, 0.8, broad=1.0),
    "62 x 2,000, very broad class": Wide(62, 2000, THREE, 0.3, 0.8, broad=1.5),
    "100 x 4,000, broad, few markers": Wide(100, 4000, THREE, 0.1, 1.2, broad=1.0),
    "40 x 6,000, equal classes": Wide(40, 6000, (0.25,) * 4, 0.2, 0.6, tails=5.0),
}


class Cells(NamedTuple):
    """Counts of single cells: k classes of unequal size."""

    n: int
    k: int
    depth: float  # median counts per gene
    markers: float  # share of the genes in which a class differs
    fold: float  # standard deviation of the log of the difference
    dropout: float = 0.3
    p: int = 1000
    spread: float = 0.3  # standard deviation of the log of the depth of a cell

    def make(self, rng: np.random.Generator):
        shares = rng.dirichlet(np.full(self.k, 3.0)) * 0.9 + 0.1 / self.k
        classes = rng.choice(self.k, size=self.n, p=shares)
        gene = rng.normal(scale=1.0, size=self.p)
        differs = rng.random((self.k, self.p)) < self.markers
        level = np.exp(gene + np.where(differs, rng.normal(scale=self.fold, size=differs.shape), 0))
        depth = self.depth * np.exp(self.spread * rng.normal(size=self.n))
        mean = depth[:, None] * level[classes]
        shape = 2.0  # of the negative binomial: variance = mean + mean^2 / shape
        counts = rng.poisson(rng.gamma(shape, mean / shape)).astype(float)
        lost = rng.random(counts.shape) < np.exp(-self.dropout * np.log1p(counts) ** 2)
        counts[lost] = 0.0
        total = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        values = np.log1p(counts * (np.median(total) / total))
        return np.where(values > 0, values, np.nan), classes, None


CELLS = {
    "400 cells, k=5": Cells(400, 5, 1.0, 0.1, 1.0),
    "400 cells, k=8": Cells(400, 8, 1.0, 0.1, 1.0),
    "800 cells, k=6, shallow": Cells(800, 6, 0.4, 0.1, 1.2),
    "800 cells, k=8, deep": Cells(800, 8, 3.0, 0.05, 1.0),
    "300 cells, k=6, few markers": Cells(300, 6, 1.0, 0.03, 1.5),
    "600 cells, k=5, strong dropout": Cells(600, 5, 1.5, 0.1, 1.0, dropout=0.1),
}
# Kinds of tables on which it was settled, with other draws, how "auto" takes levels of rows off;
# nothing is lost but by counting.
ALL_COUNTED = 50.0
CELLS_OTHERS = {
    "500 x 600, read evenly": Cells(500, 5, 1.5, 0.1, 1.0, ALL_COUNTED, 600, spread=0.1),
    "500 x 600, unevenly": Cells(500, 5, 1.5, 0.1, 1.0, ALL_COUNTED, 600, spread=0.6),
    "500 x 600, very unevenly": Cells(500, 5, 1.5, 0.1, 1.0, ALL_COUNTED, 600, spread=1.0),
    "500 x 600, weak": Cells(500, 5, 1.5, 0.1, 0.6, ALL_COUNTED, 600, spread=0.6),
    "300 x 3,000": Cells(300, 5, 1.5, 0.05, 1.0, ALL_COUNTED, 3000, spread=0.6),
    "3,000 x 300": Cells(3000, 5, 1.5, 0.1, 1.0, ALL_COUNTED, 300, spread=0.6),
}


def wide_tables() -> dict[str, tuple[int, Callable, str]]:
    """name -> (k, maker, mechanism)."""
    kinds = ("mnar0", "mnar1", "mnar2")
    return {
        f"{name}, {kinds[i % 3]}": (len(table.shares), table.make, kinds[i % 3])
        for i, (name, table) in enumerate(WIDE.items())
    }
