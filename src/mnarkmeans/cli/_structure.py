"""Which columns are samples, which rows are features, and which are neither, told from names.

Programs name their columns in ways of their own, and accessions of databases have a form: both are
reasons to read a table one way and not the other. Numbers have no say here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from ._numbering import FEWEST_ROWS, names_features, running
from ._table import Table

# One column for each sample, as programs write them; where a file has several kinds, the first.
SAMPLE_COLUMNS = (
    "LFQ intensity *", "* MaxLFQ Intensity", "Reporter intensity corrected *", "Intensity *",
    "* Intensity", "Abundances (Normalized)*", "Abundance: *", "Abundance Ratio: *",
    "*.PG.Quantity", "*.PG.IBAQ", "*.raw", "*.mzML", "*.wiff", "*.d", "*.dia", "*.htrms",
    "*Peak area", "* Area", "Area: *",
)  # fmt: skip
ABOUT_FEATURES = {
    "length", "mass", "mz", "m/z", "rt", "retention time", "rt [min]", "mol. weight [kda]",
    "mw [kda]", "score", "q-value", "qvalue", "pg.qvalue", "start", "end", "peptides",
    "unique peptides", "# peptides", "n.sequences", "n.proteotypic.sequences", "chromosome",
    "charge", "coverage", "coverage [%]", "protein length", "number of proteins", "gweight",
    "mean", "sd", "cv", "rsd", "median", "total", "sum", "p", "p value", "p-value", "pvalue",
    "p.value", "adj.p.val", "padj", "fdr", "fold change", "log2fc", "log2foldchange",
}  # fmt: skip
# Accessions: Ensembl, UniProt, RefSeq, the Human Metabolome Database, KEGG compounds, LIPID MAPS.
_ACCESSION = re.compile(
    r"^(ENS[A-Z]*[GTPE]\d{11}|[OPQ]\d[A-Z\d]{3}\d|[A-NR-Z]\d([A-Z][A-Z\d]{2}\d){1,2}"
    r"|[NX][MRP]_\d{6,}|HMDB\d{5,}|C\d{5}|LM[A-Z]{2}\d{8,}|(sp|tr)\|\w+\|\w+)(\.\d+)?(;.*)?$"
)
MOST_IDS = 200  # looked at
CLASSES = {
    "group", "groups", "class", "label", "labels", "cluster", "condition", "batch", "treatment",
    "target", "outcome", "diagnosis", "cell type", "celltype", "cell_type", "plate", "site",
}  # fmt: skip
# How a survey was taken, as Qualtrics writes it beside the answers.
ABOUT_ANSWERS = {
    "Status", "Progress", "Duration (in seconds)", "Finished", "LocationLatitude",
    "LocationLongitude",
}  # fmt: skip
FEW_VALUES = 12  # of a column that is a class, whatever it is called
FLAGS = ("Reverse", "Potential contaminant", "Contaminant", "Only identified by site")
FLAGGED = ("+", "true", "yes", "y", "x", "1")
NO_FEATURES = (
    "REV__*", "CON__*", "rev_*", "contam_*", "Cont_*", "DECOY_*", "__*", "N_unmapped",
    "N_multimapping", "N_noFeature", "N_ambiguous",
)  # fmt: skip


def family_of(names: Sequence[str]) -> str | None:
    """The first pattern of sample columns that three names have.

    Examples
    --------
    >>> family_of(["Peptides", *(f"Intensity {i}" for i in "abc")])
    'Intensity *'
    """
    for pattern in SAMPLE_COLUMNS:
        if sum(fnmatchcase(name, pattern) for name in names) >= 3:
            return pattern
    return None


def describing(names: Sequence[str]) -> list[str]:
    """Columns that describe features and are no samples."""
    return [name for name in names if name.strip().lower() in ABOUT_FEATURES]


def rows_are_features(table: Table) -> str | None:
    """Why the rows of this table are features, if they are."""
    if names_features(table.id_name):
        return f"rows are named by {table.id_name!r}: they are features, and columns are samples"
    left_out = {name.strip().lower() for name, _ in table.left_out}
    if table.id_name.strip().lower() == "name" and "description" in left_out:
        return "rows have a name and a description: they are features, and columns are samples"
    ids = [str(name) for name in table.ids[:MOST_IDS]]
    if sum(_ACCESSION.match(name) is not None for name in ids) > len(ids) / 2:
        return f"row names such as {ids[0]!r} are accessions: rows are features, columns samples"
    return None


def flagged_rows(table: Table, transposed: bool) -> list[str]:
    """Rules for rows that a program marked as decoys or contaminants, by a flag or their name."""
    rules = []
    for name in FLAGS:
        words = table.words.get(name, ())
        mark = next((w for flag in FLAGGED for w in words if w.strip().lower() == flag), None)
        if mark is not None:
            rules.append(f"{name}={mark}")
    named_by = table.source.get("id_column")
    if rules or not named_by:
        return rules
    named = [str(name) for name in (table.features if transposed else table.ids)]
    return [
        f"{named_by}={pattern}"
        for pattern in NO_FEATURES
        if any(fnmatchcase(name, pattern) for name in named)
    ]


def about_answers(table: Table) -> list[str]:
    """Columns that tell how a survey was taken: several by the names that its program gives."""
    found = [name for name in table.features if name in ABOUT_ANSWERS]
    return found if len(found) >= 3 else []


def known_classes(table: Table) -> list[str]:
    """Columns that are called like classes and have few values, all of them whole."""
    found = []
    for j, name in enumerate(table.features):
        if name.strip().lower() in CLASSES and table.shape[1] > 1:
            column = table.with_features(np.array([j])).dense()[:, 0]
            values = np.unique(column[~np.isnan(column)])
            if len(values) <= FEW_VALUES and (values == np.round(values)).all():
                found.append(name)
    return found


def counting(table: Table) -> list[str]:
    """Columns that count the rows in their order, beside others that do not."""
    begin = slice(0, FEWEST_ROWS)
    part = Table(table.values[begin], table.ids[begin], table.features).dense()
    maybe = running(part)
    whole = table.with_features(np.array(maybe, dtype=int)).dense() if maybe else part[:, :0]
    found = [table.features[maybe[i]] for i in running(whole)]
    return found if len(found) < table.shape[1] else []
