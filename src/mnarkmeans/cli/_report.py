"""`mnarkmeans report`: draw the page again from report.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..report import render
from ..report._page import PAGE_VERSION
from ._console import Console
from ._errors import UserError
from ._output import claimed_file


def report(console: Console, folder: Path, title: str | None) -> None:
    """Replace report.html, which is ours to replace, in a folder written by fit."""
    page = read_page(folder)
    if title is not None:
        page["title"] = title
    try:
        html = render(page)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{folder / 'report.json'} lacks a part of the report ({error}); run fit again"
        ) from error
    target = folder / "report.html"
    with claimed_file(target, force=True) as claim, claim.file() as path:
        path.write_text(html, encoding="utf-8")
    console.say(f"written to {target}")
    console.result({"output": str(target), "bytes": len(html.encode())})


def read_page(folder: Path) -> dict[str, Any]:
    """The stored numbers, checked."""
    path = folder / "report.json"
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; name one written by fit or select")
    if not path.is_file():
        raise UserError(f"{folder} holds no report.json; name a folder written by fit or select")
    try:
        page = json.loads(path.read_text(encoding="utf-8"))
        version = int(page["page_version"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is damaged; run fit again") from error
    if version > PAGE_VERSION:
        raise UserError(
            f"{path} was written by a newer version; run pip install --upgrade mnarkmeans"
        )
    return page
