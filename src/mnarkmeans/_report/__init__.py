"""The report: one HTML file that shows what was found, opens without a network and can be printed.

_report       `mnarkmeans.report`: the page of a fitted model, from Python
_fitted       a table under a fitted model, every part computed once
_page         the numbers of the page, a plain dict that JSON can hold
_rows         where rows lie, a sample of the table, far rows
_annotations  what else is known of the rows, crossed with the clusters
_flow         rows flowing between the clusters of neighbouring lam or k
_svg          charts (described in displays/_chart) as SVG that follows the page's colours
_heatmap      the centres
_render       the numbers poured into the template (page.html.j2), every name escaped
page.js       draws the rows as points (placed by _embedding), sorts and filters tables
"""

from ._fitted import FittedTable
from ._page import lam_words, page_of, search_facts
from ._render import render
from ._report import Report, report

__all__ = ["FittedTable", "Report", "lam_words", "page_of", "render", "report", "search_facts"]
