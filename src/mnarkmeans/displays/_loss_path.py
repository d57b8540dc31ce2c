"""The loss after every iteration of the best start, and where the other starts ended."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ._chart import draw, loss_path


class LossPathDisplay:
    """Loss against iteration, with the final losses of all starts at the side.

    Parameters
    ----------
    loss_path : array
        Loss after every iteration of the best start.
    start_losses : array, optional
        Final loss of every start.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    line_ : the path

    Examples
    --------
    >>> display = LossPathDisplay.from_predictions([9.0, 5.0, 4.0], start_losses=[4.0, 6.0])
    >>> display.plot().ax_.get_xlabel()
    'iteration'
    """

    def __init__(self, *, loss_path: ArrayLike, start_losses: ArrayLike | None = None) -> None:
        self.loss_path = np.asarray(loss_path, dtype=float)
        self.start_losses = None if start_losses is None else np.asarray(start_losses, dtype=float)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> LossPathDisplay:
        """Draw the path of a fitted estimator."""
        check_is_fitted(estimator, "loss_path_")
        return cls.from_predictions(
            estimator.loss_path_,
            start_losses=getattr(estimator, "start_losses_", None),
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        loss_path: ArrayLike,
        *,
        start_losses: ArrayLike | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> LossPathDisplay:
        """Draw given losses; keywords go to the line."""
        return cls(loss_path=loss_path, start_losses=start_losses).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> LossPathDisplay:
        """Draw; keywords go to the line."""
        chart = loss_path(self.loss_path.tolist(), self.start_losses)
        self.figure_, self.ax_, (self.line_,) = draw(chart, ax, **kwargs)
        return self
