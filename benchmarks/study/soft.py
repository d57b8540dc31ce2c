"""python -m benchmarks.study.soft [--draws 20] [--sizes 300 2000] [--without NAME ...] [-o OUT]

Which method when: 4 shapes of noise x 5 ways of losing values x k = 3, 5 x n = 300, 2000. Six
features, centres N(0, 1.2^2), noise of unit scale. For every draw the adjusted Rand index of every
method; `known` is the classifier that knows the true parameters (normal noise only). Also, for
normal noise, how sure MNARMixture was and how often it was right. OUT/soft.csv and
OUT/calibration.csv are written as it goes and resumed from; OUT/soft.md has the tables,
OUT/soft.png the picture.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from mnarkmeans import MNARKMeans, MNARKMeansCV, MNARMixture
from mnarkmeans._penalty.mechanisms import mechanism_of
from mnarkmeans.baselines import BASELINES

P, SPREAD = 6, 1.2
NOISES: dict[str, Callable] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t3": lambda rng, size: rng.standard_t(3, size=size),
    "laplace": lambda rng, size: rng.laplace(size=size),
    "skewed": lambda rng, size: rng.gamma(2.0, size=size) / np.sqrt(2) - np.sqrt(2),
}
LOSSES = ("chance", "class", "soft", "hard", "decay")
CLASS_RATES = (0.1, 0.3, 0.6)
RIVALS = ("gmm_mask", "gmm", "zero", "mean", "kpod", "rkpod", "qrilc", "minprob")
OURS = ("mixture", "kmeans", "cv")


def make(noise: str, loss: str, k: int, n: int, draw: int):
    """A table with gaps, its classes, and what a classifier that knows everything knows."""
    rng = np.random.default_rng([draw, k, n, list(NOISES).index(noise), LOSSES.index(loss)])
    centers, classes = rng.normal(0, SPREAD, (k, P)), rng.integers(k, size=n)
    X = centers[classes] + NOISES[noise](rng, (n, P))
    rates = np.resize(CLASS_RATES, k)
    low = np.quantile(X, 0.28, axis=0)
    lost, truth = {
        "chance": (np.full(X.shape, 0.3), ("mcar", {"rates": np.full((1, P), 0.3)})),
        "class": (
            np.tile(rates[classes][:, None], P),
            ("class", {"rates": np.tile(rates[:, None], P)}),
        ),
        "soft": (
            1 / (1 + np.exp(2 * X + 1.2)),
            ("limit", {"c": np.full(P, -0.6), "zeta": np.full(P, 1.702 / 2)}),
        ),
        "hard": ((low > X).astype(float), ("limit", {"c": low, "zeta": np.full(P, 1e-3)})),
        "decay": (np.exp(-2 * X**2), ("decay", {"t": 2.0, "c": 1.0 - 1e-9})),
    }[loss]
    X[rng.random(X.shape) < lost] = np.nan
    some = ~np.isnan(X).all(axis=1)
    return X[some], classes[some], (centers, *truth)


def knowing(X: np.ndarray, truth, k: int) -> np.ndarray:
    """Labels of the classifier with the true parameters."""
    centers, name, parameters = truth
    model = MNARMixture(k, mechanism="mcar", max_iter=1).fit(X)
    model.means_, model.covariances_ = centers, np.ones_like(centers)
    model.weights_ = np.full(k, 1 / k)
    model._mechanism = mechanism_of(name, parameters, np.ones(P, bool))
    return model.predict(X)


def labels_of(name: str, X: np.ndarray, k: int, seed: int):
    """Labels, and the mixture if it was one."""
    if name == "mixture":
        model = MNARMixture(k, random_state=seed).fit(X)
        return model.predict(X), model
    if name == "kmeans":
        return MNARKMeans(k, random_state=seed).fit_predict(X), None
    if name == "cv":
        return MNARKMeansCV(k, random_state=seed).fit(X).labels_, None
    rival = BASELINES[name](k, random_state=seed)
    if hasattr(rival, "imputation"):
        rival.set_params(n_init=10)
    return rival.fit_predict(X), None


def sureness(model: MNARMixture, X: np.ndarray, classes: np.ndarray) -> list[dict]:
    """How sure the mixture was, and how often right, in tenths; a cluster is its majority."""
    shares, labels = model.predict_proba(X).max(axis=1), model.predict(X)
    named = [np.bincount(classes[labels == l]).argmax() if (labels == l).any() else -1
             for l in range(model.n_components)]  # fmt: skip
    right = np.array(named)[labels] == classes
    bins = np.minimum((shares * 10).astype(int), 9)
    return [{"bin": b, "rows": int((bins == b).sum()), "sure": float(shares[bins == b].sum()),
             "right": int(right[bins == b].sum())} for b in np.unique(bins)]  # fmt: skip


def run(options) -> pd.DataFrame:
    file, second = options.out / "soft.csv", options.out / "calibration.csv"
    rows = pd.read_csv(file).to_dict("records") if file.exists() else []
    sure = pd.read_csv(second).to_dict("records") if second.exists() else []
    done = {(r["noise"], r["loss"], r["k"], r["n"], r["draw"]) for r in rows}
    methods = [name for name in (*OURS, *RIVALS) if name not in options.without]
    for draw in range(options.seed, options.seed + options.draws):
        for n in options.sizes:
            for noise in options.noises:
                for loss in LOSSES:
                    for k in (3, 5):
                        key = {"noise": noise, "loss": loss, "k": k, "n": n, "draw": draw}
                        if tuple(key.values()) in done:
                            continue
                        X, classes, truth = make(noise, loss, k, n, draw)
                        for name in methods:
                            begin = time.process_time()
                            labels, model = labels_of(name, X, k, draw)
                            rows.append({**key, "method": name,
                                "ari": adjusted_rand_score(classes, labels),
                                "seconds": time.process_time() - begin,
                                "mechanism": model.mechanism_ if model else ""})  # fmt: skip
                            if model and noise == "normal":
                                sure += [{**key, **part} for part in sureness(model, X, classes)]
                        if noise == "normal":
                            score = adjusted_rand_score(classes, knowing(X, truth, k))
                            rows.append({**key, "method": "known", "ari": score})
                    pd.DataFrame(rows).to_csv(file, index=False)
                    pd.DataFrame(sure).to_csv(second, index=False)
    return pd.DataFrame(rows)


# --- tables -----------------------------------------------------------------------------------


def paired(wide: pd.DataFrame, a: str, b: str) -> str:
    """Mean of a - b over data sets, with its interval of 1.96 standard errors on each side."""
    difference = (wide[a] - wide[b]).dropna()
    if len(difference) < 2:
        return "" if difference.empty else f"{difference.mean():+.3f}"
    return f"{difference.mean():+.3f} ± {1.96 * difference.sem():.3f}"


def as_markdown(table: pd.DataFrame, calibration: pd.DataFrame) -> str:
    keys = ["noise", "loss", "k", "n", "draw"]
    wide = table.pivot_table(index=keys, columns="method", values="ari")
    methods = [m for m in ("known", *OURS, *RIVALS) if m in wide]
    draws = wide.reset_index().groupby("n").draw.nunique().to_dict()
    told = ", ".join(f"n = {n}: {d}" for n, d in draws.items())
    lines = [f"Draws of each design: {told}. Adjusted Rand index, k = 3 and 5 together.", ""]
    lines += ["| noise | loss | n | " + " | ".join(methods) + " | mixture - gmm_mask |",
              "|" + "---|" * (len(methods) + 4)]  # fmt: skip
    for (noise, loss, n), part in wide.groupby(level=["noise", "loss", "n"], sort=False):
        means = [f"{v:.2f}" if v == v else "" for v in part[methods].mean()]
        best = max((float(v), i) for i, v in enumerate(means) if v and methods[i] != "known")[1]
        means[best] = f"**{means[best]}**"
        difference = paired(part, "mixture", "gmm_mask")
        lines.append(f"| {noise} | {loss} | {n} | " + " | ".join(means) + f" | {difference} |")
    lines += ["", "Paired differences over all designs of a shape:", "",
              "| noise | mixture - gmm_mask | mixture - kmeans | mixture - known |",
              "|---|---|---|---|"]  # fmt: skip
    for noise, part in wide.groupby(level="noise", sort=False):
        cells = [paired(part, "mixture", other) for other in ("gmm_mask", "kmeans", "known")]
        lines.append(f"| {noise} | " + " | ".join(cells) + " |")
    lines += ["", "How sure the mixture was and how often it was right (normal noise):", "",
              "| n | sure | right | rows |", "|---|---|---|---|"]  # fmt: skip
    for (n, _), part in calibration.groupby(["n", "bin"]):
        rows = part.rows.sum()
        sure, right = part.sure.sum() / rows, part.right.sum() / rows
        lines.append(f"| {n} | {sure:.3f} | {right:.3f} | {rows} |")
    return "\n".join(lines) + "\n"


def draw_picture(table: pd.DataFrame, path: Path) -> None:
    """A square for every noise and loss: the best method, and how far ours are behind it."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    shown = table[table.method != "known"]
    means = shown.groupby(["noise", "loss", "method"]).ari.mean().unstack()
    figure, axes = plt.subplots(1, len(NOISES), figsize=(11, 3.6), sharey=True)
    styles = {"mixture": ("o", "#0072b2", "MNARMixture"), "kmeans": ("s", "#56b4e9", "MNARKMeans"),
              "gmm_mask": ("^", "#d55e00", "StepMix + pattern"), "gmm": ("v", "#e69f00", "StepMix"),
              "others": ("_", "#999999", "best of the filled k-means")}  # fmt: skip
    filled = [m for m in ("zero", "mean", "qrilc", "minprob") if m in means]
    means["others"] = means[filled].max(axis=1) if filled else np.nan
    for axis, noise in zip(axes, NOISES, strict=True):
        for name, (marker, colour, label) in styles.items():
            if name in means:
                values = [means.loc[(noise, loss), name] for loss in LOSSES]
                axis.plot(values, range(len(LOSSES)), marker, color=colour, label=label, ms=8)
        axis.set(title=f"{noise} noise", xlabel="adjusted Rand index", xlim=(0, 1))
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(LOSSES)), ["by chance", "by class", "soft limit", "hard limit",
                                            "near zero"])  # fmt: skip
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=5, loc="lower center", frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study.soft",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="*", default=[300, 2000])
    parser.add_argument("--noises", nargs="*", default=list(NOISES), choices=list(NOISES))
    parser.add_argument("--seed", type=int, default=0, help="first draw")
    parser.add_argument("--without", nargs="*", default=[], help="methods to leave out")
    parser.add_argument("--tables", action="store_true", help="only tables and picture")
    parser.add_argument("-o", "--out", type=Path, default=Path("study-soft"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    if not options.tables:
        with threadpool_limits(1):
            run(options)
    table = pd.read_csv(options.out / "soft.csv")
    text = as_markdown(table, pd.read_csv(options.out / "calibration.csv"))
    (options.out / "soft.md").write_text(text)
    draw_picture(table, options.out / "soft.png")
    print(text)


if __name__ == "__main__":
    main()
