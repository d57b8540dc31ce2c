"""Plots for fitted models, in scikit-learn's Display manner: store numbers, then draw them.

Every class has `from_estimator`, `from_predictions`, `plot(ax=None)`, and after plotting `ax_` and
`figure_`. Matplotlib is imported on use.
"""

from ._centers import CentersDisplay
from ._clusters import ClustersDisplay
from ._flow import FlowDisplay
from ._instability import InstabilityDisplay
from ._loss_path import LossPathDisplay
from ._missingness import MissingnessDisplay

__all__ = [
    "CentersDisplay",
    "ClustersDisplay",
    "FlowDisplay",
    "InstabilityDisplay",
    "LossPathDisplay",
    "MissingnessDisplay",
]
