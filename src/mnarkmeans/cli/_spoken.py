"""Advice in the words of the command line, where the package speaks Python."""

from __future__ import annotations

import re

from ..missingness._diagnose import IN_SHORT
from ._errors import UserError, one_line

OPTIONS = {
    "lam": "--lam", "reference": "--reference", "missing_values": "--missing-value",
    "max_iter": "--max-iter", "n_init": "--starts", "n_clusters": "-k", "n_splits": "--splits",
    "random_state": "--seed", "lams": "--lams", "criterion": "--criterion",
    "id_column": "--id-column",
}  # fmt: skip
_GIVEN = re.compile(rf"\b({'|'.join(OPTIONS)})=(['\"]?)([\w.+-]*\w)\2")
_TWICE = re.compile(r"(--missing-value 0) \(--missing-value 0 on the command line\)")
_NAMED = re.compile(rf"\b({'|'.join(name for name in OPTIONS if '_' in name)})\b")
_VERBS = {"MNARKMeansCV": "mnarkmeans select", "MNARKMeans": "mnarkmeans fit", "n_samples=": ""}
_ROW = re.compile(rf"^  ({'|'.join(IN_SHORT)}) +strength", re.MULTILINE)


def spoken(text: str) -> str:
    """The text with parameters as options.

    Examples
    --------
    >>> spoken('try reference="min" with lam=0; MNARKMeansCV also tries larger penalties')
    'try --reference min with --lam 0; mnarkmeans select also tries larger penalties'
    >>> spoken("n_samples=3 usable rows should be >= n_clusters=8. Check missing_values.")
    '3 usable rows should be >= -k 8. Check --missing-value.'
    """
    text = _GIVEN.sub(lambda found: f"{OPTIONS[found[1]]} {found[3]}", text)
    for name, words in _VERBS.items():
        text = text.replace(name, words)
    text = _NAMED.sub(lambda found: OPTIONS[found[1]], _TWICE.sub(r"\1", text))
    return _ROW.sub(lambda found: f"  {_in_short(found[1]):<55} strength", text)


def _in_short(mechanism: str) -> str:
    name = "" if mechanism == "mcar" else f" ({mechanism})"
    return IN_SHORT[mechanism] + name


def as_told(error: Exception) -> UserError:
    """What the package found wrong, as one sentence of the command line."""
    return UserError(spoken(one_line(error)))
