"""Reports in other shapes: DIA-NN's long main report, sheets with merged heads and statistics."""

from __future__ import annotations

import numpy as np
import pandas as pd
from lab_files import seen_above
from lab_variants import shuffled


def main_report(seed=301):
    """One row per precursor and run, with rows that the q-value filters must remove."""
    rng, group, log2 = shuffled(seed, 24, 150)
    seen = seen_above(rng, log2, 21.5)
    rows = []
    for i, j in np.argwhere(seen):
        for precursor in range(1 + j % 3):
            name = (f"run_{i:02d}", f"P{10000 + j}", f"G{j}", f"PEP{j}{precursor}2")
            rows.append((*name, 2 ** log2[i, j], 0.001, 0.002, 0.0, 0.001))
    for i, j in np.argwhere(~seen):  # identified with too little confidence, quantity from noise
        q = (0.04, 0.002, 0.0, 0.001) if j % 2 else (0.001, 0.3, 0.0, 0.001)
        rows.append(
            (f"run_{i:02d}", f"P{10000 + j}", f"G{j}", f"PEP{j}02", 2 ** rng.normal(30, 1), *q)
        )
    columns = ["Run", "Protein.Group", "Genes", "Precursor.Id", "PG.MaxLFQ", "Q.Value",
               "PG.Q.Value", "Lib.Q.Value", "Lib.PG.Q.Value"]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns).sort_values(["Run", "Precursor.Id"])
    return frame.reset_index(drop=True), group, np.where(seen, 2**log2, np.nan)


def diann_main_report(folder):
    frame, group, _ = main_report()
    frame.to_parquet(folder / "report.parquet")
    return "report.parquet", group, "--log2"


def diann_main_report_text(folder):
    frame, group, _ = main_report(302)
    frame.to_csv(folder / "report.tsv", sep="\t", index=False)
    return "report.tsv", group, "--log2"


def merged_groups_and_statistics(folder):
    """Groups in merged cells over six samples each, then statistics with nothing above them."""
    import openpyxl

    rng, group, log2 = shuffled(303, 24, 90, groups=4)
    order = np.argsort(group, kind="stable")
    seen = seen_above(rng, log2, 21.5)
    book = openpyxl.Workbook()
    sheet = book.active
    heads = ["Ctrl", "DrugA", "DrugB", "Both"]
    sheet.append([None, *(heads[i // 6] if i % 6 == 0 else None for i in range(24))])
    sheet.append(["Protein", *(f"r{i + 1}" for _ in range(4) for i in range(6)),
                  "Mean", "CV [%]", "p-value"])  # fmt: skip
    for g in range(4):
        sheet.merge_cells(start_row=1, start_column=2 + 6 * g, end_row=1, end_column=7 + 6 * g)
    for j in range(90):
        values = [float(2 ** log2[i, j]) if seen[i, j] else None for i in order]
        mean = float(np.mean([v for v in values if v] or [0.0]))
        sheet.append([f"prot {j}", *values, mean, float(rng.uniform(5, 90)), float(rng.random())])
    book.save(folder / "groups.xlsx")
    return "groups.xlsx", group[order], "--transpose --drop Mean --drop p-value --log2"


REPORTS = {
    make.__name__: make
    for make in (diann_main_report, diann_main_report_text, merged_groups_and_statistics)
}
