"""The study's tables, from its rows."""

from __future__ import annotations

import pandas as pd

CRITERIA = ["paper", "subsample", "consensus", "heldout"]
GIVEN = [*CRITERIA, "middle of the grid", "oracle"]


def as_markdown(table: pd.DataFrame) -> str:
    parts = ["# Ways to choose lam, on the same data", ""]
    if len(table) == 0:
        return "\n".join([*parts, "No data."])
    counts = table.groupby("group")[["design", "seed"]].apply(lambda g: len(g.drop_duplicates()))
    parts += ["Data sets: " + ", ".join(f"{name} {n}" for name, n in counts.items()) + ".", ""]
    for column, title in (("cer", "CER"), ("mse", "Centre MSE")):
        for grid in ("default", "paper"):
            parts += [f"## Mean {title}, {grid} grid", "", _by_group(table, grid, column), ""]
    parts += ["## Chosen on one half of the designs, confirmed on the other", ""]
    parts += ["Mean CER above the oracle, default grid; every group counts the same.", ""]
    parts += [_halves(table), ""]
    parts += ["## auto within .01 CER of the best fixed lam", "", _within(table), ""]
    parts += ["## lam chosen (median) and seconds", "", _lams(table), ""]
    return "\n".join(parts)


def _by_group(table: pd.DataFrame, grid: str, column: str) -> str:
    chosen = table[table.grid.isin([grid, "none"])].dropna(subset=[column])
    if len(chosen) == 0:
        return "No data."
    wide = chosen.pivot_table(index="rule", columns="group", values=column, aggfunc="mean")
    wide = wide.reindex([r for r in [*GIVEN, *wide.index] if r in wide.index]).loc[
        lambda frame: ~frame.index.duplicated()
    ]
    return _markdown(wide, 3)


def _halves(table: pd.DataFrame) -> str:
    chosen = table[table.grid.isin(["default", "none"])].copy()
    oracle = chosen[chosen.rule == "oracle"].set_index(["group", "design", "seed"]).cer
    keys = pd.MultiIndex.from_frame(chosen[["group", "design", "seed"]])
    chosen["excess"] = chosen.cer.to_numpy() - oracle.reindex(keys).to_numpy()
    chosen["half"] = chosen.number.mod(2).map({0: "choose", 1: "confirm"})
    by_group = chosen.groupby(["rule", "half", "group"]).excess.mean()
    wide = by_group.groupby(["rule", "half"]).mean().unstack("half")
    return _markdown(wide.sort_values("choose"), 4)


def _within(table: pd.DataFrame) -> str:
    """Share of designs where auto's mean CER is close to that of the best lam of the paper grid."""
    fixed = table[table.rule.str.startswith("lam = ")]
    best = fixed.groupby(["group", "design", "rule"]).cer.mean().groupby(["group", "design"]).min()
    auto = table[table.rule == "auto"].groupby(["group", "design"])[["cer", "lam"]].mean()
    close = (auto.cer <= best + 0.01).groupby("group").mean()
    frame = pd.DataFrame({"share of designs": close, "mean lam": auto.lam.groupby("group").mean()})
    return _markdown(frame, 2)


def _lams(table: pd.DataFrame) -> str:
    chosen = table[(table.grid == "default") | (table.rule == "auto")]
    frame = chosen.groupby(["group", "rule"]).agg(
        lam=("lam", "median"), seconds=("seconds", "mean")
    )
    return _markdown(frame.reset_index().set_index("group"), 2)


def _markdown(frame: pd.DataFrame, digits: int) -> str:
    head = [str(frame.index.name or ""), *map(str, frame.columns)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, row in zip(frame.index, frame.to_numpy(), strict=True):
        cells = [_cell(value, digits) for value in row]
        lines.append("| " + " | ".join([str(name), *cells]) + " |")
    return "\n".join(lines)


def _cell(value, digits: int) -> str:
    if isinstance(value, str):
        return value
    return "" if pd.isna(value) else f"{value:.{digits}f}"
