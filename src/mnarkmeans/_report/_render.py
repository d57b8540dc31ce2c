"""The numbers poured into the template.

Names come from data and are never trusted: Jinja escapes them in the page, the embedded JSON has no
character that could end its element, the script writes them as text only, and the page's own
security policy allows exactly one script, by its hash, and no network.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from .._io import require
from ..displays._chart import instability, loss_path, missing_curve
from ..displays._numbers import number, percent, short
from ..displays._palette import CLUSTERS, on_dark
from ..metrics._verdict import BETWEEN
from . import _flow, _heatmap
from ._page import SURE
from ._svg import draw, histogram, tone


def render(page: dict[str, Any]) -> str:
    """The HTML text of a page made by `page_of`, or of the same read back from report.json."""
    jinja2 = require("jinja2", "report")
    folder = files(__package__)
    script = (folder / "page.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=number, percent=percent, short=short)
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    markup = jinja2.utils.markupsafe.Markup
    return template.render(
        page=page,
        colors=[tone(number) for number in range(len(page["clusters"]))],
        charts=_draw(page),
        markers=_by_cluster(page),
        confident=SURE,
        between=BETWEEN,
        from_mean=_heatmap.one_sided(page["centers"]),
        style=markup(_palettes() + (folder / "page.css").read_text(encoding="utf-8")),
        script=markup(script),
        script_hash=_hash(script),
        data=markup(_safe_json(_for_script(page))),
    )


def _palettes() -> str:
    """The colours of clusters as variables of the style sheet, for light and for dark ground."""
    light, dark = (
        " ".join(f"--c{i}: {tone};" for i, tone in enumerate(tones))
        for tones in (CLUSTERS, map(on_dark, CLUSTERS))
    )
    by_system = ':root:not([data-theme="light"])'
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ {by_system} {{ {dark} }} }}\n"
        f'@media screen {{ :root[data-theme="dark"] {{ {dark} }} }}\n'
    )


def _draw(page: dict[str, Any]) -> dict[str, Any]:
    data, fit = page["data"], page["fit"]
    charts: dict[str, Any] = {
        "by_feature": histogram(**data["by_feature"], name="features"),
        "by_row": histogram(**data["by_row"], name="rows"),
        "curve": draw(missing_curve(page["curve"]["magnitude"], page["curve"]["missing_share"])),
        "loss_path": draw(loss_path(fit["loss_path"], fit["start_losses"])),
        "centers": _heatmap.heatmaps(page["centers"]),
    }
    choice = page.get("choice")
    if choice:
        columns = (choice[name] for name in ("lam", "k", "mean", "std", "best_index"))
        charts["choice"] = draw(instability(*columns))
    charts["flows"] = [
        (flow["axis_name"], flow["text"], _flow.draw(flow)) for flow in page.get("flow") or []
    ]
    return charts


def _by_cluster(page: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The markers of each cluster."""
    grouped: list[list[dict[str, Any]]] = [[] for _ in page["clusters"]]
    for marker in page["markers"]:
        grouped[marker["cluster"]].append(marker)
    return grouped


def _for_script(page: dict[str, Any]) -> dict[str, Any]:
    """What the script draws or offers for download."""
    names = ("embedding", "rows_by_cluster", "centers", "curve", "clusters", "far", "choice",
             "comparison", "title", "between", "markers", "annotations", "flow")  # fmt: skip
    chosen = {name: page.get(name) for name in names}
    chosen["colors"] = len(CLUSTERS)
    chosen["fit"] = page["fit"]
    chosen["by_feature"] = page["data"]["by_feature"]
    chosen["by_row"] = page["data"]["by_row"]
    return chosen


def _safe_json(value: Any) -> str:
    """JSON that cannot end its script element, whatever the names in it are."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
