"""Names of columns and rows, word by word: what they say about the role of a column.

Every rule has a file in tests/tables that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

# Columns that hold one sample each, as programs name them; the first family that fits is used.
SAMPLE_COLUMNS = (
    "LFQ intensity *", "* MaxLFQ Intensity", "Reporter intensity corrected *", "Intensity *",
    "* Intensity", "Abundances (Normalized)*", "Abundance: *", "*.PG.Quantity", "*.raw", "*.mzML",
    "*.wiff", "*.d", "*.dia", "*Peak area", "* Area", "Area: *",
)  # fmt: skip
_ROLES = {
    "feature": "gene genes geneid protein proteins peptide peptides precursor accession accessions "
    "ensembl symbol transcript probeset metabolite metabolites biochemical lipid lipids compound "
    "compounds analyte feature features otu asv hmdb",
    "sample": "sample patient subject respondent participant person case record row proben id",
    "class": "group class label cluster condition batch treatment diagnosis",
    "control": "qc qcs pool pools pooled blank blanks blk calibrator empty",
    "statistic": "mean average median sd std stdev sem cv rsd pvalue padj qvalue fdr fc logfc "
    "foldchange",
    "description": "length mass mz rt charge score weight coverage peptides",
    "order": "injection index order position row",
}
ROLES = {role: frozenset(words.split()) for role, words in _ROLES.items()}
STATISTICS = ({"p", "value"}, {"q", "value"}, {"p", "val"}, {"fold", "change"})  # in two words
ID_NAMES = {"", "id", "index", "unnamed: 0", "row"}  # name the rows even where they are numbers
LIKELY_IDS = {
    "sample", "cell", "barcode", "name", "gene", "genes", "gene names", "protein", "protein ids",
    "protein.group", "majority protein ids", "accession", "metabolite", "compound", "feature",
}  # fmt: skip
SURVEY_FACTS = {  # written beside the answers by Qualtrics
    "Status", "Progress", "Duration (in seconds)", "Finished", "LocationLatitude",
    "LocationLongitude",
}  # fmt: skip
FLAGS = ("Reverse", "Potential contaminant", "Contaminant", "Only identified by site")
FLAGGED = ("+", "true", "1")
DECOYS = ("REV__*", "CON__*", "rev_*", "contam_*", "DECOY_*", "__*", "N_unmapped", "N_noFeature")
GENE_COLUMNS = ("gene names", "genes", "pg.genes", "gene", "gene symbol", "gene name")
# Ensembl, UniProt and the two forms of it in FASTA headers.
_ACCESSION = re.compile(
    r"^(ENS[A-Z]*[GTP]\d+|[OPQ]\d[A-Z\d]{3}\d|[A-NR-Z]\d([A-Z][A-Z\d]{2}\d){1,2}"
    r"|(sp|tr)\|\w+\|\w+)(\.\d+)?(;.*)?$"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(name: str) -> list[str]:
    """The words of a name in lower case, by capitals and punctuation.

    Examples
    --------
    >>> words_of("PG.ProteinGroups"), words_of("QC_pool3")
    (['pg', 'protein', 'groups'], ['qc', 'pool', '3'])
    """
    return [word.lower() for word in _WORD.findall(name)]


def is_statistic(name: str) -> bool:
    """Whether a column of this name sums up or compares samples.

    Examples
    --------
    >>> [is_statistic(n) for n in ("Mean", "CV [%]", "p-value", "log2 FC", "adj.P.Val", "S01")]
    [True, True, True, True, True, False]
    """
    words = set(words_of(name))
    return not words.isdisjoint(ROLES["statistic"]) or any(pair <= words for pair in STATISTICS)


def describes_features(name: str) -> bool:
    """Whether a column of this name describes features: a statistic, a mass, a retention time."""
    words = {word for word in words_of(name.replace("m/z", "mz")) if not word.isdigit()}
    known = words & ROLES["description"]
    units = {"min", "k", "da", "mol", "row", "protein", "sequence"}
    return is_statistic(name) or bool(known and words <= known | units)


def is_control(name: str) -> bool:
    """Whether a sample of this name is a pool, a blank or a calibrator.

    Examples
    --------
    >>> [is_control(name) for name in ("QC_01", "PooledQC-3.raw", "Blank 2", "Patient 3", "QCA")]
    [True, True, True, False, False]
    """
    return not ROLES["control"].isdisjoint(words_of(name))


def is_identifier(name: str) -> bool:
    """Whether a name has the word id, or a number of somebody; ID_1, ID_2 are samples.

    Examples
    --------
    >>> [is_identifier(n) for n in ("patientID", "Case No", "ID_1", "lipid", "cell number")]
    [True, True, False, False, False]
    """
    words = words_of(name)
    if any(word.isdigit() for word in words):
        return False
    named = not {"id", "identifier", "identification", "barcode"}.isdisjoint(words)
    named = named or {"bar", "code"} <= set(words)
    numbered = words[-1:] in (["nr"], ["no"], ["number"])
    return named or (numbered and not ROLES["sample"].isdisjoint(words))


def may_name_rows(name: str, *, surely: bool = False) -> bool:
    """Whether a column of this name may name the rows; surely: even if it holds numbers."""
    known = ID_NAMES if surely else ID_NAMES | LIKELY_IDS
    return name.strip().lower() in known or is_identifier(name)


def names_features(name: str) -> bool:
    """Whether a column of this name says what was measured in a row, not in whom.

    Examples
    --------
    >>> [names_features(n) for n in ("PG.Genes", "T: Gene names", "ID_REF", "Peptide sample")]
    [True, True, True, False]
    """
    words = set(words_of(name))
    sample = ROLES["sample"] - {"id"}
    known = not words.isdisjoint(ROLES["feature"]) and words.isdisjoint(sample)
    return known or name.strip().upper() == "ID_REF"


def are_accessions(names: Sequence[str]) -> bool:
    """Whether most of these names are accession numbers of genes or proteins."""
    return sum(_ACCESSION.match(name) is not None for name in names) > len(names) / 2


def sample_family(names: Sequence[str]) -> str | None:
    """The first pattern of sample columns that at least three names match.

    Examples
    --------
    >>> sample_family(["Peptides", *(f"Intensity {i}" for i in "abc")])
    'Intensity *'
    """
    for pattern in SAMPLE_COLUMNS:
        if sum(fnmatchcase(name, pattern) for name in names) >= 3:
            return pattern
    return None


def control_patterns(names: Sequence[str]) -> list[str]:
    """Patterns that match the controls among samples and nothing else; none if most are controls.

    Examples
    --------
    >>> control_patterns(["S1", "S2", "S3", "S4", "QC_1", "QC_2"])
    ['*QC*']
    """
    controls = [name for name in names if is_control(name)]
    if not controls or 2 * len(controls) >= len(names):
        return []
    others = [name for name in names if not is_control(name)]
    patterns: list[str] = []
    for name in controls:
        if not matches(name, patterns):
            word = next(w for w in _WORD.findall(name) if w.lower() in ROLES["control"])
            unique = not any(fnmatchcase(other, f"*{word}*") for other in others)
            patterns.append(f"*{word}*" if unique else name)
    return patterns


def are_padded(texts: Iterable[str]) -> bool:
    """Whether these are names made of digits, with zeros in front.

    Examples
    --------
    >>> are_padded(["0017", "0018"]), are_padded(["17", "18"]), are_padded(["0", "10"])
    (True, False, False)
    """
    distinct = {text.strip() for text in texts}
    return (
        len(distinct) > 1
        and len({len(text) for text in distinct}) == 1
        and all(len(text) > 1 and text.isascii() and text.isdigit() for text in distinct)
        and any(text[0] == "0" for text in distinct)
    )


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of the patterns or matches one."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)
