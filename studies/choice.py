"""python -m studies choice [--groups ...] [--seeds ...] [--methods ...] [--csv FILE]

Methods on the same tables, by adjusted Rand index (larger is better):

    default      MNARKMeans(k)
    cv           MNARKMeansCV(k)
    mixture      MNARMixture(k)
    given        lam="auto" with the reference that somebody who knows the table would give
    best         the best of the candidates in hindsight: each lam at zero and at the least values
    filled       lam=1: k-means with missing values filled by the reference somebody would give
    k-POD        lam=0
    any name of mnarkmeans.baselines.BASELINES

"before" is what the rules of commit 4c70cb3 gave with reference="auto" on the same tables, from
before.csv (seeds 101 and 102; `--methods before given` run from that commit). Regret is best less
default. Differences are paired over tables, with 95 % intervals.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from mnarkmeans import MNARKMeans, MNARKMeansCV, MNARMixture, _choice
from mnarkmeans.baselines import BASELINES
from mnarkmeans.metrics import center_mse, clustering_error_rate
from studies import designs, tables
from studies.designs import Data, Design
from studies.summary import markdown, paired

LAMS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
GROUPS = designs.GROUPS | {"real": tables.real, "usoskin": tables.usoskin}
METHODS = ("default", "best", "filled", "k-POD")
KEYS = ["group", "design", "seed"]
BEFORE = Path(__file__).with_name("before.csv")


def models(method: str, design: Design, seed: int) -> list:
    """The model of a method; for "best", one for every candidate."""
    k, settings = design.k, {"random_state": seed, "n_jobs": 1}
    given = 0.0 if design.reference == "auto" else design.reference
    if method == "default":
        return [MNARKMeans(k, **settings)]
    if method == "cv":
        return [MNARKMeansCV(k, **settings)]
    if method == "before":
        return [MNARKMeans(k, reference="auto", **settings)]
    if method == "given":
        return [MNARKMeans(k, reference=design.reference, **settings)]
    if method == "filled":
        return [MNARKMeans(k, lam=1.0, reference=given, **settings)]
    if method == "k-POD":
        return [MNARKMeans(k, lam=0.0, **settings)]
    if method == "mixture":
        return [MNARMixture(k, **settings)]
    if method == "best":
        candidates = [(0.0, 0.0)] + [(lam, ref) for ref in (0.0, "min") for lam in LAMS]
        return [MNARKMeans(k, lam=lam, reference=ref, **settings) for lam, ref in candidates]
    return [BASELINES[method](k, random_state=seed)]


def evaluate(method: str, design: Design, data: Data, seed: int) -> dict:
    """Accuracy of a method on a table, and the lam it took."""
    begin = time.process_time()
    fitted = models(method, design, seed)
    labels = [model.fit_predict(data.X) for model in fitted]
    seconds = time.process_time() - begin
    index = [adjusted_rand_score(data.classes, found) for found in labels]
    best = int(np.argmax(index))
    centers = getattr(fitted[best], "cluster_centers_", None)
    known = data.centers is not None and centers is not None
    return {
        "ari": index[best],
        "cer": clustering_error_rate(data.classes, labels[best]),
        "mse": center_mse(data.centers, centers) if known else np.nan,
        "lam": float(np.max(getattr(fitted[best], "lam_", np.nan))),
        "seconds": seconds,
    }


def run(groups, seeds, methods, every: int = 1, file: Path | None = None) -> pd.DataFrame:
    """One row per table and method; goes on from what `file` holds."""
    rows = pd.read_csv(file).to_dict("records") if file and file.exists() else []
    done = {tuple(row[key] for key in (*KEYS, "method")) for row in rows}
    for group in groups:
        for number, design in enumerate(GROUPS[group]()):
            for seed in seeds if number % every == 0 else ():
                table = {"group": design.group, "design": design.name, "seed": seed}
                wanted = [m for m in methods if (*table.values(), m) not in done]
                data = design.make(1000 * seed + number) if wanted else None
                for method in wanted:
                    found = evaluate(method, design, data, seed)
                    rows.append({**table, "method": method, **found})
        if file:
            pd.DataFrame(rows).to_csv(file, index=False, float_format="%.4f")
    return pd.DataFrame(rows)


def wide(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """Tables x methods; "before" from the record where this run does not have it."""
    found = rows.pivot_table(index=KEYS, columns="method", values=value, sort=False)
    if "before" not in found and BEFORE.exists():
        record = pd.read_csv(BEFORE)
        record = record[record.method == "before"].set_index(KEYS)[value]
        found = found.join(record.rename("before"))
    return found


def by_group(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean adjusted Rand index of every group, paired differences, regret, lam."""
    found, lams = wide(rows, "ari"), wide(rows, "lam")
    lines = {}
    groups = [(name, part) for name, part in found.groupby("group", sort=False)]
    for name, part in [*groups, ("all tables", found)]:
        line = {"tables": len(part), **part.mean().to_dict()}
        if {"default", "before"} <= set(part):
            line["default - before"] = paired(part["default"], part["before"])
        if {"default", "best"} <= set(part):
            regret = part["best"] - part["default"]
            line |= {"regret": regret.mean(), "90 %": regret.quantile(0.9)}
        if "default" in part:
            taken = lams.loc[part.index, "default"]
            line |= {"lam (median)": taken.median(), "lam = 0": f"{(taken == 0).mean():.0%}"}
        lines[name] = line
    frame = pd.DataFrame(lines).T
    frame.index.name = "group"
    return frame


def report(rows: pd.DataFrame, by_design: bool) -> str:
    parts = ["Mean adjusted Rand index", "", markdown(by_group(rows))]
    for value, title in (("cer", "Mean clustering error rate"), ("mse", "Mean centre MSE")):
        means = wide(rows, value).groupby("group", sort=False).mean().dropna(how="all")
        if len(means):
            parts += ["", title, "", markdown(means)]
    if by_design:
        means = wide(rows, "ari").groupby(["group", "design"], sort=False).mean()
        lams = wide(rows, "lam").groupby(["group", "design"], sort=False).median()
        if "default" in lams:
            means["lam"] = lams["default"]
        parts += ["", "Every design", "", markdown(means.droplevel(0), 2)]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[101, 102])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--every", type=int, default=1, help="only every so many designs")
    parser.add_argument("--designs", action="store_true", help="a line for every design")
    parser.add_argument(
        "--constants", nargs="*", default=[], metavar="NAME=VALUE",
        help="of the score, to see how much they matter: BLOCKS=4, FOLDS=2, PRIOR=5 ...",
    )  # fmt: skip
    parser.add_argument("--csv", type=Path, help="write every table's result, and resume from it")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, _, value in (constant.partition("=") for constant in options.constants):
        setattr(_choice, name, type(getattr(_choice, name))(value))
    with threadpool_limits(1):
        rows = run(options.groups, options.seeds, options.methods, options.every, options.csv)
    print(report(rows, options.designs))
