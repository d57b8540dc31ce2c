"""The report: one HTML file that shows what was found, opens without a network and can be printed.

_report  `mnarkmeans.report`: the page of a fitted model, from Python
_fitted  a table under a fitted model, every part computed once
_content the numbers of the page, a plain dict that JSON can hold
_render  the numbers poured into the template (page.html.j2), every name escaped; charts as SVG
page.js  draws rows, centres and table (placed by _embedding), sorts, saves and filters
"""

from ._content import PAGE_VERSION, page_of, search_facts
from ._fitted import FittedTable
from ._render import render
from ._report import Report, report

__all__ = [
    "PAGE_VERSION",
    "FittedTable",
    "Report",
    "page_of",
    "render",
    "report",
    "search_facts",
]
