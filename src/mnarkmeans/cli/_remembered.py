"""A model remembers how its table was read; new tables are read the same way.

Stored under "reading" of the model are the options of `fit`, and what was found where none was
given. What is said now goes first. The delimiter of a text file belongs to the file and is found
anew; so is its encoding, and the one of the fitted table is taken where it is no Unicode.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .._model_files import SavedModel
from ._errors import UserError
from ._formats import kind_of
from ._layout import is_unicode
from ._options import Reading, Rereading
from ._table import Table

KINDS: dict[str, type] = {
    "missing_codes": list, "id_column": str, "transpose": bool, "decimal": str, "header": bool,
    "sheet": str, "layer": str, "encoding": str, "columns": list, "drop": list, "drop_rows": list,
}  # fmt: skip
ONLY_OF = {
    "decimal": ("text", "xlsx"), "header": ("text",), "encoding": ("text",), "sheet": ("xlsx",),
    "layer": ("h5ad",),
}  # fmt: skip


def to_remember(reading: Reading, table: Table) -> dict[str, Any]:
    """For the model file: the options, and what was found."""
    found = {"decimal": table.source.get("decimal"), "id_column": table.source.get("id_column")}
    given = asdict(reading)
    return given | {name: given[name] or value for name, value in found.items()}


def remembered(saved: SavedModel, given: Rereading, data: Path) -> Reading:
    """Read as the fitted table was read, but for what is said now."""
    stored = saved.extra.get("reading") or {}
    if not isinstance(stored, dict):
        raise UserError("reading of the model is damaged; fit the model again")
    kept = {name: _checked(name, stored.get(name)) for name in KINDS}
    kind = kind_of(data)
    for name, only in ONLY_OF.items():
        if kind not in only:
            kept[name] = None
    said = {name: value for name, value in asdict(given).items() if value not in (None, False)}
    if given.header is not None:
        said["header"] = given.header
    kept["transpose"] = bool(kept["transpose"])
    if kept["encoding"] and is_unicode(data):
        kept["encoding"] = None
    return replace(Reading(**kept), **said)


def _checked(name: str, value: Any) -> Any:
    """What a model file says, whose words are not trusted."""
    right = value is None or isinstance(value, KINDS[name])
    if right and isinstance(value, list):
        right = all(isinstance(part, str) for part in value)
    if not right or (name == "decimal" and value not in (None, ".", ",")):
        raise UserError(f"reading/{name} of the model is damaged; fit the model again")
    return value
