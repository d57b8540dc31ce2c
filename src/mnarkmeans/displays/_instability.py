"""How much the clusters change between samples of the rows, for every candidate lam and k."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ._palette import INK, MUTED, color, marker
from ._style import axes, lam_axis, title


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
    lines_ : one line per number of clusters

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
        self.figure_, self.ax_ = axes(ax)
        self.lines_ = []
        for number, k in enumerate(np.unique(self.n_clusters)):
            of_k = np.flatnonzero(self.n_clusters == k)
            of_k = of_k[np.argsort(self.lam[of_k], kind="stable")]
            lam, mean = self.lam[of_k], self.mean_instability[of_k]
            look = {"color": color(number), "marker": marker(number), "markersize": 4.5} | kwargs
            (line,) = self.ax_.plot(lam, mean, label=f"k = {k}", **look)
            self.lines_.append(line)
            if self.std_instability is not None:
                std = self.std_instability[of_k]
                low = np.maximum(mean - std, 0)
                self.ax_.fill_between(
                    lam, low, mean + std, color=line.get_color(), alpha=0.12, lw=0
                )
        below = ""
        if self.best_index is not None:
            at = self.lam[self.best_index], self.mean_instability[self.best_index]
            self.ax_.axvline(at[0], color=MUTED, lw=0.8, ls=":", zorder=0)
            self.ax_.plot(*at, "o", markersize=13, mfc="none", mec=INK, mew=1.6, zorder=5)
            chosen_k = int(self.n_clusters[self.best_index])
            below = f"chosen: lam = {at[0]:.3g}" + (f", k = {chosen_k}" if chosen_k else "")
        lam_axis(self.ax_, self.lam)
        self.ax_.set_ylabel(self.label, color=INK)
        self.ax_.set_ylim(bottom=0)
        self.ax_.grid(axis="y", color=MUTED, alpha=0.18)
        if np.unique(self.n_clusters).size > 1:
            self.ax_.legend(frameon=False, fontsize=9)
        title(self.ax_, "How stable the clusters are", below)
        return self
