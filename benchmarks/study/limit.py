"""python -m benchmarks.study.limit: lam="auto" where values fall below a detection limit.

For every design of the groups "limit", "mixed" and "chance" (no limit there, though one is looked
for) and every seed, the adjusted Rand index of

    auto          lam="auto" with the reference told ("min")
    reference     lam="auto" with reference="auto", where it is there
    lam = ...     fixed penalties, reference told
    filled        k-means on the table whose gaps are filled with the least value of the feature

The best fixed lam of a design is picked in hindsight, one number for all its data sets. Differences
are paired over the data sets of a design; the interval is 1.96 standard errors wide on each side.
All designs of a seed come before the next seed; what is done is written every twenty data sets, and
resumed from there.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.study.designs import GROUPS, Data, Design
from mnarkmeans import MNARKMeans

FIXED = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
CLOSE, TOO_FAR = 0.02, 0.05


def evaluate(design: Design, data: Data, seed: int, references: tuple) -> dict[str, float]:
    """The adjusted Rand index of every contender on one data set, and the lam that auto took."""

    def index(labels) -> float:
        return float(adjusted_rand_score(data.classes, labels))

    row = {}
    for name, reference in references:
        model = MNARKMeans(design.k, reference=reference, random_state=seed).fit(data.X)
        row[name], row[f"lam of {name}"] = index(model.labels_), float(np.mean(model.lam_))
    for lam in FIXED:
        model = MNARKMeans(design.k, lam=lam, reference=design.reference, random_state=seed)
        row[f"lam = {lam:g}"] = index(model.fit_predict(data.X))
    filled = np.where(np.isnan(data.X), np.nanmin(data.X, axis=0), data.X)
    row["filled"] = index(KMeans(design.k, n_init=10, random_state=seed).fit_predict(filled))
    return row


def paired(a: pd.Series, b: pd.Series) -> tuple[float, float]:
    """Mean of a - b, and half the width of its interval."""
    difference = (a - b).to_numpy()
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.nan
    return float(difference.mean()), 1.96 * float(error)


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """A row per design."""
    rows = []
    for (group, design), part in table.groupby(["group", "design"], sort=False):
        fixed = part[[f"lam = {lam:g}" for lam in FIXED]]
        best = str(fixed.mean().idxmax())
        row = {"group": group, "design": design, "auto": part["auto"].mean(), "best": best}
        row["lam"] = part["lam of auto"].mean()
        row["next to 0"] = (part["lam of auto"] < 0.05).mean()
        row["to best"], row["+- best"] = paired(part["auto"], part[best])
        row["to filled"], row["+- filled"] = paired(part["auto"], part["filled"])
        if "reference" in part:
            row["told"], row["+- told"] = paired(part["reference"], part["auto"])
        rows.append(row)
    return pd.DataFrame(rows)


def report(designs: pd.DataFrame) -> None:
    for group, part in designs.groupby("group", sort=False):
        close = (part["to best"] >= -CLOSE).mean()
        far = part[part["to filled"] < -TOO_FAR]
        print(
            f"{group}: {len(part)} designs; auto within {CLOSE} of the best fixed lam in "
            f"{close:.0%} ({part['to best'].mean():+.4f} on average), against limit-filled k-means "
            f"{part['to filled'].mean():+.4f}, more than {TOO_FAR} below it in {len(far)}"
        )
        if "told" in part:
            print(f'    reference="auto" against the right one told: {part["told"].mean():+.4f}, '
                  f"worst {part['told'].min():+.4f}")  # fmt: skip
        print(f"    lam below .05 for {part['next to 0'].mean():.0%} of the data sets")
        missed = part[(part["to best"] < -CLOSE) | (part["to filled"] < -TOO_FAR)]
        for row in missed.itertuples():
            print(f"    {row.design}: {row._7:+.3f} +- {row._8:.3f} to {row.best}, "
                  f"{row._9:+.3f} to filled, lam {row.lam:.2f}")  # fmt: skip


def judge(task: tuple[str, int, int, bool]) -> dict:
    """One data set: a row of the table. Task: group, number of the design, seed, reference."""
    group, number, seed, with_reference = task
    warnings.simplefilter("ignore")
    design = list(GROUPS[group]())[number]
    references = [("auto", design.reference)]
    if with_reference:
        references.append(("reference", "auto"))
    found = evaluate(design, design.make(1000 * seed + number), seed, tuple(references))
    return {"group": group, "design": design.name, "seed": seed, **found}


def options_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study.limit", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--groups", nargs="*", default=["limit", "mixed"])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--every", type=int, default=1, help="only every so many designs")
    parser.add_argument("--rows", type=int, help="only designs with so many rows")
    parser.add_argument("--no-reference", action="store_true", help='leave out reference="auto"')
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--report-only", action="store_true", help="what is there already")
    parser.add_argument("-o", "--out", type=Path, default=Path("study-limit"))
    return parser.parse_args()


def main() -> None:
    options = options_given()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "limit.csv"
    rows = pd.read_csv(file).to_dict("records") if file.exists() else []
    known = {(row["group"], row["design"], row["seed"]) for row in rows}
    tasks = [
        (group, number, seed, not options.no_reference)
        for seed in range(options.seed, options.seed + options.repetitions)
        for group in options.groups
        for number, design in enumerate(GROUPS[group]())
        if number % options.every == 0 and (group, design.name, seed) not in known
        if options.rows is None or f"n={options.rows} " in design.name
    ]
    if not options.report_only:
        with ProcessPoolExecutor(options.jobs) as pool:
            for count, row in enumerate(pool.map(judge, tasks), 1):
                rows.append(row)
                if count % 20 == 0 or count == len(tasks):  # to go on from, if it is stopped
                    pd.DataFrame(rows).to_csv(file, index=False)
    designs = summarise(pd.DataFrame(rows))
    designs.to_csv(options.out / "designs.csv", index=False)
    report(designs)


if __name__ == "__main__":
    main()
