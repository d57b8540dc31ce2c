"""Results on fixed tables stay as they were stored: what changes here changes for users.

A change that is meant goes into the changelog, and `python tests/test_results.py` writes the new
results. Long arrays are kept as three sums.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import warnings
import zlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import ndtr

from mnarkmeans import (
    MiniBatchMNARKMeans,
    MNARKMeans,
    MNARKMeansCV,
    MNARMixture,
    metrics,
    read_table,
    report,
    tl,
)
from mnarkmeans._embedding import embed
from mnarkmeans.baselines import BASELINES
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics._annotations import agreement
from mnarkmeans.missingness import ampute, diagnose
from mnarkmeans.tables import BatchCenter, Preparation, Table, advise

sys.path.append(str(Path(__file__).parent / "tables"))
from lab_files import LAB_FILES
from test_dialects import dialects
from test_preparation import STEPS

STORED = Path(__file__).parent / "data" / "results.json"
MECHANISMS = ("mcar", "decay", "threshold", "limit", "class")
WHOLE = 12  # entries of an array that are kept one by one
NOT_RESULTS = ("mean_fit_time", "std_fit_time", "versions", "embedding")  # its signs are free


def table(mechanism, n=60, p=4, apart=4.0, seed=0):
    """Three groups that differ in the first features, and values lost in some way."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    X = rng.normal(size=(n, p)) + apart * np.eye(3, p)[group]
    lost = {
        "mcar": np.full(X.shape, 0.25),
        "class": np.where(group == 0, 0.1, 0.4)[:, None] + np.zeros(p),
        "decay": 0.8 * np.exp(-0.5 * X**2),
        "partly": 0.8 * np.exp(-0.5 * X**2) * (np.arange(p) % 3 < 2),
        "threshold": (np.abs(X) < 0.6).astype(float),
        "limit": ndtr((-0.4 - X) / 0.3),
    }[mechanism]
    X[rng.random(X.shape) < lost] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def weights_of(X):
    return 0.5 + np.arange(len(X)) % 4


def choice(X, k=3):
    """lam="auto" and its reasons, with weights."""
    model = MNARKMeans(k, n_init=3, random_state=0).fit(X, sample_weight=weights_of(X))
    found = model.missingness_
    return {
        "centers": model.cluster_centers_, "lam": model.lam_, "reference": model.reference_,
        "candidates": found.candidates, "lam_range": found.lam_range, "explained": found.explained,
        "mechanisms": [fit._asdict() for fit in found.mechanisms], "theory": found.lam_theory,
        "by_chance": found.n_by_chance, "decided_by": found.decided_by,
    }  # fmt: skip


def selection(X, ks=(2, 3, 4), **options):
    model = MNARKMeansCV(ks, n_init=2, random_state=0, **options).fit(X)
    columns = {k: v for k, v in model.cv_results_.items() if k not in NOT_RESULTS}
    return {"columns": columns, "best": model.best_index_, "centers": model.cluster_centers_,
            "stability": model.stability_}  # fmt: skip


def mixture(mechanism, **options):
    X = table("decay" if mechanism == "auto" else mechanism, apart=2.5)
    model = MNARMixture(3, mechanism=mechanism, max_iter=15, tol=0.0, random_state=0, **options)
    model.fit(X, sample_weight=weights_of(X))
    fitted = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and name not in ("missingness_", "n_features_in_", "n_iter_")
    }
    return fitted | {
        "scores": model.score_samples(X), "probabilities": model.predict_proba(X),
        "criteria": [model.bic(X), model.aic(X), model.icl(X)], "imputed": model.impute(X),
        "sample": np.nansum(model.sample(50, gaps=True)[0], axis=0),
        "missingness": model.missingness_._asdict(),
    }  # fmt: skip


