"""`mnarkmeans report`: make report.html again from report.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .._report import PAGE_VERSION, render
from ._claims import claimed
from ._console import UserError
from ._options import ConsoleOptions, argument, option


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ConsoleOptions):
    folder: Path = argument("OUT", "A folder written by fit or select.")
    title: str | None = option(None, "Title of the report.", panel="Output")


def report(page: ReportOptions) -> None:
    """Make report.html again from the numbers stored beside it.

    Example: mnarkmeans report result --title "Plasma proteome"
    """
    path, target = page.folder / "report.json", page.folder / "report.html"
    if not path.is_file():
        raise UserError(f"there is no file {path}; give a folder written by fit or select")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if int(content["page_version"]) != PAGE_VERSION:
            raise UserError(f"{path} was written by another version of mnarkmeans; run fit again")
        html = render(content | ({"title": page.title} if page.title else {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({error}); run fit again") from error
    with claimed(target, force=True) as claim, claim.writing() as folder:
        (folder / claim.place.name).write_text(html, encoding="utf-8")
    page.console.say(f"written to {target}")
    page.console.result({"output": str(target), "bytes": len(html.encode())})
