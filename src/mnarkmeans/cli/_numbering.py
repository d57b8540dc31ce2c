"""Columns of numbers that measure nothing: identifiers, names in digits, dates, running numbers.

    respondent_id   whole numbers under a name that says identifier
    00017           digits with zeros in front, all of one length: a name
    20240131        a day, if all of a column are days and not all the same
    1, 2, 3, ...    rows counted in their order: an injection, a position in a run

Clusters of such numbers are clusters of who came first. Whoever names the columns to cluster is
believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np

IDENTIFIES = "an identifier by its name"
SURE_ID_NAMES = {"", "id", "index", "unnamed: 0", "row", "rowid", "row_id"}
LIKELY_ID_NAMES = {
    "sample", "sample id", "sample_id", "sampleid", "cell", "cell id", "cell_id", "barcode", "name",
    "gene", "genes", "gene name", "gene names", "gene_id", "protein", "protein id", "protein ids",
    "protein.ids", "protein.group", "majority protein ids", "accession", "metabolite", "lipid",
    "compound", "feature",
}  # fmt: skip
WHO = {
    "sample", "patient", "subject", "respondent", "participant", "person", "case", "record", "row",
    "proband", "id",
}  # fmt: skip
FEATURES = {  # not "probe", which is a sample in German
    "gene", "genes", "geneid", "protein", "proteins", "peptide", "peptides", "precursor",
    "precursors", "accession", "accessions", "uniprot", "ensembl", "hgnc", "symbol", "transcript",
    "transcripts", "probes", "probeset", "metabolite", "metabolites", "biochemical", "lipid",
    "lipids", "compound", "compounds", "analyte", "analytes", "feature", "features", "mirna", "otu",
    "asv", "hmdb", "inchikey", "uniqid",
}  # fmt: skip
COUNTED = {"injection", "index", "order", "sequence", "position", "row"}  # rows in their order
FEWEST_ROWS = 5  # of which 1, 2, 3, ... is no chance
FIRST_DAY, LAST_DAY = 19000101, 21001231
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_DIGITS = re.compile(r"\d{2,}")


def may_name_rows(name: str, surely: bool = False) -> bool:
    """Whether a column of this name may name the rows; surely: also where it holds numbers."""
    known = SURE_ID_NAMES if surely else SURE_ID_NAMES | LIKELY_ID_NAMES
    return name.strip().lower() in known or says_identifier(name)


def says_identifier(name: str) -> bool:
    """Whether a name has the word id, or a number of somebody; ID_1, ID_2 ... are samples.

    Examples
    --------
    >>> [says_identifier(n) for n in ("patientID", "subject-id", "ID_nr", "Case No", "SampleId")]
    [True, True, True, True, True]
    >>> [says_identifier(n) for n in ("ID_1", "lipid", "fluid", "No", "cell number", "ID3")]
    [False, False, False, False, False, False]
    """
    words = words_of(name)
    if any(word.isdigit() for word in words):
        return False
    numbered = words[-1:] in (["nr"], ["no"], ["number"])
    coded = "barcode" in words or ("bar" in words and "code" in words)
    named = not {"id", "identifier", "identification"}.isdisjoint(words)
    return named or coded or (numbered and not WHO.isdisjoint(words))


def names_features(name: str) -> bool:
    """Whether a column of this name says what was measured in a row, and not in whom.

    Examples
    --------
    >>> [names_features(n) for n in ("PG.Genes", "T: Gene names", "ID_REF", "Peptide sample")]
    [True, True, True, False]
    """
    words = set(words_of(name))
    return name.strip().upper() == "ID_REF" or (
        not words.isdisjoint(FEATURES) and words.isdisjoint(WHO - {"id"})
    )


def are_padded(texts: Iterable[str]) -> bool:
    """Whether these are names in digits, with zeros in front.

    Examples
    --------
    >>> are_padded(["0017", "0018"]), are_padded(["17", "18"]), are_padded(["0", "10"])
    (True, False, False)
    """
    found = {text.strip() for text in texts}
    return (
        len(found) > 1
        and len({len(text) for text in found}) == 1
        and all(map(_DIGITS.fullmatch, found))
        and any(text[0] == "0" for text in found)
    )


def not_measured(values: np.ndarray, names: Sequence[str]) -> dict[int, str]:
    """Columns (by position) of numbers that measure nothing by their name or form, and why."""
    found = {}
    for j in np.flatnonzero(_may_be_days(values)).tolist():
        seen = values[~np.isnan(values[:, j]), j]
        if _are_days(seen):
            found[j] = f"dates, such as {seen[0]:.0f}"
    counted = set(running(values))
    for j, name in enumerate(names):
        if j in found:
            continue
        if says_identifier(name) and _whole(values[:, j]):
            found[j] = IDENTIFIES
        elif j in counted and not COUNTED.isdisjoint(words_of(name)):
            found[j] = "counts the rows in their order"
    return found


def running(values: np.ndarray) -> list[int]:
    """Columns (by position) that count the rows in their order, from 0 or 1."""
    if len(values) < FEWEST_ROWS:
        return []
    first = np.flatnonzero(np.isin(values[0], (0, 1)))
    count = np.arange(len(values))
    return [j for j in first.tolist() if np.array_equal(values[:, j], values[0, j] + count)]


def words_of(name: str, *, lower: bool = True) -> list[str]:
    """The words of a name, by capitals and signs between them.

    Examples
    --------
    >>> words_of("PG.ProteinGroups"), words_of("QC_pool3")
    (['pg', 'protein', 'groups'], ['qc', 'pool', '3'])
    """
    return [word.lower() if lower else word for word in _WORD.findall(name)]


def _whole(column: np.ndarray) -> bool:
    seen = column[~np.isnan(column)]
    return bool((seen == np.round(seen)).all())


def _may_be_days(values: np.ndarray) -> np.ndarray:
    """(p,) by the first row alone, as a table may have 100,000 columns."""
    first = values[0] if len(values) else np.empty(0)
    return np.isnan(first) | ((first >= FIRST_DAY) & (first <= LAST_DAY))


def _are_days(seen: np.ndarray) -> bool:
    days = np.unique(seen)
    if len(days) < 2 or days[0] < FIRST_DAY or days[-1] > LAST_DAY or not _whole(days):
        return False
    try:
        for day in days:
            datetime.strptime(f"{day:.0f}", "%Y%m%d")
    except ValueError:
        return False
    return True
