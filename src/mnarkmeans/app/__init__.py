"""The command line behind a local page: ``mnarkmeans app``.

_server   the page, uploads and downloads; nothing is answered without the token
_preview  what was understood of a file, and what is suggested, as the page shows it
_runs     one command at a time, in a process of its own that can be stopped
page.html, page.js, page.css
"""

from ._server import serve

__all__ = ["serve"]
