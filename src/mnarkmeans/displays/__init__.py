"""Plots for fitted models, in scikit-learn's Display manner: store numbers, then draw them.

Every class has `from_estimator` and `plot(ax=None)`, and after plotting `ax_` and `figure_`; those
that draw clusters have `from_predictions` for given labels. Matplotlib is imported on use.

_displays  rows, centres, missing shares, instability, loss
_flow      rows that move between clusters
_chart     charts described once; drawn with matplotlib here, as SVG in the report
_style     numbers, colours and names as people read them
"""

from ._displays import (
    CentersDisplay,
    ClustersDisplay,
    InstabilityDisplay,
    LossPathDisplay,
    MissingnessDisplay,
)
from ._flow import FlowDisplay

__all__ = [
    "CentersDisplay",
    "ClustersDisplay",
    "FlowDisplay",
    "InstabilityDisplay",
    "LossPathDisplay",
    "MissingnessDisplay",
]
