"""Tables that can be read and do not mean what clustering takes them for.

    answers in words     many columns with the same few words, the numbers are something else
    one value in a line  a column of samples and one of features, each pair once: a long table

Both would give clusters of what is left, and nobody would be told. Whoever names the columns to
cluster is believed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ._errors import UserError
from ._marks import shortened

FEW_ANSWERS = 12  # different words of a scale
FEWEST_QUESTIONS = 3  # columns with the same words
FEW_NUMBERS = 3  # columns of numbers in a long table: the value, its limit, its error
FULL = 0.5  # share of the pairs of samples and features that a long table has


def check_meaning(
    frame: Any,
    names: list[str],
    reasons: list[str | None],
    vocabularies: dict[str, tuple[str, ...]],
) -> None:
    """Refuse a survey whose answers are words, and a table with one value in each line."""
    numeric = [name for name, reason in zip(names, reasons, strict=True) if reason is None]
    _check_answers(vocabularies, len(numeric))
    if len(numeric) <= FEW_NUMBERS:
        _check_long(frame, [n for n, r in zip(names, reasons, strict=True) if r is not None])


def _check_answers(vocabularies: dict[str, tuple[str, ...]], numbers: int) -> None:
    """Questions of one scale share its words: most columns have one of the commonest two."""
    times: Counter[str] = Counter()
    for words in vocabularies.values():
        times.update(set(words) if len(words) > 1 else ())
    common = {word for word, columns in times.items() if columns >= FEWEST_QUESTIONS}
    asked = [name for name, words in vocabularies.items() if len(words) > 1 and common >= {*words}]
    if len(asked) < FEWEST_QUESTIONS or len(asked) <= numbers:
        return
    scale = [word for word, _ in times.most_common() if word in common]
    shown = ", ".join(repr(shortened(word)) for word in scale[:4]) + (" ..." if scale[4:] else "")
    others = f"only {numbers} {'columns are' if numbers != 1 else 'column is'} numbers"
    raise UserError(
        f"{len(asked)} columns, such as {asked[0]!r}, hold answers in words ({shown}), and "
        f"{others}; write the answers as numbers in their order, such as 1 to 5, or name the "
        "columns to cluster with --columns"
    )


def _check_long(frame: Any, texts: list[str]) -> None:
    """A pair of columns of names, each name again and again, every pair once and most pairs."""
    repeated = [
        n for n in texts if 3 <= frame[n].nunique() <= len(frame) / 3 and frame[n].notna().all()
    ]
    for i, one in enumerate(repeated[:6]):
        for other in repeated[i + 1 : 6]:
            pairs = frame[one].nunique() * frame[other].nunique()
            if FULL * pairs <= len(frame) <= pairs and not frame.duplicated([one, other]).any():
                raise UserError(
                    f"every line seems to hold one value, of {one!r} and {other!r}: a long table; "
                    "make it wide first, one row for each sample and one column for each feature "
                    "(a pivot table), or name the columns to cluster with --columns"
                )
