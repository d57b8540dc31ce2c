"""python -m studies verdict [--seed N] [--tables N] [-o OUT]

What is said about clusters, on tables whose truth is known:

verdict     tables without groups called separate (at most 5 %), tables with groups that k-means on
            the complete table finds (adjusted Rand index >= .9) called separate (at least 90 %)
confidence  in each decile of confidence with 50 rows or more, the share of rows in their true group
            (within .07 of the mean confidence, on narrow and on wide tables); five times as many
            tables with groups that overlap are drawn for it
markers     features listed for permuted labels, as a share of all (at most 5 %)
time        of the verdict against the fit, on all tables and on one of 1,000 x 100 (at most 30 fits
            or 5 seconds)

The tables are drawn anew from the seed; nothing was chosen on seeds from 9,000 on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans
from mnarkmeans.metrics import cluster_markers, verdict
from mnarkmeans.missingness import ampute

SHAPES = [(30, 500), (100, 200), (300, 30), (1_000, 50), (5_000, 20)]
GROUP_SHAPES = [(40, 500), (100, 200), (300, 10), (300, 60), (1_000, 50), (3_000, 20)]
CLOUDS = ("isotropic", "one factor", "three factors", "skewed", "log-normal", "heavy-tailed")
GAPS = ("none", "chance", "limit")


def cloud(kind: str, n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of one population."""
    if kind == "isotropic":
        return rng.normal(size=(n, p))
    if kind == "one factor":
        return rng.normal(size=(n, 1)) * rng.uniform(0.5, 1.5, p) + rng.normal(0, 0.5, (n, p))
    if kind == "three factors":
        return rng.normal(size=(n, 3)) @ rng.normal(size=(3, p)) + rng.normal(0, 0.7, (n, p))
    if kind == "skewed":
        return rng.gamma(1.5, 1, (n, 1)) * rng.uniform(0.5, 1.5, p) + rng.gamma(2, 0.4, (n, p))
    if kind == "log-normal":
        return np.exp(0.7 * rng.normal(size=(n, 2)) @ rng.uniform(0, 1, (2, p))) + rng.normal(
            0, 0.5, (n, p)
        )
    scale = np.sqrt(rng.chisquare(3, (n, 1)) / 3)  # Student's t with 3 degrees of freedom
    return (rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + rng.normal(size=(n, p))) / scale