def heavy(mechanism):
    """Student's t, the covariances spherical; complete features beside others."""
    X = table("partly", p=5, apart=2.5)
    model = MNARMixture(3, mechanism=mechanism, tails="t", covariance_type="spherical", tol=0.0,
                        max_iter=8, random_state=0).fit(X, sample_weight=weights_of(X))  # fmt: skip
    return {
        "means": model.means_, "variances": model.covariances_, "lower_bound": model.lower_bounds_,
        "parameters": model.missingness_.parameters, "mechanism": model.mechanism_,
        "scores": model.score_samples(X), "probabilities": model.predict_proba(X),
        "freedom": model.degrees_of_freedom_, "temper": model.temper_, "imputed": model.impute(X),
    }  # fmt: skip


def description(X):
    found = diagnose(X)
    return {
        "kind": found.kind, "trend": found.trend, "curve": found.curve._asdict(),
        "feature_curve": found.feature_curve._asdict(), "lam": found.suggested_lam,
        "reference": found.suggested_reference, "rows": found.row_share,
        "mechanisms": [fit._asdict() for fit in found.mechanisms], "said": figures(str(found)),
    }  # fmt: skip


def judgement(X, k=3):
    model = MNARKMeans(k, lam=0.3, n_init=3, random_state=0).fit(X)
    found = metrics.verdict(X, model)
    return {
        "verdict": {k: v for k, v in found.to_dict().items() if k not in ("sentence", "headline")},
        "said": figures(found.sentence), "confidence": found.confidence,
        "markers": dict(metrics.cluster_markers(X, model)),
        "indices": [metrics.silhouette_score(X, model), metrics.silhouette_score(X, model.labels_),
                    metrics.calinski_harabasz_score(X, model)],
    }  # fmt: skip


def markers_of_sparse_counts():
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], [10, 30, 8])
    counts = rng.poisson(np.where((np.arange(40) < 6) & (labels == 1)[:, None], 5.0, 1.2))
    return dict(metrics.cluster_markers(sp.csr_array(counts.astype(float)), labels))


def baseline(name):
    X = table("mcar", n=45, p=5)
    X = np.abs(table("decay", n=45, p=25, apart=3.0)) if name == "scimpute" else X
    model = BASELINES[name](3, random_state=0).fit(X)
    return {
        "sizes": np.sort(np.bincount(model.labels_)),
        "centers": sorted(model.cluster_centers_.tolist()),
    }


def advice(name):
    """Of a file of a laboratory: how it is read, what to do with it, and what then is clustered."""
    with tempfile.TemporaryDirectory() as folder:
        file, *_ = LAB_FILES[name](Path(folder))
        found = advise(Path(folder, file))
        _, table, X = found.preparation.fit_apply(found.table)
    return {
        "command": found.command(file), "shape": table.shape, "steps": len(found.suggestions),
        "features": list(table.features[:3]), "ids": list(table.ids[:3]),
        "left_out": len(found.table.left_out), "notes": len(found.table.notes),
        "values": X.toarray() if sp.issparse(X) else X,
    }  # fmt: skip


def lost(mechanism):
    X = np.random.default_rng(1).normal(1.0, 2.0, size=(80, 3))
    softness = {"softness": 0.4} if mechanism == "limit" else {}
    return {
        str(fraction): np.isnan(ampute(X, mechanism, fraction=fraction, rng=0, **softness))
        for fraction in (0.2, 0.5)
    }


def mini_batches(X, k=3, size=20):
    model = MiniBatchMNARKMeans(k, lam=0.4, batch_size=size, max_iter=3, random_state=0)
    model.fit(X, sample_weight=weights_of(X)).partial_fit(X[:30] + 0.5)
    return {"centers": model.cluster_centers_, "path": model.loss_path_}


def batches():
    X, batch = table("mcar", n=60), np.repeat(["a", "b", "c"], [10, 20, 30])
    X = X + 3.0 * (batch == "b")[:, None] * np.arange(4)
    model = BatchCenter(random_state=0)
    return {"moved": model.fit_transform(X, batch=batch), "new": model.transform(X, batch=batch)}


