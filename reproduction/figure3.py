"""Figure 3: 2 features that matter and 48 that do not, three mechanisms, all methods."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel

from mnarkmeans.baselines import BASELINES

from . import _procedure
from ._runner import Experiment, Row, Setting
from ._shared import (
    CANDIDATES_WIDE,
    COLORS,
    LABELS,
    full_kmeans,
    gaussian_data,
    markdown,
    new_figure,
    nine_settings,
    save,
    scores,
    seed_of,
)

SHOWN = ["kmeans", "mean", "mice", "knn", "kpod", "proposed"]


def settings(quick: bool) -> list[Setting]:
    if quick:
        return [{"n": 90, "p": 20, "k": 3, "mechanism": "mnar0", "missing": 0.3}]
    return nine_settings(n=300, p=50, k=3) + nine_settings(n=400, p=50, k=4)


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data, k = gaussian_data(setting, rng), setting["k"]
    full = full_kmeans(data, k, rng)
    rows = [{"method": "kmeans", **scores(data, full.labels_, full.cluster_centers_)}]
    for name in ("mean", "mice", "knn", "fwpd"):
        model = BASELINES[name](k, random_state=seed_of(rng)).fit(data.data)
        rows.append({"method": name, **scores(data, model.labels_, model.cluster_centers_)})
    kpod = _procedure.fit(data.data, k, 0.0, rng)
    rows.append({"method": "kpod", **scores(data, kpod.labels_, kpod.cluster_centers_), "lam": 0.0})
    lam = _procedure.choose_lam(data.data, k, CANDIDATES_WIDE, rng)
    proposed = _procedure.fit(data.data, k, lam, rng)
    rows.append({"method": "proposed", **scores(data, proposed.labels_, proposed.cluster_centers_)})
    rows[-1] |= {"lam": lam, "n_iter": proposed.n_iter_}
    return rows


def draw(table: pd.DataFrame, folder: Path) -> None:
    draw_boxes(table, folder, "figure3", SHOWN)


def draw_boxes(table: pd.DataFrame, folder: Path, name: str, methods: list[str]) -> None:
    """Box plots: missing share x mechanism, one picture per k and score."""
    mechanisms, shares = list(table.mechanism.unique()), sorted(table.missing.unique())
    for k in sorted(table.k.unique()):
        for score in ("cer", "mse"):
            figure, axes = new_figure(len(shares), len(mechanisms), height=2.2, sharex=True)
            for row, missing in enumerate(shares):
                for column, mechanism in enumerate(mechanisms):
                    axis = axes[row, column]
                    chosen = (table.mechanism == mechanism) & (table.missing == missing)
                    panel = table[chosen & (table.k == k)]
                    for place, method in enumerate(methods):
                        color = COLORS[method]
                        axis.boxplot(
                            panel[panel.method == method][score].dropna(),
                            positions=[place],
                            widths=0.6,
                            **{
                                part: {"color": color}
                                for part in (
                                    "boxprops",
                                    "medianprops",
                                    "whiskerprops",
                                    "capprops",
                                )
                            },
                            flierprops={"markersize": 3, "markeredgecolor": color},
                        )
                    axis.set_xticks(
                        range(len(methods)),
                        [LABELS[m].split(",")[0] for m in methods],
                        rotation=45,
                        ha="right",
                    )
                    if row == 0:
                        axis.set_title(mechanism.upper())
                    if column == 0:
                        axis.set_ylabel(f"{score.upper()}, {missing:.0%} missing")
            save(figure, folder, f"{name}_k{k}_{score}")


def compare(table: pd.DataFrame) -> str:
    parts, best, total = [], 0, 0
    exceptions: dict[bool, list[str]] = {True: [], False: []}  # by: sees gaps
    for score in ("cer", "mse"):
        rows = []
        for (k, mechanism, missing), panel in table.groupby(["k", "mechanism", "missing"]):
            wide = panel.pivot(index="repetition", columns="method", values=score)
            means = wide.mean()
            total += 1
            best += means["proposed"] == means[SHOWN[1:]].min()
            cells = []
            for method in [*SHOWN[:-1], "fwpd"]:
                p = paired_p(wide["proposed"], wide[method])
                cells.append(f"{means[method]:.3f} (p {_p(p)})")
                if method != "fwpd" and not (means["proposed"] < means[method] and p < 0.001):
                    exceptions[method != "kmeans"].append(
                        f"k = {k}, {mechanism.upper()} {missing:.0%}, {score.upper()}: proposed "
                        f"{means['proposed']:.3f}, {LABELS[method]} {means[method]:.3f}, p {_p(p)}"
                    )
            rows.append([k, mechanism.upper(), f"{missing:.0%}", means["proposed"], *cells])
        parts.append(
            f"## {score.upper()}\n\n"
            + markdown(
                ["k", "mechanism", "missing", "proposed"]
                + [LABELS[m] for m in [*SHOWN[:-1], "fwpd"]],
                rows,
            )
        )
    words = (
        "Among the methods that see gaps the proposed one has the smallest mean in "
        f"{best} of {total} cases (settings x scores). The paper reports it best in almost all "
        "settings with every t-test below 0.001, and FWPD above a CER of 0.4 at 10 %. p: paired "
        "t-tests over the repetitions, proposed against each method.\n\n"
    )
    for sees_gaps, against in ((True, "a method that sees gaps"), (False, "full-data k-means")):
        listed = exceptions[sees_gaps]
        cases = total * (len(SHOWN) - 2 if sees_gaps else 1)
        words += (
            f"Against {against} it is better with p < 0.001 in {cases - len(listed)} of {cases} "
            "comparisons" + (". Not so:\n\n- " + "\n- ".join(listed) if listed else ".") + "\n\n"
        )
    return words + "\n".join(parts)


def paired_p(ours: pd.DataFrame, theirs: pd.DataFrame) -> float:
    difference = (ours - theirs).dropna()
    if len(difference) < 2 or difference.std() == 0:
        return 1.0
    return float(ttest_rel(ours, theirs, nan_policy="omit").pvalue)


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


EXPERIMENT = Experiment(
    "figure3",
    "Figure 3: all methods, three mechanisms, 48 features that do not matter",
    30,
    settings,
    compute,
    draw,
    compare,
)
