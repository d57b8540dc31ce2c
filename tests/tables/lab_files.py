"""Ten files as laboratories have them, with the groups that are in them.

    python tests/tables/lab_files.py FOLDER [variants]

writes them (or those of `lab_variants`), asks `mnarkmeans diagnose` for the command of each, runs
it, and tells how well it finds the groups.

Every file is simulated: three groups of samples, log-normal values, small ones lost below a limit
that is soft, or below none where the field does otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

GROUPS = 3


SIZES = {"level": 23.0, "spread": 2.0, "effect": 2.5, "share": 0.3, "noise": 0.6}


def samples(seed, n, p, *, groups=GROUPS, shuffle=False, **sizes):
    """(groups, log2 values (n, p)): a share of the features differs between the groups."""
    level, spread, effect, share, noise = (SIZES | sizes).values()
    rng = np.random.default_rng(seed)
    group = np.arange(n) % groups
    group = rng.permutation(group) if shuffle else group
    shift = np.where(rng.random((groups, p)) < share, rng.normal(0, effect, (groups, p)), 0.0)
    values = rng.normal(level, spread, p) + shift[group] + rng.normal(0, noise, (n, p))
    return rng, group, values


def seen_above(rng, values, limit, softness=0.7):
    return rng.random(values.shape) < 1 / (1 + np.exp(-(values - limit) / softness))


def maxquant(folder):
    """proteinGroups.txt of MaxQuant: zeros for missing, many other columns, decoys."""
    rng, group, log2 = samples(1, 24, 300)
    seen = seen_above(rng, log2, 21.0)
    lfq = np.where(seen, 2**log2, 0).round().astype(np.int64).T
    names = [f"S{i:02d}" for i in range(24)]
    columns = {
        "Protein IDs": [f"P{10000 + j};Q{j}" for j in range(300)],
        "Majority protein IDs": [f"P{10000 + j}" for j in range(300)],
        "Gene names": [f"GENE{j // 2}" for j in range(300)],
        "Peptides": rng.integers(1, 40, 300),
        "Mol. weight [kDa]": rng.uniform(10, 200, 300).round(3),
        "Q-value": np.zeros(300),
        "Score": rng.uniform(5, 323, 300).round(2),
    }
    columns |= {f"Intensity {n}": (lfq[:, i] * 1.7).astype(np.int64) for i, n in enumerate(names)}
    columns |= {f"LFQ intensity {n}": lfq[:, i] for i, n in enumerate(names)}
    columns |= {f"MS/MS count {n}": rng.integers(0, 30, 300) for n in names}
    columns["Reverse"] = np.where(np.arange(300) % 40 == 0, "+", "")
    columns["Potential contaminant"] = np.where(np.arange(300) % 50 == 1, "+", "")
    pd.DataFrame(columns).to_csv(folder / "proteinGroups.txt", sep="\t", index=False)
    return "proteinGroups.txt", group


def diann(folder):
    """report.pg_matrix.tsv of DIA-NN: a column for each raw file, empty where missing."""
    rng, group, log2 = samples(2, 30, 250)
    seen = seen_above(rng, log2, 21.5)
    frame = pd.DataFrame(np.where(seen, 2**log2, np.nan).T)
    frame.columns = [f"D:\\runs\\2026_{i:03d}.raw" for i in range(30)]
    frame.insert(0, "Protein.Group", [f"P{j:05d}" for j in range(250)])
    frame.insert(1, "Protein.Names", [f"PROT{j}_HUMAN" for j in range(250)])
    frame.insert(2, "Genes", [f"G{j // 2}" for j in range(250)])
    frame.insert(3, "First.Protein.Description", "a protein")
    frame.to_csv(folder / "report.pg_matrix.tsv", sep="\t", index=False)
    return "report.pg_matrix.tsv", group


def tenx(folder):
    """Raw counts of cells as sparse .h5ad, read to different depths."""
    import anndata
    import scipy.sparse as sp

    rng, group, log2 = samples(3, 90, 200, level=-1.0, spread=1.5, effect=2.5, noise=0.3)
    depth = rng.uniform(0.5, 2.0, (90, 1))
    counts = rng.poisson(depth * 2**log2).astype(np.float32)
    obs = pd.DataFrame(index=[f"CELL{i:04d}-1" for i in range(90)])
    var = pd.DataFrame(index=[f"Gene{j}" for j in range(200)])
    anndata.AnnData(sp.csr_matrix(counts), obs, var).write_h5ad(folder / "filtered.h5ad")
    return "filtered.h5ad", group


def two_headers(folder):
    """An Excel sheet with a title, and treatments in a line over the samples."""
    import openpyxl

    rng, group, log2 = samples(4, 18, 60, level=14.0)
    seen = seen_above(rng, log2, 12.5)
    order = np.argsort(group, kind="stable")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Areas"
    sheet.append(["Project 12, areas, exported by hand"])
    sheet.append(["", *(f"Batch {g}" if i % 6 == 0 else None for i, g in enumerate(group[order]))])
    sheet.append(["Compound", *(f"run {i}" for i in order)])
    for j in range(60):
        sheet.append([f"C{j}", *(float(2 ** log2[i, j]) if seen[i, j] else None for i in order)])
    book.create_sheet("Notes").append(["see the lab book"])
    book.save(folder / "areas.xlsx")
    return "areas.xlsx", group[order]


def european(folder):
    """A CSV of a German Excel: semicolons, decimal commas, marks for missing."""
    rng, group, log2 = samples(5, 27, 30, level=3.0, spread=0.5, effect=2.0, share=0.5, noise=0.4)
    seen = seen_above(rng, log2, 2.0, 0.3)
    texts = np.char.replace(log2.round(2).astype(str), ".", ",").astype(object)
    texts[~seen] = rng.choice(["n.d.", "n.a.", "-", "?", ""], (~seen).sum())
    lines = [";".join(["Probe", *(f"Stoff {j}" for j in range(30)), "Ort"])]
    lines += [";".join([f"P{i:03d}", *row, "Köln"]) for i, row in enumerate(texts)]
    (folder / "werte.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "werte.csv", group


def below_limit(folder):
    """Metabolomics: concentrations over decades, <LOD and <0.05 where nothing was found."""
    rng, group, log2 = samples(6, 30, 40, level=2.0, spread=3.0)
    seen = seen_above(rng, log2, 0.0, 0.3)
    texts = np.array([[f"{2**v:.3g}" for v in row] for row in log2], dtype=object)
    texts[~seen] = rng.choice(["<LOD", "<0.05", "BDL"], (~seen).sum())
    frame = pd.DataFrame(texts, columns=[f"Metabolite {j}" for j in range(40)])
    frame.insert(0, "Sample ID", [f"patient {i}" for i in range(30)])
    frame.to_csv(folder / "metabolites.csv", index=False)
    return "metabolites.csv", group


def survey(folder):
    """Answers from 1 to 7, some left out, free text, an age in years."""
    rng, group, _ = samples(7, 60, 2)
    profile = rng.integers(1, 8, (GROUPS, 16))
    answers = np.clip(np.round(profile[group] + rng.normal(0, 0.8, (60, 16))), 1, 7)
    frame = pd.DataFrame(answers, columns=[f"Q{j + 1}" for j in range(16)]).astype("Int64")
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame.insert(0, "respondent", [f"R{i:03d}" for i in range(60)])
    frame.insert(1, "age", rng.integers(18, 80, 60))
    frame["comment"] = rng.choice(["fine", "too long, really", "", "n/a"], 60)
    frame.to_csv(folder / "survey.csv", index=False)
    return "survey.csv", group


def wide(folder):
    """20,000 genes in rows, 15 samples in columns, zeros for genes that were not seen."""
    rng, group, log2 = samples(8, 15, 20_000, level=5.0, spread=3.0, share=0.05)
    seen = seen_above(rng, log2, 2.0)
    counts = np.where(seen, (2**log2).round(), 0).astype(np.int64).T
    frame = pd.DataFrame(counts, columns=[f"patient_{i}" for i in range(15)])
    frame.insert(0, "gene_id", [f"ENSG{j:011d}" for j in range(20_000)])
    frame.to_csv(folder / "counts.tsv.gz", sep="\t", index=False)
    return "counts.tsv.gz", group


def annotated(folder):
    """A plain table, and a second file that says where each sample comes from."""
    rng, group, log2 = samples(9, 27, 30, level=0.0, spread=1.0, effect=2.0)
    seen = rng.random(log2.shape) < 0.85
    frame = pd.DataFrame(np.where(seen, log2, np.nan).round(3))
    frame.columns = [f"marker {j}" for j in range(30)]
    names = [f"S{i:03d}" for i in range(27)]
    frame.insert(0, "sample", names)
    frame.to_csv(folder / "markers.csv", index=False)
    about = pd.DataFrame(
        {
            "sample": names,
            "tissue": np.array(["liver", "lung", "skin"])[group],
            "batch": rng.integers(1, 4, 27).astype(str),
            "age": rng.integers(20, 80, 27),
        }
    )
    about.sample(frac=1, random_state=0).to_csv(folder / "about.csv", index=False)
    return "markers.csv", group


def hopeless(folder):
    """A table copied from a report: units behind every number."""
    lines = ["sample,mass,volume,share"]
    lines += [f"s{i},{i * 1.5:.1f} mg,{i * 2} ml,{i} %" for i in range(30)]
    (folder / "report.csv").write_text("\n".join(lines) + "\n")
    return "report.csv", None


FILES = {
    make.__name__: make
    for make in (maxquant, diann, tenx, two_headers, european, below_limit, survey, wide,
                 annotated, hopeless)
}  # fmt: skip


def agreement(folder, group):
    """Adjusted Rand index of labels.csv with the true groups."""
    from sklearn.metrics import adjusted_rand_score

    labels = pd.read_csv(folder / "labels.csv")["cluster"]
    return adjusted_rand_score(group, labels)


def main(folder, files):
    import json
    import shlex
    import subprocess
    import time

    folder.mkdir(parents=True, exist_ok=True)
    run = [sys.executable, "-m", "mnarkmeans"]
    print("| file | command that diagnose names | adjusted Rand | seconds |\n|---|---|---|---|")
    for name, make in files.items():
        file, group, *_ = make(folder)
        begin = time.perf_counter()
        told = subprocess.run([*run, "diagnose", file, "--json"], cwd=folder, capture_output=True,
                              text=True, check=False)  # fmt: skip
        answer = json.loads(told.stdout)
        if "error" in answer:
            print(f"| {name} | {answer['error']} | | {time.perf_counter() - begin:.1f} |")
            continue
        words = shlex.split(answer["command"])[1:]
        done = subprocess.run([*run, *words, "--force"], cwd=folder, capture_output=True, text=True,
                              check=False)  # fmt: skip
        found = (
            agreement(folder / words[words.index("-o") + 1], group) if not done.returncode else 0
        )
        spent = time.perf_counter() - begin
        print(f"| {name} | `{answer['command']}` | {found:.2f} | {spent:.1f} |{done.stderr[:0]}")


if __name__ == "__main__":
    if "variants" in sys.argv[2:]:
        from lab_variants import VARIANTS as FILES
    elif "exports" in sys.argv[2:]:
        from lab_exports import EXPORTS as FILES
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "lab-files"), FILES)