def plane(X):
    found = embed(X, 0.3, 0.5)
    return {"points": np.abs(found.points), "explained": found.explained}


def numbers(value):
    """All of a page, in order."""
    if isinstance(value, Mapping):
        return [x for key, own in value.items() if "seconds" not in key for x in numbers(own)]
    if isinstance(value, (list, tuple)):
        return [x for own in value for x in numbers(own)]
    return [float(value)] if isinstance(value, (int, float)) else []


def page(model):
    """The numbers of each section of a report, those of its charts among them."""
    X = table("decay", n=90, p=6)
    told = {"age": np.arange(len(X)) % 7, "sex": np.array(["f", "m", "m"])[np.arange(len(X)) % 3]}
    made = report(model.fit(X), X, annotations=told)
    return {name: numbers(own) for name, own in made.page.items() if name not in NOT_RESULTS}


def cells():
    """scanpy's way in: counts with zeros for missing, in two batches."""
    rng = np.random.default_rng(2)
    group, batch = np.arange(80) % 2, np.arange(80) // 40
    counts = (
        rng.poisson(np.where(group[:, None] == np.arange(6) % 2, 6.0, 0.7)) * (1 + batch)[:, None]
    )
    adata = pytest.importorskip("anndata").AnnData(np.log1p(counts.astype(float)))
    adata.obs["batch"] = batch.astype(str)
    tl.mnar_kmeans(adata, [2, 3], batch_key="batch", random_state=0, n_init=2, verbose=False)
    kept = adata.uns["mnar_kmeans"]
    return {
        "centers": adata.varm["mnar_kmeans"],
        "confidence": adata.obs["mnar_kmeans_confidence"], "lam": kept["lam"],
        "shifts": kept["batch_shifts"], "inertia": kept["inertia"],
    }  # fmt: skip


def clusters():
    made = make_gaussian_clusters(50, centers=3, n_features=6, random_state=0)
    return {"data": made.data, "target": made.target}


SIZES = [(n, p) for n in (2, 3, 4, 5, 6, 8, 9, 10, 11, 13) for p in (1, 2, 3, 5)]


def refusal_or(make, *given):
    """What is made, or the words of the refusal."""
    try:
        return make(*given)
    except ValueError as error:
        return str(error)


def edges(make, sizes=SIZES, **options):
    """Of small tables: all numbers, warnings among them, or the words of the refusal."""
    found = {}
    for n, p in sizes:
        X = table("decay", n=3 * n, p=max(3, p), **options)[:n, :p]
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            made = refusal_or(make, X[~np.isnan(X).all(axis=1)])
        made = [made] if isinstance(made, str) else numbers(plain(made))
        made += [x for one in warned for x in figures(str(one.message))]
        found[f"{n} x {p}"] = made if isinstance(made[0], str) else np.arcsinh(made)
    return found


def figures(text):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def edge_of_metrics(X):
    labels, word = np.arange(len(X)) % 2, np.arange(len(X)) // 2 % 3
    notes = {"word": word.astype(str), "number": X[:, 0]}
    agree = [agreement(name, values, labels) for name, values in notes.items()]
    agree = sorted((one for one in agree if one.nested == one.nested), key=lambda one: -one.nested)
    return {
        "markers": dict(metrics.cluster_markers(X, labels)),
        "agreement": [one._asdict() for one in agree],
        "indices": [metrics.silhouette_score(X, labels),
                    metrics.calinski_harabasz_score(X, labels)],
    }  # fmt: skip


def edge_of_mixtures(X):
    models = (MNARMixture(2, mechanism=m, max_iter=3, random_state=0).fit(X) for m in MECHANISMS)
    return {
        model.mechanism: {"means": model.means_, "covariances": model.covariances_,
                          "scores": model.score_samples(X), "temper": model.temper_}
        for model in models
    }  # fmt: skip


