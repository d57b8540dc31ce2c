"""The report: one HTML file that shows what was found, opens without a network and can be printed.

_report  `mnarkmeans.report`: the page of a fitted model, from Python
_content a table under a fitted model, and the numbers of its page
_render  the numbers poured into the template (page.html.j2), every name escaped
page.js  draws charts, rows, centres and table; sorts, saves and filters
"""

from ._content import PAGE_VERSION, FittedTable, page_of, search_facts
from ._render import render
from ._report import Report, report

__all__ = ["PAGE_VERSION", "FittedTable", "Report", "page_of", "render", "report", "search_facts"]
