"""Scores: against the truth, or by themselves for data with gaps.

_truth       errors of labels and centres when the truth is known
_quality     silhouettes and the indices of Calinski-Harabasz and Davies-Bouldin
_geometry    distances between rows with gaps, for these
_confidence  how sure a model is of each row
_markers     which features make a cluster
"""

from ._confidence import confidence, noise_of
from ._markers import cluster_markers
from ._quality import calinski_harabasz_score, davies_bouldin_score, silhouette_score
from ._verdict import Verdict, verdict
from ._truth import center_mse, clustering_error_rate

__all__ = [
    "calinski_harabasz_score",
    "center_mse",
    "cluster_markers",
    "clustering_error_rate",
    "confidence",
    "davies_bouldin_score",
    "noise_of",
    "silhouette_score",
    "Verdict", "verdict",
]
