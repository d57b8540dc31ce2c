"""What cells and names say: a number, a mark for missing or a word; a sample, a gene, a statistic.

1,5  1.5           the decimal sign, one in a file
1.234,5  1,234.5   both signs together leave no doubt which is which
1 234,5  1'234.5   blanks and apostrophes group thousands
1,500              may be either: the user has to say
n.d.  -  #N/A      marks for missing that laboratories and spreadsheets use
<0.5  <LOD         values below a limit: missing as well
00017              a name, not a number
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

# --- cells ------------------------------------------------------------------------------------

# Missing in every column, also among texts.
SURE_MARKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "filtered"})
SURE_SPELLINGS = sorted(
    {"NaN", "-NaN", *(f(m) for m in SURE_MARKS for f in (str.lower, str.upper, str.capitalize))}
)
# Missing where a number is expected; blanks within them do not matter.
LAB_MARKS = frozenset({
    "n.a.", "nd", "n.d.", "n/d", "nq", "n.q.", "n.n.", "-", "--", "–", "—", "\u2212", "?", ".",
    "*", "lod", "loq", "lloq", "bdl", "bld", "bql", "blq", "undetected", "undetermined",
    "notdetected", "missing", "nichtnachweisbar", "#num!", "#div/0!", "#value!", "#ref!", "#nv",
})  # fmt: skip
_BELOW = re.compile(r"^(<|≤|<=)\s*([^\W\d_]{1,8}|[\d.,]+(e[+-]?\d+)?)$", re.I)
_WITH_UNIT = re.compile(r"^[~<>=≤≥±]*\s*[+-]?\d[\d.,'\s]*(e[+-]?\d+)?\s*[^\d]{0,12}$", re.I)
_SPACE = "[ \u00a0\u2009\u202f'\u2019]"
_SPACED = re.compile(rf"^[+-]?\d{{1,3}}({_SPACE}\d{{3}})+([.,]\d+)?$")
_MINUS = re.compile(r"^[\u2212\u2013](?=[\d.,])|(?<=\de)[\u2212\u2013](?=\d)", re.I)
_GROUPED = re.compile(r"^[+-]?[1-9]\d{0,2}([.,])\d{3}(\1\d{3})*((?!\1)[.,]\d+)?$")
OTHER = {",": ".", ".": ","}


def is_mark(text: str, *, surely: bool = False) -> bool:
    """Whether a text means missing where a number is expected; surely: whatever the column."""
    joined = "".join(text.lower().split())
    return joined in SURE_MARKS or (
        not surely and (joined in LAB_MARKS or _BELOW.match(text.strip()) is not None)
    )


def as_float(text: str, decimal: str = ".", *, grouped: bool = False) -> float | None:
    """The number a text is, with this decimal sign, or None; grouped: 1,234 is above a thousand."""
    if not text.isascii():
        text = _MINUS.sub("-", text)
    if _SPACED.match(text):
        text = re.sub(_SPACE, "", text)
    match, other = _GROUPED.match(text), OTHER[decimal]
    if match and match[1] == other and (grouped or match[2] or match[3]):
        text = text.replace(other, "")
    if "_" in text or (decimal == "," and "." in text):
        return None
    try:
        return float(text.replace(decimal, "."))
    except ValueError:
        return None


def is_value(text: str, decimal: str = ".") -> bool:
    """Whether a text can stand in a column of numbers without further knowledge."""
    return as_float(text, decimal) is not None or is_mark(text, surely=True)


def are_padded(texts: Iterable[str]) -> bool:
    """Whether these are names made of digits, some with zeros in front (0017)."""
    padded = False
    for text in map(str.strip, texts):
        if not (text.isascii() and text.isdigit()):  # most columns: at once
            return False
        padded |= text[0] == "0" and len(text) > 1
    return padded


def are_grouped(texts: Sequence[str], decimal: str) -> bool:
    """Whether these look like whole numbers, and only those above 999 have the sign: 950, 12.500"""
    signed = [text for text in texts if decimal in text]
    whole = [text for text in texts if text.isdigit()]
    alike = all(as_float(t, OTHER[decimal], grouped=True) is not None for t in signed)
    return bool(signed and whole) and alike and all(len(text) < 4 for text in whole)


def say_decimal(sign: str) -> str:
    """What to do where a sign may be the decimal sign or group thousands."""
    return (f'if "{sign}" is the decimal sign of the whole file add --decimal "{sign}", if it '
            f'groups thousands add --decimal "{OTHER[sign]}"')  # fmt: skip


def find_decimal(rows: list[list[str]], delimiter: str) -> str:
    """The decimal sign that more cells have.

    1,500 counts as a decimal comma only between semicolons, which spreadsheets use with it.
    """
    usual, times = "," if delimiter == ";" else ".", Counter[str]()
    for text in (text.strip() for row in rows for text in row[:1000]):
        signs = [sign for sign in OTHER if as_float(text, sign, grouped=True) is not None]
        if len(signs) == 2:  # a whole number, or one that may have thousands
            signs = [sign for sign in signs if sign == usual and sign in text]
        times.update(signs)
    return "," if times[","] > times["."] else "."


class Cells(NamedTuple):
    """A column of texts read as numbers: the numbers, and what the other cells hold."""

    numbers: np.ndarray  # NaN where there is none
    marks: Counter[str] = Counter()  # marks for missing
    words: Counter[str] = Counter()  # everything else

    @property
    def n_numbers(self) -> int:
        """How many cells are numbers."""
        return int((~np.isnan(self.numbers)).sum())

    @property
    def doubtful(self) -> str | None:
        """A word that is a number with another decimal sign, or thousands."""
        return next((word for word in self.words for sign in OTHER
                     if {*word} & {*OTHER} and as_float(word, sign, grouped=True) is not None),
                    None)  # fmt: skip

    @property
    def looks_measured(self) -> bool:
        """Whether half the cells are numbers to a person: with units, percent signs, thousands."""
        like = sum(times for text, times in self.words.items() if _WITH_UNIT.match(text))
        return like > 0 and self.n_numbers + 2 * like >= self.words.total()


def read_cells(
    column: Any, decimal: str, codes: Sequence[str] = (), *, grouped: bool = False
) -> Cells:
    """Read a column of texts (and numbers) cell by cell; each distinct cell once.

    codes : texts and numbers that mean missing; grouped : the other decimal sign groups thousands
    """
    if column.dtype.kind == "f":
        return Cells(without_codes(column, codes))
    import pandas as pd

    place, distinct = pd.factorize(column.astype(object))
    times = np.bincount(place[place >= 0], minlength=len(distinct)).tolist()
    texts = [str(value).strip() for value in distinct]
    are_names = are_padded(text for text in texts if not is_mark(text, surely=True))
    missing = {*codes}, {as_float(code) for code in codes}
    numbers = np.full(len(texts) + 1, np.nan)  # the last one is for missing cells (place -1)
    marks, words = Counter[str](), Counter[str]()
    for i, (value, text) in enumerate(zip(distinct, texts, strict=True)):
        if text in missing[0] or is_mark(text, surely=True):
            continue
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        number = float(value) if is_number else as_float(text, decimal, grouped=grouped)
        if number is None or are_names:
            (marks if is_mark(text) else words)[text] += times[i]
        elif number not in missing[1]:
            numbers[i] = number
    return Cells(numbers[place], marks, words)


def without_codes(values: Any, codes: Sequence[str]) -> Any:
    """The values with codes for missing as NaN (not stored, if sparse)."""
    stored = values.data if sp.issparse(values) else values
    numbers = [number for number in map(as_float, codes) if number is not None]
    if not numbers and not sp.issparse(values):
        return values
    hit = np.isin(stored, np.array(numbers, dtype=stored.dtype))
    if not sp.issparse(values):
        return np.where(hit, stored.dtype.type(np.nan), stored) if hit.any() else values
    hit |= np.isnan(stored)
    coo = values.tocoo()
    return sp.csr_matrix((coo.data[~hit], (coo.row[~hit], coo.col[~hit])), shape=values.shape)


def listed(words: Counter[str]) -> str:
    """Words with how often they occur, the most frequent first."""
    items = [f"{shortened(word)!r} ({times:,})" for word, times in words.most_common(5)]
    return ", ".join(items) + (f" and {len(words) - 5:,} more" if len(words) > 5 else "")


def shortened(text: str) -> str:
    """A text of a table, cut for a sentence."""
    return text if len(text) <= 30 else text[:27] + "..."


# --- names ------------------------------------------------------------------------------------

# Columns that hold one sample each, as programs name them; the first family that fits is used.
SAMPLE_COLUMNS = (
    "LFQ intensity *", "* MaxLFQ Intensity", "Reporter intensity corrected *", "Intensity *",
    "* Intensity", "Abundances (Normalized)*", "Abundance: *", "*.PG.Quantity", "*.raw", "*.mzML",
    "*.wiff", "*.d", "*.dia", "*Peak area", "* Area", "Area: *",
)  # fmt: skip
_ROLES = {
    "feature": "gene genes geneid protein proteins peptide peptides precursor accession accessions "
    "ensembl symbol transcript probeset metabolite metabolites biochemical lipid lipids compound "
    "compounds analyte feature features otu asv hmdb ref",
    "sample": "sample patient subject respondent participant person case record row proben",
    "class": "group class label cluster condition batch treatment diagnosis",
    "control": "qc qcs pool pools pooled blank blanks blk calibrator empty",
    "statistic": "mean average median sd std stdev sem cv rsd pvalue padj qvalue fdr fc logfc "
    "foldchange",
    "description": "length mass mz rt retention charge score weight coverage peptides",
    "unit": "min k da mol time row protein sequence",  # beside a description
}
ROLES = {role: frozenset(words.split()) for role, words in _ROLES.items()}
STATISTICS = ({"p", "value"}, {"q", "value"}, {"p", "val"}, {"fold", "change"})  # in two words
ID_NAMES = {"", "id", "index", "unnamed: 0", "row"}  # name the rows even where they are numbers
LIKELY_IDS = {
    "sample", "cell", "barcode", "name", "gene", "genes", "gene names", "protein", "protein ids",
    "protein.group", "majority protein ids", "accession", "metabolite", "compound", "feature",
}  # fmt: skip
GENE_COLUMNS = ("gene names", "genes", "pg.genes", "gene", "gene symbol", "gene name")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Not ID_1 and ID_2, which are samples, nor cell number, which counts.
_IDENTIFIER = re.compile(
    r"(?i:(^|[\W_])(id|identifier|identification|bar ?code)(?![^\W_])(?![\W_]*\d))|[a-z]I[Dd]\b"
    r"|(?i:(sample|patient|subject|person|case|record|row|proben?)\W*(nr|no|number)\b)"
)


def words_of(name: str) -> set[str]:
    """The words of a name in lower case, by capitals and punctuation."""
    return {word.lower() for word in _WORD.findall(name)}


def has_role(name: str, role: str) -> bool:
    """Whether one of the words of a name belongs to a role, such as a control."""
    return not ROLES[role].isdisjoint(words_of(name))


def describes_features(name: str) -> bool:
    """Whether a column of this name describes features: a statistic, a mass, a retention time."""
    words = {word for word in words_of(name.replace("m/z", "mz")) if not word.isdigit()}
    known = words & ROLES["description"]
    statistic = words & ROLES["statistic"] or any(pair <= words for pair in STATISTICS)
    return bool(statistic or (known and words <= known | ROLES["unit"]))


def is_identifier(name: str) -> bool:
    """Whether a name has the word id, or is the number of somebody."""
    return _IDENTIFIER.search(name) is not None


def may_name_rows(name: str, *, surely: bool = False) -> bool:
    """Whether a column of this name may name the rows; surely: even if it holds numbers."""
    known = ID_NAMES if surely else ID_NAMES | LIKELY_IDS
    return name.strip().lower() in known or is_identifier(name)


def names_features(name: str) -> bool:
    """Whether a column of this name says what was measured in a row, not in whom."""
    return has_role(name, "feature") and not has_role(name, "sample")


def sample_family(names: Sequence[str]) -> str | None:
    """The first pattern of sample columns that at least three names match."""
    return next((pattern for pattern in SAMPLE_COLUMNS
                 if sum(fnmatchcase(name, pattern) for name in names) >= 3), None)  # fmt: skip


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of the patterns or matches one."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)