def readings(n, p):
    """Of each text: the shape that is read, its sum, what is noted, a sum of the names."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "t.csv")
        for *_, text in dialects(n, p):
            file.write_text(text)
            read = refusal_or(read_table, file)
            if isinstance(read, str):
                found.append(-1.0)
                continue
            names = " ".join([*read.ids, *read.features]).encode()
            total, sum_of_names = np.nansum(read.values), zlib.crc32(names) % 100
            found += [*read.shape, total, len(read.notes), sum_of_names]
    return np.array(found)


MEASUREMENTS = (
    "log", "raw", "uneven", "offset", "counts", "shares", "ratings", "coded", "scales"
)  # fmt: skip


def preparations():
    X = np.where(np.arange(42).reshape(7, 6) % 5 == 0, np.nan, measurements("raw", 7, 6) + 1.0)
    named = Table(X, np.array([f"r{i}" for i in range(7)], object), [f"f{j}" for j in range(6)])
    return {str(steps): Preparation(**steps).fit_apply(named)[2] for steps in STEPS}


def measurements(kind, n, p):
    rng = np.random.default_rng(n + p)
    level = rng.normal(0.0, 1.5, size=p) + rng.normal(size=(n, p)) + (np.arange(n) % 2)[:, None]
    lost = rng.random((n, p)) < 0.15
    return {
        "log": np.where(lost, np.nan, level),
        "raw": np.where(level < -1.0, 0.0, np.exp(level + 8.0)),
        "uneven": np.exp(level + 5.0 + rng.normal(size=(n, 1))),
        "offset": np.where(lost, np.nan, level + 2.0 * rng.normal(size=(n, 1))),
        "counts": rng.poisson(np.exp(level)).astype(float),
        "shares": np.where(lost, np.nan, 1.0 / (1.0 + np.exp(-level))),
        "ratings": np.where(lost, np.nan, np.clip(np.round(level + 3.0), 1, 5)),
        "coded": np.where(lost, -999.0, np.round(level, 1)),
        "scales": np.where(lost, np.nan, level * 10.0 ** (np.arange(p) % 4)),
    }[kind]


def edge_of_advice(kind):
    found = {}
    for n, p in [(3, 3), (4, 6), (9, 10), (10, 11), (12, 60), (20, 30), (60, 4)]:
        X = measurements(kind, n, p)
        frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(p)])
        frame.insert(0, "id", [f"r{i}" for i in range(n)])
        given = found[f"{n} x {p}"] = refusal_or(advise, frame)
        if isinstance(given, str):
            continue
        said = [x for one in given.suggestions for x in figures(one.reason)]
        prepared = given.preparation.fit_apply(given.table)[2]
        found[f"{n} x {p}"] = {"command": given.command("t.csv"), "said": said, "values": prepared}
    return found


def edge_of_codes(X):
    """Some values are -999: whether that is noticed, and what a fit makes of it."""
    X[: max(1, len(X) // 4), 0] = -999.0
    model = MNARKMeans(2, lam=0.5, n_init=1, random_state=0).fit(X)
    return {"centers": model.cluster_centers_, "path": model.loss_path_}


def edge_of_batch_shifts(X):
    """Of the last batch there is one row."""
    batch = np.minimum(np.arange(len(X)), 2 * (len(X) - 1) // 2) // 2
    return BatchCenter(random_state=0).fit_transform(X, batch=batch)


def edge_of_counts(X):
    """Most are zero, or few of them and one cell is unlike all others."""
    found = []
    for counts in (np.nan_to_num(np.abs(X)) ** 3, 20.0 * np.nan_to_num(np.abs(X)) + 3.0):
        counts = np.floor(counts)
        counts[-1] *= np.arange(X.shape[1]) % 3
        model = BASELINES["scimpute"](2, random_state=0).fit(counts)
        found.append([np.sort(model.cluster_centers_, axis=0), np.sort(model.imputed_, axis=0)])
    return {f"{i} {j}": one for i, pair in enumerate(found) for j, one in enumerate(pair)}


def edge_of_baselines(X):
    models = {name: BASELINES[name](2, random_state=0).fit(X) for name in SIMPLE}
    return {
        name: {
            "centers": np.sort(one.cluster_centers_, axis=0),
            "sizes": np.sort(np.bincount(one.labels_)),
        }
        for name, one in models.items()
    }


def edge_of_lost(X):
    """With a feature that is never observed and a constant one."""
    X = np.column_stack([X, np.full(len(X), np.nan), np.ones(len(X))])
    ways = [("mcar", 0.0), ("mnar0", 0.0), ("mnar1", 0.0), ("mnar2", 0.0), ("limit", 0.0),
            ("limit", 0.5)]  # fmt: skip
    return {
        f"{way} {strength}": np.isnan(ampute(X, way, strength=strength, softness=soft, rng=0))
        for way, soft in ways
        for strength in (0.0, 0.3, 1.0)
    }


def words_among_numbers(n):
    """Of the j-th column j cells are words, in j rows or as j different ones."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "t.csv")
        for words in range(min(n, 12) + 1):
            for different in (False, True):
                cells = [f"w{i * different}" if i < words else f"{i}.5" for i in range(n)]
                lines = (f"r{i},{i % 7}.25,{cell}" for i, cell in enumerate(cells))
                file.write_text("\n".join(["id,a,b", *lines]) + "\n")
                read = refusal_or(read_table, file)
                if isinstance(read, str):
                    found.append(-1.0)
                    continue
                said = [x for note in (*read.notes, *read.left_out) for x in figures(str(note))]
                found += [*read.shape, np.nansum(read.values), *said]
    return np.array(found)


