"""How sure the clusters are: numbers per row and per cluster, and a verdict in words.

confidence  of a row: `metrics.confidence`, the margin to the next centre in units of the noise
silhouette  of a row: (b - a) / max(a, b), distance to the own centre (a) and to the next one (b)
found again of a cluster: its mean Jaccard similarity when a fifth of the rows is left out
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..metrics._confidence import BETWEEN
from ..metrics._quality import silhouettes
from ._numbers import percent

SURE, MOST_SURE = 0.9, 0.8  # confidence of a row; share of such rows in solid clusters
HALF = 0.5  # share of such rows below which there is nothing to build on
FEWEST = 2  # rows for each cluster
SOLID, DISSOLVED = 0.75, 0.5  # found again
MOST_LISTED = 100
FEW_ROWS, FEW = 3, 0.1  # of a cluster; of all rows
KIND = (
    "Confidence is the probability of a row's own cluster if all clusters were equally wide normal "
    "clouds around the centres found: the margin to the next centre, in units of the noise. It was "
    "chosen over the probabilities of a free mixture because the likeliest cluster is then always "
    "the label. It takes the centres for granted; whether they would come out again with other "
    "rows is what \u201cfound again\u201d tells."
)


class Sureness(NamedTuple):
    """Per row: confidence, silhouette, the next cluster (-1 where there is one cluster only)."""

    confidence: np.ndarray
    silhouette: np.ndarray
    next_cluster: np.ndarray
    next_distance: np.ndarray


class RowFacts(NamedTuple):
    """What the page knows of every row."""

    ids: Any
    labels: np.ndarray
    distance: np.ndarray  # to the own centre
    missing: np.ndarray  # share of gaps
    sure: Sureness


def sureness(distances: np.ndarray, labels: np.ndarray, confidence: np.ndarray) -> Sureness:
    """From the distances (n, k) of the rows to the centres, and their confidence."""
    n, k = distances.shape
    own = distances[np.arange(n), labels]
    others = distances.copy()
    others[np.arange(n), labels] = np.inf
    if k == 1:
        nothing = np.full(n, np.nan)
        return Sureness(np.ones(n), np.zeros(n), np.full(n, -1), nothing)
    following = others.argmin(axis=1)
    other = others[np.arange(n), following]
    silhouette = silhouettes(own, other, labels)
    return Sureness(confidence, silhouette, following, other)


def of_cluster(sure: Sureness, own: np.ndarray) -> dict[str, Any]:
    """What the table of clusters tells of the rows `own`."""
    confidence = sure.confidence[own]
    if not confidence.size:
        return {"confidence": None, "silhouette": None, "levels": [0, 0, 0]}
    between = int((confidence < BETWEEN).sum())
    high = int((confidence >= SURE).sum())
    return {
        "confidence": float(confidence.mean()),
        "silhouette": float(sure.silhouette[own].mean()),
        "levels": [high, int(own.sum()) - high - between, between],
    }


def rows_between(rows: RowFacts) -> list[dict]:
    """The rows that are least sure of their cluster, and the next one."""
    sure = rows.sure
    order = np.argsort(sure.confidence, kind="stable")[:MOST_LISTED]
    return [
        {
            "id": str(rows.ids[i]),
            "cluster": int(rows.labels[i]),
            "next_cluster": int(sure.next_cluster[i]),
            "confidence": float(sure.confidence[i]),
            "missing": float(rows.missing[i]),
        }
        for i in order
        if sure.confidence[i] < BETWEEN and sure.next_cluster[i] >= 0
    ]


def summary(
    sure: Sureness, clusters: list[dict], stability: Any, how_judged: str
) -> dict[str, Any]:
    """The section "How sure is this?": shares, a headline, its reasons, what to do next."""
    n = len(sure.confidence)
    high = float((sure.confidence >= SURE).mean())
    between = int((sure.confidence < BETWEEN).sum())
    told: dict[str, Any] = {
        "kind": KIND,
        "mean_confidence": float(sure.confidence.mean()),
        "sure": high,
        "between": between,
        "silhouette": float(sure.silhouette.mean()),
    }
    if len(clusters) == 1:
        only = "One cluster: there is nothing to be unsure of."
        return told | {"level": "none", "headline": only, "reasons": [], "next": []}
    reasons = [
        f"{percent(high)} of the rows are sure of their cluster (confidence at least {SURE}); "
        f"{between:,} of {n:,} lie between two (below {BETWEEN}).",
        f"The mean silhouette is {told['silhouette']:.2f}, on a scale from -1 to 1: "
        f"{_silhouette_words(told['silhouette'])}.",
    ]
    level = "unjudged"
    if stability is not None:
        level, sentence = _stability_words(np.asarray(stability, float), how_judged)
        reasons.insert(0, sentence)
    if level == "solid" and high < MOST_SURE:
        level = "fair"
    if level in ("solid", "fair") and high < HALF:
        level = "weak"
    if n < FEWEST * len(clusters):
        level = "weak"
        reasons.insert(0, f"There are {n:,} rows for {len(clusters)} clusters: too few to tell.")
    apart = n - max(cluster["rows"] for cluster in clusters)
    if apart <= FEW_ROWS * (len(clusters) - 1) and apart < FEW * n:
        level = "weak"
        told_apart = (
            f"All rows but {apart:,} are in one cluster: the others are outliers." if apart
            else "All rows are in one cluster: the rows do not differ."
        )  # fmt: skip
        reasons.insert(0, told_apart)
    return told | {
        "level": level,
        "headline": HEADLINES[level],
        "reasons": reasons,
        "next": _next_steps(level, clusters, stability, between / n),
    }


HEADLINES = {
    "solid": "These clusters are solid.",
    "fair": "These clusters are there, but not all of it is certain.",
    "weak": "Do not build on these clusters yet.",
    "unjudged": "Whether these clusters would be found again is not known.",
}


def _silhouette_words(value: float) -> str:
    if value > 0.5:
        return "rows lie much closer to their own centre than to the next"
    if value > 0.2:
        return "rows lie closer to their own centre than to the next, with some overlap"
    return "most rows lie about as far from the next centre as from their own"


def _stability_words(stability: np.ndarray, how_judged: str) -> tuple[str, str]:
    solid, gone = stability >= SOLID, stability < DISSOLVED
    how = f"when rows are left out ({how_judged})"
    if solid.all():
        return "solid", f"Every cluster comes back {how}: the least to {percent(stability.min())}."
    if stability.mean() < DISSOLVED or gone.sum() > len(stability) / 2:
        return "weak", (
            f"{int(gone.sum())} of {len(stability)} clusters dissolve {how}: on average a cluster "
            f"comes back to {percent(float(stability.mean()))}."
        )
    doubtful = ", ".join(str(l) for l in np.flatnonzero(~solid))
    return "fair", (
        f"{int(solid.sum())} of {len(stability)} clusters {_come(int(solid.sum()))} back {how}; "
        f"less so: {doubtful}."
    )


def _come(count: int) -> str:
    return "comes" if count == 1 else "come"


def _clusters(numbers: list[int]) -> str:
    """Clusters by their numbers, at the beginning of a sentence.

    Examples
    --------
    >>> _clusters([2]), _clusters([0, 1]), _clusters([0, 1, 4])
    ('Cluster 2', 'Clusters 0 and 1', 'Clusters 0, 1 and 4')
    """
    if len(numbers) == 1:
        return f"Cluster {numbers[0]}"
    return f"Clusters {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _next_steps(level: str, clusters: list[dict], stability: Any, between: float) -> list[str]:
    steps = []
    k = len(clusters)
    if level != "solid":
        steps.append(
            f"Try other numbers of clusters: \u201cselect\u201d with -k 2:{k + 2} compares them, "
            "and shows which clusters stay."
        )
    small = [c["cluster"] for c in clusters if 0 < c["rows"] <= FEW_ROWS]
    if small and len(small) < k:
        who = f"{_clusters(small)} {'has' if len(small) == 1 else 'have'}"
        steps.append(
            f"{who} no more than {FEW_ROWS} rows: look at them among the far rows; "
            "they may be outliers, and leaving them out frees a cluster."
        )
    if between > 0.05:
        steps.append(
            "Treat the rows between clusters as undecided: labels.csv has the confidence of each."
        )
    if stability is None:
        steps.append("How stable the clusters are was not judged: there are too few rows.")
    return steps
