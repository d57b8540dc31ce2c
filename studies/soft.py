"""python -m studies soft [--draws 20] [--sizes 300 2000] [--without NAME ...] [-o OUT]

Which method when: 4 shapes of noise x 5 ways of losing values x k = 3, 5 x n = 300, 2000. Six
features, centres N(0, 1.2^2), noise of unit scale. For every draw the adjusted Rand index of every
method; `known` is the classifier that knows the true parameters (normal noise only). Also, for
normal noise, how sure MNARMixture was and how often it was right. OUT/soft.csv and
OUT/calibration.csv are written as it goes, and a method that has its row there is not run again;
OUT/soft.md has the tables, OUT/soft.png the picture.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from mnarkmeans import MNARKMeans, MNARKMeansCV, MNARMixture
from mnarkmeans._em.mechanisms import MECHANISMS
from mnarkmeans.baselines import BASELINES
from studies.summary import paired

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
    model._mechanism = MECHANISMS[name](**parameters, has_gaps=np.ones(P, bool))
    return model.predict(X)


def labels_of(name: str, X: np.ndarray, k: int, seed: int, truth):
    """Labels, and the mixture if it was one."""
    if name == "known":
        return knowing(X, truth, k), None
    if name == "mixture":
        model = MNARMixture(k, random_state=seed).fit(X)
        return model.predict(X), model
    if name == "kmeans":
        return MNARKMeans(k, random_state=seed).fit_predict(X), None
    if name == "cv":
        return MNARKMeansCV(k, random_state=seed).fit(X).labels_, None
    rival = BASELINES[name](k, random_state=seed)
    if name in ("zero", "mean", "qrilc", "minprob"):
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
    done = {(r["noise"], r["loss"], r["k"], r["n"], r["draw"], r["method"]) for r in rows}
    wanted = [name for name in ("known", *OURS, *RIVALS) if name not in options.without]
    draws = range(options.seed, options.seed + options.draws)
    for draw, n, noise, loss, k in product(
        draws, options.sizes, options.noises, options.losses, options.ks
    ):
        design = {"noise": noise, "loss": loss, "k": k, "n": n, "draw": draw}
        methods = [m for m in wanted if (*design.values(), m) not in done]
        if noise != "normal" and "known" in methods:
            methods.remove("known")
        if not methods:
            continue
        X, classes, truth = make(noise, loss, k, n, draw)
        for name in methods:
            begin = time.process_time()
            labels, model = labels_of(name, X, k, draw, truth)
            rows.append({**design, "method": name, "ari": adjusted_rand_score(classes, labels),
                "seconds": time.process_time() - begin,
                "mechanism": model.mechanism_ if model else ""})  # fmt: skip
            if model and noise == "normal":
                sure += [{**design, **part} for part in sureness(model, X, classes)]
        pd.DataFrame(rows).to_csv(file, index=False)
        if sure:
            pd.DataFrame(sure).to_csv(second, index=False)
    return pd.DataFrame(rows)


# --- tables -----------------------------------------------------------------------------------


def versus(wide: pd.DataFrame, other: str) -> str:
    return paired(wide["mixture"], wide[other]) if {"mixture", other} <= set(wide) else ""


def as_markdown(table: pd.DataFrame, calibration: pd.DataFrame | None) -> str:
    keys = ["noise", "loss", "k", "n", "draw"]
    wide = table.pivot_table(index=keys, columns="method", values="ari")
    methods = [m for m in ("known", *OURS, *RIVALS) if m in wide]
    draws = wide.reset_index().groupby("n").draw.nunique().to_dict()
    counts = ", ".join(f"n = {n}: {d}" for n, d in draws.items())
    lines = [f"Most draws of a design: {counts}. Adjusted Rand index, all k together.", ""]
    lines += ["| noise | loss | n | sets | " + " | ".join(methods) + " | mixture - gmm_mask |",
              "|" + "---|" * (len(methods) + 5)]  # fmt: skip
    for (noise, loss, n), part in wide.groupby(level=["noise", "loss", "n"], sort=False):
        means = [f"{v:.2f}" if v == v else "" for v in part[methods].mean()]
        best = max((float(v), i) for i, v in enumerate(means) if v and methods[i] != "known")[1]
        means[best] = f"**{means[best]}**"
        difference = versus(part, "gmm_mask")
        row = [noise, loss, str(n), str(len(part)), *means, difference]
        lines.append("| " + " | ".join(row) + " |")
    against = [name for name in ("gmm_mask", "gmm", "kmeans", "known") if name in wide]
    lines += ["", "Paired differences over all designs of a shape:", "",
              "| noise | " + " | ".join(f"mixture - {name}" for name in against) + " |",
              "|" + "---|" * (len(against) + 1)]  # fmt: skip
    for noise, part in wide.groupby(level="noise", sort=False):
        cells = [versus(part, other) for other in against]
        lines.append(f"| {noise} | " + " | ".join(cells) + " |")
    if calibration is None:
        return "\n".join(lines) + "\n"
    lines += ["", "How sure the mixture was and how often it was right (normal noise):", "",
              "| n | sure | right | rows |", "|---|---|---|---|"]  # fmt: skip
    for (n, _), part in calibration.groupby(["n", "bin"]):
        rows = part.rows.sum()
        sure, right = part.sure.sum() / rows, part.right.sum() / rows
        lines.append(f"| {n} | {sure:.3f} | {right:.3f} | {rows} |")
    return "\n".join(lines) + "\n"


NAMES = {
    "mixture": "MNARMixture", "kmeans": "MNARKMeans", "cv": "MNARKMeansCV",
    "gmm_mask": "StepMix + pattern", "gmm": "StepMix", "zero": "zero filled", "mean": "mean filled",
    "kpod": "k-POD", "rkpod": "regularised k-POD", "qrilc": "QRILC", "minprob": "MinProb",
}  # fmt: skip
NOISE_WORDS = {
    "normal": "normal", "t3": "heavy tails\n(t, 3 df)", "laplace": "Laplace",
    "skewed": "skewed\n(gamma)",
}  # fmt: skip
LOSS_WORDS = {
    "chance": "by chance", "class": "at a rate\nof the class", "soft": "below a\nsoft limit",
    "hard": "below a\nhard limit", "decay": "close to zero",
}  # fmt: skip
# Ahead, and level with a rival.
COLOURS = {"mixture": ("#9ecae1", "#deebf7"), "kmeans": ("#a1d99b", "#e5f5e0")}
COLOURS["cv"] = COLOURS["kmeans"]
RIVALS_COLOURS = ("#bdbdbd", "#e6e6e6")
LEVEL = 0.02  # of the adjusted Rand index: closer methods share the place


def draw_picture(table: pd.DataFrame, path: Path) -> None:
    """For every noise and loss the best method, and the best one of the other side."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    means = table[table.method != "known"].groupby(["noise", "loss", "method"]).ari.mean().unstack()
    figure, axis = plt.subplots(figsize=(9, 6.2))
    for x, noise in enumerate(NOISES):
        for y, loss in enumerate(LOSSES):
            if (noise, loss) not in means.index:
                continue
            found = means.loc[(noise, loss)].dropna().sort_values(ascending=False)
            level = [name for name in found.index if found.iloc[0] - found[name] < LEVEL]
            # Where methods are level, ours are named first: they are what the page is about.
            best = next((name for name in OURS if name in level), found.index[0])
            others = [name for name in found.index if (name in OURS) != (best in OURS)]
            is_level = bool(others) and others[0] in level  # they are in falling order
            colour = COLOURS.get(best, RIVALS_COLOURS)[is_level]
            axis.add_patch(plt.Rectangle((x, y), 0.96, 0.94, facecolor=colour))
            axis.text(x + 0.48, y + 0.34, NAMES[best], ha="center", va="center", weight="bold")
            text = f"{found[best]:.2f}"
            if others:
                word = "level with" if is_level else "before"
                text += f", {word}\n{NAMES[others[0]]} {found[others[0]]:.2f}"
            axis.text(x + 0.48, y + 0.66, text, ha="center", va="center", size=9)
    axis.set(xlim=(0, len(NOISES)), ylim=(len(LOSSES), 0))
    axis.set_xticks(np.arange(len(NOISES)) + 0.48, [NOISE_WORDS[n] for n in NOISES])
    axis.set_yticks(np.arange(len(LOSSES)) + 0.47, [LOSS_WORDS[name] for name in LOSSES])
    axis.set_title("Which method when: mean adjusted Rand index, and the best rival's", loc="left")
    axis.set(xlabel="shape of the noise", ylabel="how values get lost")
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="*", default=[300, 2000])
    parser.add_argument("--noises", nargs="*", default=list(NOISES), choices=list(NOISES))
    parser.add_argument("--losses", nargs="*", default=list(LOSSES), choices=LOSSES)
    parser.add_argument("--ks", type=int, nargs="*", default=[3, 5])
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
    sure = options.out / "calibration.csv"  # if the mixture saw normal noise
    text = as_markdown(table, pd.read_csv(sure) if sure.exists() else None)
    (options.out / "soft.md").write_text(text)
    draw_picture(table, options.out / "soft.png")
    print(text)