NAMES = (
    "Mass", "Mass [kDa]", "Mol. weight", "Retention time [min]", "CV [%]", "p-value", "q value",
    "log2 fold change", "m/z", "Sequence length", "Score 2", "Mean Ctrl", "QC 1", "Blank_2",
    "pooled", "sample 3", "gene", "min", "counted",
)  # fmt: skip


def further_column(name):
    """Beside proteins in samples: is it advised to leave the column out, and how is it read?"""
    found = {}
    for n in (3, 4, 5, 6, 12):
        frame = pd.DataFrame(measurements("log", n, 6), columns=[f"ctrl {j}" for j in range(6)])
        frame.insert(0, "Protein IDs", [f"P{i}" for i in range(n)])
        frame[name] = np.arange(1, n + 1) if name == "counted" else 0.5 * np.arange(n) ** 2
        given = found[str(n)] = refusal_or(advise, frame)
        if not isinstance(given, str):
            found[str(n)] = [given.command("t.csv"), *map(str, given.table.left_out)]
    return found


SIMPLE = ("zero", "mean", "knn", "qrilc", "minprob", "pca", "kpod", "rkpod", "fwpd")
FEW = [(n, p) for n in (2, 3, 4, 6, 10) for p in (1, 3)]
EDGES = {
    "choice": (partial(choice, k=2), FEW),
    "search": (
        partial(selection, ks=[2, 3], n_splits=3),
        [(n, p) for n in (6, 8, 11) for p in (1, 3)],
    ),
    "batches": (partial(mini_batches, k=2, size=4), SIZES),
    "metrics": (edge_of_metrics, SIZES),
    "description": (description, FEW),
    "verdict": (partial(judgement, k=2), [(n, p) for n in (12, 19, 20, 31, 40) for p in (1, 2, 7)]),
    "embedding": (plane, SIZES),
    "codes": (edge_of_codes, SIZES),
    "batch-shifts": (edge_of_batch_shifts, FEW),
    "counts": (edge_of_counts, [(12, 8), (16, 5), (24, 12)]),
    "baselines": (edge_of_baselines, FEW),
    "lost": (edge_of_lost, FEW),
    "mixtures": (edge_of_mixtures, [(6, 1), (6, 3), (13, 2)]),
}

