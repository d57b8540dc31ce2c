"""A paragraph for the methods section of a paper, for a fitted model's own run."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

METHOD = (
    "Rows were clustered with MNAR-k-means (Guan 2026; mnarkmeans {version}), which minimises the "
    "within-cluster sum of squares of the observed values plus, for every missing value, a penalty "
    "lam times the squared distance of the cluster's centre from a reference."
)
CHOICE = (
    "lam and the reference were chosen from the data by predicting held-out data: "
    "each candidate was fitted to all but one fold of the rows, and blocks of features of the rows "
    "left out, their values and which of them are missing, were predicted from the other features "
    "of those rows (bi-cross-validation; Owen and Perry 2009, Fu and Perry 2020). A penalty was "
    "used only if it improved the prediction by more than one standard error; among values of lam "
    "within one standard error of the best, the one was used whose centres are nearest to those of "
    "a normal mixture with the likeliest missingness mechanism."
)
FEW_FEATURES = (
    "With so few features the BIC of normal mixtures decided whether values are missing by chance "
    "or near a reference, and lam is the one whose centres are nearest to those of the mixture."
)
PAPER = (
    "lam was chosen by the instability of the clusters over splits of the rows (Wang 2010, as in "
    "Guan 2026)."
)
STABILITY = (
    "The number of clusters ({tried}) was chosen by how well fits to parts of the rows agree (Wang "
    "2010): the largest number whose clusters are about as reproducible as those of the most "
    "stable one."
)
MIXTURE = (
    "Rows were clustered by a mixture of {tails} distributions fitted together with the "
    "missingness mechanism by EM (mnarkmeans {version}; a selection model in the sense of Little "
    "and Rubin; see Marbac and Sportisse and co-authors on mixtures for values missing not at "
    "random){how}."
)
REFERENCES = {"zero": "zero", "min": "the smallest observed value of each feature"}
MECHANISMS = {
    "mcar": "by chance, at a rate for each feature",
    "class": "by chance, at a rate for each cluster",
    "decay": "with a probability that decays with the distance from the reference",
    "threshold": "within a certain distance of the reference",
    "limit": "below a soft detection limit",
}


def methods_paragraph(model: Any) -> str:
    """Describe a fitted model in the words of a methods section.

    Parameters
    ----------
    model : MNARKMeans, MNARKMeansCV, MiniBatchMNARKMeans or MNARMixture, fitted

    Returns
    -------
    text : str

    Examples
    --------
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.missingness import methods_paragraph
    >>> model = MNARKMeans(2, lam=1.0, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
    >>> print(methods_paragraph(model).split(". ")[-1])
    Here k = 2 and lam = 1 with reference zero (10 starts, seed 0).
    """
    from .. import __version__

    check_is_fitted(model)
    if hasattr(model, "mechanism_"):
        tails = "Student's t" if model.tails_ == "t" else "normal"
        how = ", which was chosen by BIC" if model.mechanism == "auto" else ""
        text = MIXTURE.format(version=__version__, tails=tails, how=how)
        return (
            f"{text} Here there are {len(model.means_)} clusters, and values are missing "
            f"{MECHANISMS[model.mechanism_]}."
        )
    sentences = [METHOD.format(version=__version__)]
    if getattr(model, "criterion", "score") == "paper":
        sentences.append(PAPER)
    elif hasattr(model, "missingness_"):
        sentences.append(CHOICE)
        if model.missingness_.decided_by == "mechanism":
            sentences.append(FEW_FEATURES)
    tried = np.unique(getattr(model, "n_clusters", 1))
    if hasattr(model, "cv_results_") and len(tried) > 1:
        sentences.append(STABILITY.format(tried=f"from {tried[0]} to {tried[-1]}"))
    starts = "" if not hasattr(model, "n_init") else f"{model.n_init} starts, "
    sentences.append(
        f"Here k = {len(model.cluster_centers_)} and lam = {lam_words(model.lam_)} with "
        f"{_reference(model)} ({starts}seed {model.random_state})."
    )
    return " ".join(sentences)


def lam_words(lam: Any) -> str:
    """One number, or the range of one per feature.

    Examples
    --------
    >>> lam_words(0.5), lam_words([0.25, 1.0])
    ('0.5', '0.25 to 1 (one per feature)')
    """
    if np.ndim(lam) == 0:
        return f"{lam:.4g}"
    return f"{np.min(lam):.4g} to {np.max(lam):.4g} (one per feature)"


def _reference(model: Any) -> str:
    found = getattr(model, "missingness_", None)
    if found is not None and found.reference in REFERENCES:
        return f"{REFERENCES[found.reference]} as reference"
    values = np.asarray(model.reference_)
    if np.ptp(values) == 0.0:
        return "reference zero" if values[0] == 0.0 else f"reference {values[0]:.4g}"
    return "a reference for each feature"
