"""A paragraph for the methods section of a paper, for a fitted model's own run."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._missingness import REFERENCE_WORDS

METHOD = (
    "Rows were clustered with MNAR-k-means (Guan 2026; mnarkmeans {version}), which minimises the "
    "within-cluster sum of squares of the observed values plus, for every missing value, a penalty "
    "lam times the squared distance of the cluster's centre from a reference."
)
CHOICE = (
    "lam and the reference were chosen from the data by predicting held-out data: "
    "each candidate was fitted to some of the rows, and blocks of features of the other rows, "
    "their values and which of them are missing, were predicted from the other features of those "
    "rows (bi-cross-validation; Owen and Perry 2009, Fu and Perry 2020). A penalty was "
    "used only if it improved the prediction by more than one standard error; among values of lam "
    "within one standard error of the best, the one was used whose centres are nearest to those of "
    "a normal mixture with the likeliest missingness mechanism."
)
FEW_FEATURES = (
    "With so few features the BIC of mixture models decided whether values are missing by chance, "
    "near a reference or below a limit. Among the candidates with that reference whose clusters "
    "keep apart, within one standard error, the rows for which the likeliest mixture expects "
    "different means, the lam was used whose centres are nearest to these means."
)
PAPER = (
    "lam was chosen by the instability of the clusters over splits of the rows (Wang 2010, as in "
    "Guan 2026)."
)
STABILITY = (
    "The number of clusters (from {first} to {last}) was chosen by how well fits to parts of the "
    "rows agree (Wang 2010): the largest number whose clusters are about as reproducible as those "
    "of the most stable one."
)


def methods_paragraph(model: Any) -> str:
    """Describe a fitted k-means model in the words of a methods section.

    Examples
    --------
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.missingness import methods_paragraph
    >>> model = MNARKMeans(2, lam=1.0, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
    >>> print(methods_paragraph(model).split(". ")[-1])
    Here k = 2 and lam = 1 with reference 0 (10 starts, seed 0).
    """
    from .. import __version__

    check_is_fitted(model, "cluster_centers_")
    missingness = getattr(model, "missingness_", None)
    sentences = [METHOD.format(version=__version__)]
    if getattr(model, "criterion", "score") == "paper":
        sentences.append(PAPER)
    elif missingness is not None:
        sentences.append(FEW_FEATURES if missingness.decided_by == "mechanism" else CHOICE)
    tried = np.unique(getattr(model, "n_clusters", 1))
    if hasattr(model, "cv_results_") and len(tried) > 1:
        sentences.append(STABILITY.format(first=tried[0], last=tried[-1]))
    points = np.unique(model.reference_)
    reference = f"reference {points[0]:.4g}" if len(points) == 1 else "a reference for each feature"
    if missingness is not None and missingness.reference != "given":
        reference = REFERENCE_WORDS[missingness.reference]
    starts = f"{model.n_init} starts, " if hasattr(model, "n_init") else ""
    sentences.append(
        f"Here k = {len(model.cluster_centers_)} and lam = {lam_words(model.lam_)} with "
        f"{reference} ({starts}seed {model.random_state})."
    )
    return " ".join(sentences)


def lam_words(lam: Any) -> str:
    """One number, or the zeros among those of the features, or their range.

    Examples
    --------
    >>> lam_words(0.5), lam_words([0.5, 0.0, 0.5]), lam_words([0.25, 1.0])
    ('0.5', '0.5 (0 in 1 of 3 features)', '0.25 to 1 (one per feature)')
    """
    if np.ndim(lam) == 0:
        return f"{lam:.4g}"
    values, zeros = np.unique(lam), np.size(lam) - np.count_nonzero(lam)
    if len(values) == 2 and values[0] == 0:
        return f"{values[1]:.4g} (0 in {zeros} of {np.size(lam)} features)"
    return f"{np.min(lam):.4g} to {np.max(lam):.4g} (one per feature)"
