"""`mnarkmeans app`: the same commands behind a page in the browser."""

from __future__ import annotations

from dataclasses import dataclass

from ._console import estimator_errors
from ._options import option


@dataclass(frozen=True, kw_only=True)
class AppOptions:
    port: int = option(0, "Port on 127.0.0.1; 0 picks a free one.", min=0, max=65535)
    browser: bool = option(True, "Open the page in the browser.", "--browser/--no-browser")


def app(page: AppOptions) -> None:
    """Open a page in the browser that turns a table into a report. Nothing leaves this computer.

    Example: mnarkmeans app
    """
    from ..app import serve

    with estimator_errors():
        serve(page.port, browser=page.browser)
