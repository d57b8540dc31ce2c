"""Advice in the words of the command line, where the package speaks Python."""

from __future__ import annotations

import re

OPTIONS = {
    "lam": "--lam", "reference": "--reference", "missing_values": "--missing-value",
    "max_iter": "--max-iter", "n_init": "--starts", "n_clusters": "-k", "n_splits": "--splits",
    "random_state": "--seed", "lams": "--lams", "criterion": "--criterion",
}  # fmt: skip
MECHANISMS = {
    "mcar": "by chance alone",
    "mnar0": "near the reference, fading with the distance (mnar0)",
    "mnar1": "near the reference, at most every second one (mnar1)",
    "mnar2": "all those closest to the reference (mnar2)",
    "decay": "near the reference, fading with the distance (decay)",
    "threshold": "all those closest to the reference (threshold)",
    "limit": "below a soft detection limit (limit)",
    "class": "at a rate of each cluster (class)",
}
_GIVEN = re.compile(rf"\b({'|'.join(OPTIONS)})=(['\"]?)([\w.+-]*\w)\2")
_TWICE = re.compile(r"(--missing-value 0) \(--missing-value 0 on the command line\)")
_ROW = re.compile(rf"^  ({'|'.join(MECHANISMS)}) +strength", re.MULTILINE)


def spoken(text: str) -> str:
    """The text with parameters as options.

    Examples
    --------
    >>> spoken('try reference="min" with lam=0; MNARKMeansCV also tries larger penalties')
    'try --reference min with --lam 0; mnarkmeans select also tries larger penalties'
    """
    text = _GIVEN.sub(lambda found: f"{OPTIONS[found[1]]} {found[3]}", text)
    text = _TWICE.sub(r"\1", text).replace("MNARKMeansCV", "mnarkmeans select")
    text = text.replace("smaller than n_clusters", "smaller than -k")
    return _ROW.sub(lambda found: f"  {MECHANISMS[found[1]]:<55} strength", text)
