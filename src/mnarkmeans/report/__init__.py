"""One HTML file that tells what was found, opens without a network and can be printed.

_page     the numbers of the page, a plain dict that JSON can hold
_svg      small charts, drawn as SVG that follows the page's colours
_render   the numbers poured into the template (page.html.j2), every name escaped
page.js   draws the rows as points (computed in displays._embedding), sorts and filters tables
"""

from ._page import collect
from ._render import render

__all__ = ["collect", "render"]
