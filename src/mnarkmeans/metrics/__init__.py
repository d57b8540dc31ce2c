"""How good clusters are: against the truth, or from data with missing values alone.

_quality      errors when the truth is known; silhouettes and other indices
_verdict      separate groups or slices of one continuum, and how sure each row is
_markers      which features make a cluster
_annotations  which annotation of the rows agrees with the clusters
"""

from ._markers import Markers, cluster_markers
from ._quality import (
    calinski_harabasz_score,
    center_mse,
    clustering_error_rate,
    davies_bouldin_score,
    silhouette_score,
)
from ._verdict import Verdict, confidence, verdict

__all__ = [
    "Markers",
    "Verdict",
    "calinski_harabasz_score",
    "center_mse",
    "cluster_markers",
    "clustering_error_rate",
    "confidence",
    "davies_bouldin_score",
    "silhouette_score",
    "verdict",
]