def groups(
    shape: tuple[int, int], k: int, rng: np.random.Generator, correlated: bool, overlapping: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of k groups that k-means on the complete table finds, well or, overlapping, fairly."""
    n, p = shape
    apart_by, least = ((3, 6), 0.6) if overlapping else ((4, 12), 0.9)
    while True:
        centers = rng.normal(size=(k, p)) * (rng.random(p) < 0.5)
        apart = np.linalg.norm(centers[:, None] - centers, axis=-1)[np.triu_indices(k, 1)].min()
        # k-means finds groups that are wider apart than the factor and the noise of all features.
        scale = max(1.0, (p / n) ** 0.5, (0.3 * p) ** 0.5 if correlated else 0.0)
        centers *= rng.uniform(*apart_by) * scale / max(apart, 1e-9)
        truth = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
        E = rng.normal(size=(n, p))
        if correlated:  # a common factor
            E = np.sqrt(0.7) * E + np.sqrt(0.3) * rng.normal(size=(n, 1)) * rng.choice([-1, 1], p)
        X = centers[truth] + E
        if np.bincount(truth, minlength=k).min() < 0.5 * n / k:
            continue
        found = KMeans(k, n_init=4, random_state=0).fit(X).labels_
        if adjusted_rand_score(truth, found) >= least:
            return X, truth


def with_gaps(X: np.ndarray, gaps: str, rng: np.random.Generator) -> np.ndarray:
    if gaps == "none":
        return X
    share = rng.uniform(0.1, 0.3)
    return ampute(X, "mcar" if gaps == "chance" else "limit", fraction=share, rng=rng)


def right_rows(truth: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rows whose cluster, matched to a group, is their own group."""
    k = max(truth.max(), labels.max()) + 1
    counts = np.zeros((k, k))
    np.add.at(counts, (labels, truth), 1.0)
    return truth == linear_sum_assignment(-counts)[1][labels]


def judged(X: np.ndarray, k: int, truth: np.ndarray | None) -> tuple[dict, pd.DataFrame]:
    begin = time.perf_counter()
    model = MNARKMeans(k, random_state=0).fit(X)
    fitted = time.perf_counter()
    found = verdict(X, model)
    done = time.perf_counter()
    line = {
        "n": X.shape[0], "p": X.shape[1], "k": k, "kind": found.kind, "groups": len(found.groups),
        "least_p": min((pair.p for pair in found.pairs), default=1.0),
        "found_again": float(np.mean(found.agreement)), "fit_s": fitted - begin,
        "verdict_s": done - fitted,
    }  # fmt: skip
    shuffled = np.random.default_rng(0).permutation(model.labels_)
    listed = len(cluster_markers(X, shuffled).feature)
    line["listed_permuted"] = listed / (k * X.shape[1])
    rows = pd.DataFrame()
    if truth is not None:
        line["ari"] = adjusted_rand_score(truth, model.labels_)
        right = right_rows(truth, model.labels_)
        rows = pd.DataFrame({"confidence": found.confidence, "right": right})
    return line, rows.dropna()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m studies verdict", description=__doc__)
    parser.add_argument("--seed", type=int, default=1_000)
    parser.add_argument("--tables", type=int, default=60, help="with groups, and as many without")
    parser.add_argument("-o", "--out", type=Path, default=Path("study"))
    options = parser.parse_args(arguments)
    lines, confident = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(options.tables):
            rng = np.random.default_rng([options.seed, number, 0])
            of_kind, of_shape = number % len(CLOUDS), number // len(CLOUDS) % len(SHAPES)
            gaps = GAPS[(of_kind + of_shape + number // 30) % len(GAPS)]
            X = with_gaps(cloud(CLOUDS[of_kind], *SHAPES[of_shape], rng), gaps, rng)
            line, _ = judged(X, int(rng.integers(2, 7)), None)
            lines.append({"truth": "none", "table": CLOUDS[of_kind], "gaps": gaps, **line})
        for number in range(6 * options.tables):
            overlapping = number >= options.tables
            rng = np.random.default_rng([options.seed, number, 1])
            shape = GROUP_SHAPES[number % len(GROUP_SHAPES)]
            gaps = GAPS[number // len(GROUP_SHAPES) % len(GAPS)]
            correlated = bool(number // 18 % 2)
            k = int(rng.integers(2, min(6, shape[0] // 15) + 1))
            X, truth = groups(shape, k, rng, correlated, overlapping)
            line, rows = judged(with_gaps(X, gaps, rng), k, truth)
            name = "overlapping" if overlapping else "groups"
            how = "correlated" if correlated else "independent"
            lines.append({"truth": name, "table": how, "gaps": gaps, **line})
            print(f"table {number + 1} with groups", end="\r", flush=True)
            confident.append(rows.assign(wide=shape[1] > shape[0], how=how, gaps=gaps))
        X, truth = groups((1_000, 100), 5, np.random.default_rng(options.seed), False, False)
        timed, _ = judged(with_gaps(X, "limit", np.random.default_rng(0)), 5, truth)
    table, rows = pd.DataFrame(lines), pd.concat(confident, ignore_index=True)
    options.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out / "verdict.csv", index=False)
    text = as_markdown(table, rows, timed)
    (options.out / "verdict.md").write_text(text)
    print(text)


def as_markdown(table: pd.DataFrame, rows: pd.DataFrame, timed: dict) -> str:
    by = table.groupby(["truth", "table"])["kind"].value_counts().unstack(fill_value=0)
    separate = table["kind"].eq("separate").groupby(table["truth"]).mean()
    decile = np.minimum((rows["confidence"] * 10).astype(int), 9)
    parts = []
    some = {"all": rows.index >= 0, "wide": rows["wide"], "narrow": ~rows["wide"]}
    some |= {how: rows["how"] == how for how in ("independent", "correlated")}
    some |= {gaps: rows["gaps"] == gaps for gaps in GAPS}
    for name, own in some.items():
        cut = rows[own].groupby(decile[own])
        parts.append(
            pd.DataFrame(
                {"rows": cut.size(), "confidence": cut["confidence"].mean(),
                 "right": cut["right"].mean()}
            ).assign(tables=name)
        )  # fmt: skip
    calibration = pd.concat(parts)
    calibration = calibration[calibration["rows"] >= 50]
    off = (calibration["right"] - calibration["confidence"]).abs()
    by_width = calibration["tables"].isin(["all", "wide", "narrow"])
    cost = table["verdict_s"] / table["fit_s"]
    return "\n\n".join(
        [
            f"Called separate: {separate.get('none', 0):.1%} of the tables without groups, "
            f"{separate.get('groups', 0):.1%} of those with groups.",
            by.to_string(),
            f"Confidence: at most {off[by_width].max():.3f} off in a decile with 50 rows or more, "
            f"{off.max():.3f} where tables are taken apart by correlation or missing values.",
            calibration.round(3).to_string(),
            f"Markers: {table['listed_permuted'].mean():.2%} of clusters x features listed for "
            f"permuted labels, {table['listed_permuted'].max():.2%} in the worst table.",
            f"Time: {cost.median():.1f} times the fit (at most {cost.max():.1f}), at most "
            f"{table['verdict_s'].max():.2f} s. On 1,000 x 100, {timed['verdict_s']:.2f} s, "
            f"{timed['verdict_s'] / timed['fit_s']:.1f} times the fit.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