CASES = {
    **{
        f"choice-{m}-{p}": (choice, table(m, p=p))
        for m in ("mcar", "decay", "limit", "partly")
        for p in (4, 30)
    },
    **{
        f"selection-{c}": (partial(selection, criterion=c, n_splits=4), table("decay", n=45))
        for c in ("score", "paper")
    },
    **{f"mixture-{m}": (mixture, m) for m in (*MECHANISMS, "auto")},
    **{f"heavy-{m}": (heavy, m) for m in (*MECHANISMS, "auto")},
    **{f"description-{m}": (description, table(m)) for m in (*MECHANISMS, "partly")},
    "judgement-groups": (judgement, table("decay", n=150, apart=6.0)),
    "judgement-continuum": (judgement, table("mcar", n=150, apart=0.5)),
    "markers-sparse": (markers_of_sparse_counts,),
    **{f"baseline-{name}": (baseline, name) for name in BASELINES if not name.startswith("gmm")},
    **{f"lost-{m}": (lost, m) for m in ("mcar", "mar", "mnar0", "mnar1", "mnar2", "limit")},
    **{f"advice-{name}": (advice, name) for name in LAB_FILES if name != "hopeless"},
    **{f"edges-{name}": (edges, *given) for name, given in EDGES.items()},
    **{f"readings-{n}-{p}": (readings, n, p) for n in (1, 2, 3) for p in (1, 2, 3)},
    **{f"words-{n}": (words_among_numbers, n) for n in (3, 5, 10, 20, 60)},
    **{f"measurements-{kind}": (edge_of_advice, kind) for kind in MEASUREMENTS},
    **{f"column-{name}": (further_column, name) for name in NAMES},
    "preparations": (preparations,),
    "mini-batches": (mini_batches, table("decay", n=120)),
    "batches": (batches,),
    "plane": (plane, table("decay", p=8)),
    "clusters": (clusters,),
    "cells": (cells,),
    "page-fit": (page, MNARKMeans(3, n_init=3, random_state=0)),
    "page-search": (page, MNARKMeansCV([2, 3], n_init=2, n_splits=3, random_state=0)),
}


def plain(value):
    """As JSON can hold it: of a long array its length and three sums."""
    if isinstance(value, Mapping):
        return {str(key): plain(own) for key, own in value.items()}
    array = np.asarray(value)
    if array.dtype.kind in "OU":
        return [plain(own) for own in value] if array.ndim else str(value)
    array = array.astype(float).ravel()
    if array.size > WHOLE:
        wave, missing = np.sin(np.arange(1, array.size + 1)), ~np.isfinite(array)
        array = np.where(missing, 0.0, array)
        array = np.array([missing.size, array.sum(), wave @ array, wave @ missing])
    values = [str(x) if not np.isfinite(x) else float(np.round(x, 9)) for x in array]
    return values if np.ndim(value) else values[0]


def result(name):
    make, *given = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(make(*given))


def differences(found, stored, path=""):
    """Where two results differ."""
    if isinstance(stored, dict) and isinstance(found, dict) and stored.keys() == found.keys():
        return [line for k in stored for line in differences(found[k], stored[k], f"{path}/{k}")]
    if isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        pairs = enumerate(zip(found, stored, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{path}/{i}")]
    if isinstance(stored, (int, float)) and isinstance(found, (int, float)):
        same = np.isclose(found, stored, rtol=1e-5, atol=1e-6)
    else:
        same = found == stored
    return [] if same else [f"{path}: {found} instead of {stored}"]


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_stored(name):
    assert differences(result(name), json.loads(STORED.read_text())[name]) == []


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(result(name))}" for name in CASES]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
