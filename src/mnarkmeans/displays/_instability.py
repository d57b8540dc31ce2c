"""How much the clusters change between samples of the rows, for every candidate lam and k."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ._chart import draw, instability


class InstabilityDisplay:
    """Instability against lam, one line per number of clusters, the chosen pair marked.

    Parameters
    ----------
    lam, n_clusters, mean_instability : arrays, one entry per candidate
    std_instability : array, optional
    best_index : int, optional
        The candidate chosen.
    label : str
        What the vertical axis shows.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    lines_ : one line per number of clusters, or one against them where all have the same lam

    Examples
    --------
    >>> display = InstabilityDisplay.from_predictions([0.1, 1.0], [0.2, 0.05], best_index=1)
    >>> len(display.plot().lines_)
    1
    """

    def __init__(
        self,
        *,
        lam: ArrayLike,
        mean_instability: ArrayLike,
        std_instability: ArrayLike | None = None,
        n_clusters: ArrayLike | None = None,
        best_index: int | None = None,
        label: str = "instability (lower is better)",
    ) -> None:
        self.lam = np.asarray(lam, dtype=float)
        self.mean_instability = np.asarray(mean_instability, dtype=float)
        given = std_instability is not None
        self.std_instability = np.asarray(std_instability, dtype=float) if given else None
        shape = self.lam.shape
        self.n_clusters = (
            np.zeros(shape, int) if n_clusters is None else np.asarray(n_clusters, int)
        )
        self.best_index = best_index
        self.label = label

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> InstabilityDisplay:
        """Draw `cv_results_` of a fitted MNARKMeansCV."""
        check_is_fitted(estimator, "cv_results_")
        results = estimator.cv_results_
        return cls.from_predictions(
            results["param_lam"],
            results["mean_instability"],
            std_instability=results.get("std_instability"),
            n_clusters=results["param_n_clusters"],
            best_index=estimator.best_index_,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        lam: ArrayLike,
        mean_instability: ArrayLike,
        *,
        std_instability: ArrayLike | None = None,
        n_clusters: ArrayLike | None = None,
        best_index: int | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> InstabilityDisplay:
        """Draw given numbers; keywords go to the lines."""
        display = cls(
            lam=lam,
            mean_instability=mean_instability,
            std_instability=std_instability,
            n_clusters=n_clusters,
            best_index=best_index,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> InstabilityDisplay:
        """Draw; keywords go to the lines."""
        chart = instability(
            self.lam, self.n_clusters, self.mean_instability, self.std_instability,
            self.best_index, self.label,
        )  # fmt: skip
        self.figure_, self.ax_, self.lines_ = draw(chart, ax, **kwargs)
        return self
