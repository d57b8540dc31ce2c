"""Plots for fitted models, in scikit-learn's Display manner: store numbers, then draw them.

Every class has `from_estimator`, `from_predictions`, `plot(ax=None)`, and after plotting `ax_` and
`figure_`. Matplotlib is imported on use.

_centers      centres as a heatmap, gaps visible
_clusters     rows in the plane (placed by `_embedding`), coloured by cluster
_missingness  missing rate against magnitude
_instability  how much clusters change, for every candidate lam and k
_loss_path    the loss after every iteration, and where the other starts ended
_flow         rows flowing between the clusters of neighbouring lam or k
_flow_layout  where its boxes and ribbons lie
_chart        a chart described once; drawn with matplotlib here, as SVG in the report
_numbers      numbers as people read them
_palette      colours that stay apart, names cut short
_style        one look for all
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
