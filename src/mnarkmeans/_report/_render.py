"""The numbers poured into the template.

Names come from data and are never trusted: Jinja escapes them in the page and in the embedded JSON,
the script writes them as text only, and the page's own security policy allows exactly one script,
by its hash, and no network. Colours come from the style sheet, light or dark.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

import numpy as np
from markupsafe import Markup

from .._io import require
from ..displays._style import CLUSTERS, number, percent
from ..metrics._verdict import BETWEEN
from ._content import SURE


def render(page: dict[str, Any]) -> str:
    """The HTML text of a page made by `page_of`, or of the same read back from report.json."""
    jinja2 = require("jinja2", "report")
    folder = files(__package__)
    script = (folder / "page.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=number, percent=percent)
    environment.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False, "allow_nan": False, "separators": (",", ":"),
    }  # fmt: skip
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    palette = " ".join(f"--c{i}: {tone};" for i, tone in enumerate(CLUSTERS))
    style = f":root {{ {palette} }}\n" + (folder / "page.css").read_text(encoding="utf-8")
    return template.render(
        page=page,
        colors=[f"var(--c{i % len(CLUSTERS)})" for i in range(len(page["clusters"]))],
        confident=SURE,
        between=BETWEEN,
        from_mean=_one_sided(page["centers"]),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        data=page | {"colors": len(CLUSTERS), "flow": []},
    )


def _one_sided(centers: dict[str, Any]) -> bool:
    """Whether nearly all of several centres lie on one side of the reference."""
    apart = np.asarray(centers["centers"], float) - np.asarray(centers["reference"], float)
    above = apart[apart != 0] > 0
    return len(apart) > 1 and above.size > 0 and not 0.1 < above.mean() < 0.9
