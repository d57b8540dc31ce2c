"""More files as laboratories have them: other programs, names, marks, signs, sizes and gaps.

    python tests/tables/lab_files.py FOLDER variants

runs the command that `diagnose` names on each. They were written after the rules that read them, to
find out what these miss; what cannot be clustered as it is must be told, with what to do.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from lab_files import samples, seen_above


def shuffled(seed, n, p, *, groups=3, **more):
    """Groups in no order, and other sizes of effect than the first files have."""
    settings = {"effect": 2.0, "noise": 0.7} | more
    return samples(seed, n, p, groups=groups, shuffle=True, **settings)


def decimal_commas(values, digits=2):
    return np.char.replace(np.char.mod(f"%.{digits}f", values), ".", ",").astype(object)


def maxquant_intensities(folder):
    """No LFQ: intensities beside iBAQ, the sum over all samples, names of decoys and flags."""
    rng, group, log2 = shuffled(101, 40, 300, groups=4)
    x = np.where(seen_above(rng, log2, 22.0), 2**log2, 0).round().astype(np.int64).T
    ids = [("REV__" if j % 37 == 5 else "CON__" if j % 41 == 7 else "") + f"A0A{j:04d}"
           for j in range(300)]  # fmt: skip
    names = [f"{'ctrl' if i < 20 else 'drug'}_{i}" for i in range(40)]
    columns = {"Protein IDs": ids, "Number of proteins": rng.integers(1, 5, 300)}
    columns |= {"Sequence coverage [%]": rng.uniform(0, 90, 300).round(1), "Intensity": x.sum(1)}
    columns |= {f"Identification type {name}": ["By MS/MS"] * 300 for name in names}
    columns |= {f"Intensity {name}": x[:, i] for i, name in enumerate(names)}
    columns |= {f"iBAQ {name}": x[:, i] // 7 for i, name in enumerate(names)}
    columns |= {
        "Reverse": ["+" if name.startswith("REV") else "" for name in ids],
        "id": range(300),
    }
    pd.DataFrame(columns).to_csv(folder / "mq.txt", sep="\t", index=False)
    return "mq.txt", group, "--columns 'Intensity *' --drop-rows Reverse=+ --log2"


def decoys_by_name(folder):
    """Decoys that no column flags."""
    rng, group, log2 = shuffled(102, 21, 200)
    x = np.where(seen_above(rng, log2, 21.5), 2**log2, 0).round().T
    ids = [("REV__" if j % 37 == 5 else "") + f"A0A{j:04d}" for j in range(200)]
    frame = pd.DataFrame({"Majority protein IDs": ids, "Gene names": [f"G{j}" for j in range(200)]})
    frame = frame.assign(**{f"LFQ intensity run{i:02d}": x[:, i] for i in range(21)})
    frame.to_csv(folder / "lfq.tsv", sep="\t", index=False)
    return "lfq.tsv", group, "--transpose --drop-rows 'Majority protein IDs=REV__*' --log2"


def diann_paths(folder):
    """Columns named by paths, beside counts of sequences."""
    rng, group, log2 = shuffled(103, 36, 180, level=20.0)
    frame = pd.DataFrame(np.where(seen_above(rng, log2, 19.0), 2**log2, np.nan).T)
    frame.columns = [f"/mnt/data/run 7/{i:02d}_plasma.mzML.dia" for i in range(36)]
    frame.insert(0, "Protein.Group", [f"P{j:05d}" for j in range(180)])
    frame.insert(1, "N.Sequences", rng.integers(1, 30, 180))
    frame.to_csv(folder / "report.pg_matrix.tsv", sep="\t", index=False)
    return "report.pg_matrix.tsv", group, "--columns '*.dia' --transpose --log2"


def spectronaut(folder):
    """ "Filtered" where nothing was found."""
    rng, group, log2 = shuffled(104, 24, 200, groups=2, level=17.0)
    x = np.array([[repr(float(v)) for v in row] for row in 2**log2], dtype=object)
    x[~seen_above(rng, log2, 16.0)] = "Filtered"
    frame = pd.DataFrame(x.T, columns=[f"[{i}] PL_{i:02d}.raw.PG.Quantity" for i in range(24)])
    frame.insert(0, "PG.ProteinGroups", [f"P{j:05d}" for j in range(200)])
    frame["PG.Qvalue"] = rng.uniform(0, 0.01, 200)
    frame.to_csv(folder / "spectronaut.tsv", sep="\t", index=False)
    return "spectronaut.tsv", group, "--columns *.PG.Quantity --transpose --log2"


def fragpipe(folder):
    rng, group, log2 = shuffled(105, 20, 250, groups=2)
    x = np.where(seen_above(rng, log2, 21.5), 2**log2, 0).T
    frame = pd.DataFrame({"Protein": [f"sp|P{j:05d}|X_HUMAN" for j in range(250)]})
    frame["Protein Length"] = rng.integers(80, 900, 250)
    kinds = {"Spectral Count": rng.integers(0, 40, x.shape), "Intensity": x, "MaxLFQ Intensity": x}
    for kind, values in kinds.items():
        frame = frame.assign(**{f"k{i} {kind}": values[:, i] for i in range(20)})
    frame.to_csv(folder / "combined_protein.tsv", sep="\t", index=False)
    return "combined_protein.tsv", group, "--columns '* MaxLFQ Intensity' --missing-value 0 --log2"


def proteome_discoverer(folder):
    """Excel, a flag that says True, abundances twice."""
    rng, group, log2 = shuffled(106, 16, 150, groups=2)
    x = np.where(seen_above(rng, log2, 21.5), 2**log2, np.nan).T
    frame = pd.DataFrame({"Accession": [f"P{j:05d}" for j in range(150)]})
    frame["# Peptides"] = rng.integers(1, 50, 150)
    frame["Contaminant"] = np.arange(150) % 50 == 0
    for kind in ("Abundance: F{}: Sample", "Abundances (Normalized): F{}: Sample"):
        frame = frame.assign(**{kind.format(i): x[:, i] for i in range(16)})
    frame.to_excel(folder / "proteins.xlsx", index=False)
    return "proteins.xlsx", group, "--drop-rows Contaminant=True --log2"


def german(folder):
    """Quoted decimal commas, a mark of the byte order, a sign after the last column."""
    rng, group, values = shuffled(107, 70, 14, level=50.0, spread=10.0, effect=12.0, share=0.6,
                                  noise=3.0)  # fmt: skip
    texts, lost = decimal_commas(values, 3), ~seen_above(rng, values, 40.0, 3.0)
    texts[lost] = rng.choice(["<NG", "n. n.", "nicht nachweisbar", "#NV", ""], lost.sum())
    lines = [";".join(['"Patient-Nr."', *(f'"Größe {j} [µmol/l]"' for j in range(14)), ""])]
    lines += [";".join([f'"{1000 + i}"', *(f'"{t}"' for t in row), ""])
              for i, row in enumerate(texts)]  # fmt: skip
    (folder / "werte.csv").write_text("\r\n".join(lines) + "\r\n", encoding="utf-8-sig")
    return "werte.csv", group, ""


def french(folder):
    """Units in a second line."""
    rng, group, values = shuffled(108, 50, 25, level=5.0, spread=1.0, share=0.5, noise=0.5)
    texts, lost = decimal_commas(values), ~seen_above(rng, values, 4.0, 0.4)
    texts[lost] = rng.choice(["ND", "<LOQ"], lost.sum())
    lines = ["Echantillon;" + ";".join(f"acide {j}" for j in range(25)), ";mg/l" * 25]
    lines += [f"E{i};" + ";".join(row) for i, row in enumerate(texts)]
    (folder / "acides.csv").write_text("\n".join(lines) + "\n", encoding="ascii")
    return "acides.csv", group, ""


def unicode_text(folder):
    """What Excel calls Unicode text: UTF-16, tabs."""
    rng, group, values = shuffled(109, 48, 30, groups=4, level=8.0, spread=1.0, share=0.5)
    seen = seen_above(rng, values, 7.0, 0.5)
    frame = pd.DataFrame(np.where(seen, values, np.nan).round(4)).add_prefix("Zytokin ")
    frame.insert(0, "Proben-ID", [f"Ä{i}" for i in range(48)])
    frame.to_csv(
        folder / "cytokines.txt", sep="\t", index=False, encoding="utf-16", na_rep="missing"
    )
    return "cytokines.txt", group, ""


def merged_cells(folder):
    """A title page, then groups over names over units."""
    import openpyxl

    rng, group, log2 = shuffled(110, 27, 45, level=12.0)
    seen = seen_above(rng, log2, 11.0)
    book = openpyxl.Workbook()
    book.active.append(["This workbook holds areas"])
    sheet = book.create_sheet("Data")
    sheet.append(["Sample", "Amino acids", *[None] * 19, "Lipids", *[None] * 24])
    sheet.merge_cells(start_row=1, start_column=2, end_row=1, end_column=21)
    sheet.append([None, *(f"c{j}" for j in range(45))])
    sheet.append([None, *["µM"] * 45])
    for i in range(27):
        cells = (float(2 ** log2[i, j]) if seen[i, j] else "<LOD" for j in range(45))
        sheet.append([f"m{i}", *cells])
    book.save(folder / "merged.xlsx")
    return "merged.xlsx", group, "--log2"


def compounds_in_rows(folder):
    """Thousands set apart, masses and times beside the samples."""
    rng, group, log2 = shuffled(111, 32, 90, groups=4, level=15.0, spread=2.5)
    texts = np.array([[f"{v:,.1f}" for v in row] for row in 2**log2], dtype=object)
    texts[~seen_above(rng, log2, 14.0)] = "<0.05"
    frame = pd.DataFrame(texts.T, columns=[f"mouse-{i}" for i in range(32)])
    frame.insert(0, "Compound Name", [f"comp {j}" for j in range(90)])
    frame.insert(1, "m/z", rng.uniform(80, 900, 90).round(4))
    frame.insert(2, "RT [min]", rng.uniform(0.5, 22, 90).round(2))
    frame.to_csv(folder / "compounds.csv", index=False)
    return "compounds.csv", group, "--transpose --drop m/z --drop 'RT [min]' --log2"


def coded_survey(folder):
    rng, group, _ = shuffled(114, 120, 2)
    profile = rng.integers(1, 6, (3, 18))
    answers = np.clip(np.round(profile[group] + rng.normal(0, 0.7, (120, 18))), 1, 5).astype(int)
    answers[rng.random(answers.shape) < 0.15] = 99
    frame = pd.DataFrame(answers).add_prefix("v")
    frame.insert(0, "sex", rng.integers(1, 3, 120))
    frame.to_csv(folder / "codes.csv", index=False)
    return "codes.csv", group, "--missing-value 99"


def log_tpm(folder):
    """Logarithms below and above 0, exact zeros where nothing was seen, samples in rows."""
    rng, group, log2 = shuffled(115, 24, 3000, level=4.0, share=0.06)
    seen = seen_above(rng, log2, 2.5)
    frame = pd.DataFrame(np.where(seen, log2, 0).round(3)).add_prefix("GENE")
    frame.insert(0, "Sample_Name", [f"TCGA-{i}" for i in range(24)])
    frame.to_csv(folder / "log_tpm.csv.gz", index=False)
    return "log_tpm.csv.gz", group, "--missing-value 0"


def tpm(folder):
    """Each gene hardly skewed, all together over five decades."""
    rng, group, log2 = shuffled(116, 30, 2000, level=3.0, spread=2.5, share=0.08)
    seen = seen_above(rng, log2, 0.0)
    frame = pd.DataFrame(np.where(seen, 2**log2, 0).round(2).T).add_prefix("SRR")
    frame.insert(0, "Geneid", [f"ENSG{j}.3" for j in range(2000)])
    frame.insert(1, "Length", rng.integers(300, 9000, 2000))
    frame.to_csv(folder / "tpm.txt", sep="\t", index=False)
    return "tpm.txt", group, "--transpose --drop Length --log2"


def unnamed_genes(folder):
    """Counts as R writes them: accessions in front, no name over them."""
    rng, group, log2 = shuffled(117, 22, 1500, groups=2, level=5.0, spread=3.0, share=0.1)
    frame = pd.DataFrame(rng.poisson(2 ** np.clip(log2, -9, 18)).T).add_prefix("S")
    frame.index = [f"ENSMUSG{j:011d}" for j in range(1500)]
    frame.to_csv(folder / "counts.csv")
    return "counts.csv", group, "--transpose --log1p"


def dense_counts(folder):
    import anndata

    rng, group, log2 = shuffled(118, 160, 200, groups=4, level=-0.5, spread=1.5, effect=2.2,
                                noise=0.3)  # fmt: skip
    counts = rng.poisson(rng.uniform(0.4, 2, (160, 1)) * 2**log2).astype(np.float32)
    anndata.AnnData(counts).write_h5ad(folder / "dense.h5ad")
    return "dense.h5ad", group, "--normalize total --log1p"


def scaled_cells(folder):
    """Scaled values in X, counts in a layer, logarithms in raw."""
    import anndata
    import scipy.sparse as sp

    rng, group, log2 = shuffled(119, 150, 150, level=-1.0, spread=1.5, effect=2.5, noise=0.3)
    counts = rng.poisson(rng.uniform(0.4, 2, (150, 1)) * 2**log2).astype(np.float32)
    logs = np.log1p(counts / counts.sum(1, keepdims=True) * 1e4)
    adata = anndata.AnnData(sp.csr_matrix(logs), layers={"counts": sp.csr_matrix(counts)})
    adata.raw = adata.copy()
    adata.X = np.clip((logs - logs.mean(0)) / (logs.std(0) + 1e-9), None, 10).astype(np.float32)
    adata.write_h5ad(folder / "scaled.h5ad")
    return "scaled.h5ad", group, ""


def cycles(folder):
    """qPCR: large numbers are little, "Undetermined" above them all."""
    rng, group, values = shuffled(122, 60, 24, level=29.0, spread=3.0, effect=3.0, share=0.6)
    texts = np.char.mod("%.2f", values).astype(object)
    texts[~seen_above(rng, -values, -33.0, 0.6)] = "Undetermined"
    frame = pd.DataFrame(texts).add_prefix("miR-")
    frame.insert(0, "Well sample", [f"w{i}" for i in range(60)])
    frame.to_csv(folder / "ct.csv", index=False)
    return "ct.csv", group, ""


def clinic(folder):
    """Features of different units, dates, sexes."""
    rng, group, values = shuffled(123, 140, 12, level=0.0, spread=0.0, effect=3.0, share=0.7,
                                  noise=0.8)  # fmt: skip
    values = values * 10.0 ** rng.uniform(-1, 2.5, 12) + 10.0 ** rng.uniform(1, 3, 12)
    frame = pd.DataFrame(np.where(rng.random(values.shape) < 0.2, np.nan, values).round(2))
    frame = frame.add_prefix("lab ")
    frame.insert(0, "Sex", rng.choice(["M", "F"], 140))
    frame.insert(1, "Date", [f"{d:02d}.03.2026" for d in rng.integers(1, 29, 140)])
    frame.to_csv(folder / "clinic.csv", index=False)
    return "clinic.csv", group, "--scale std"


VARIANTS = {
    make.__name__: make
    for make in (maxquant_intensities, decoys_by_name, diann_paths, spectronaut, fragpipe,
                 proteome_discoverer, german, french, unicode_text, merged_cells,
                 compounds_in_rows, coded_survey, log_tpm, tpm, unnamed_genes, dense_counts,
                 scaled_cells, cycles, clinic)
}  # fmt: skip
