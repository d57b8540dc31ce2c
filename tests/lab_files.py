"""Files as laboratories have them, with the groups that are in them and the options they need.

Every file is simulated: groups of samples, log-normal values, small ones lost below a limit that is
soft, or below none where the field does otherwise. Each function writes a file into a folder and
returns its name, the group of each sample, and options that the advice must name.
"""

import inspect

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


def shuffled(seed, n, p, *, groups=3, **more):
    """Groups in no order, and other sizes of effect than the first files have."""
    settings = {"effect": 2.0, "noise": 0.7} | more
    return samples(seed, n, p, groups=groups, shuffle=True, **settings)


def intensities(seed, n, p, limit, lost=np.nan, **sizes):
    """Groups in no order, (n, p) values: those below a soft limit are lost."""
    rng, group, log2 = shuffled(seed, n, p, **sizes)
    return rng, group, np.where(seen_above(rng, log2, limit), 2**log2, lost)


def workbook(path, merged=(), **sheets):
    """An Excel file of sheets, each a list of lines; ranges of the last one are merged."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, lines in sheets.items():
        sheet = book.create_sheet(title)
        for line in lines:
            sheet.append(line)
    for cells in merged:
        sheet.merge_cells(cells)
    book.save(path)
    return path


def written(folder, name, group, values, columns, options="", before=None, after=None, **how):
    """Write a file: columns before, values under their names (or a pattern), columns after."""
    if isinstance(columns, str):
        columns = [columns.format(j) for j in range(values.shape[1])]
    parts = (before, dict(zip(columns, np.transpose(values), strict=True)), after)
    frame = pd.concat([pd.DataFrame(part, range(len(values))) for part in parts], axis=1)
    if name.endswith(".xlsx"):
        frame.to_excel(folder / name, index=False)
    else:
        how = {"sep": "\t" if ".t" in name else ","} | how
        frame.to_csv(folder / name, index=False, **how)
    return (name, group, options) if options else (name, group)


def maxquant(folder):
    """proteinGroups.txt of MaxQuant: zeros for missing, many other columns, decoys."""
    rng, group, log2 = samples(1, 24, 300)
    seen = seen_above(rng, log2, 21.0)
    lfq = np.where(seen, 2**log2, 0).round().astype(np.int64).T
    names = [f"S{i:02d}" for i in range(24)]
    before = {
        "Protein IDs": [f"P{10000 + j};Q{j}" for j in range(300)],
        "Majority protein IDs": [f"P{10000 + j}" for j in range(300)],
        "Gene names": [f"GENE{j // 2}" for j in range(300)],
        "Peptides": rng.integers(1, 40, 300),
        "Mol. weight [kDa]": rng.uniform(10, 200, 300).round(3),
        "Q-value": np.zeros(300),
        "Score": rng.uniform(5, 323, 300).round(2),
    }
    before |= {f"Intensity {n}": (lfq[:, i] * 1.7).astype(np.int64) for i, n in enumerate(names)}
    after = {f"MS/MS count {n}": rng.integers(0, 30, 300) for n in names}
    after["Reverse"] = np.where(np.arange(300) % 40 == 0, "+", "")
    after["Potential contaminant"] = np.where(np.arange(300) % 50 == 1, "+", "")
    columns = [f"LFQ intensity {n}" for n in names]
    return written(folder, "proteinGroups.txt", group, lfq, columns, "", before, after)


def diann(folder):
    """report.pg_matrix.tsv of DIA-NN: a column for each raw file, empty where missing."""
    rng, group, log2 = samples(2, 30, 250)
    values = np.where(seen_above(rng, log2, 21.5), 2**log2, np.nan).T
    before = {
        "Protein.Group": [f"P{j:05d}" for j in range(250)],
        "Protein.Names": [f"PROT{j}_HUMAN" for j in range(250)],
        "Genes": [f"G{j // 2}" for j in range(250)],
        "First.Protein.Description": "a protein",
    }
    columns = [f"D:\\runs\\2026_{i:03d}.raw" for i in range(30)]
    return written(folder, "report.pg_matrix.tsv", group, values, columns, "", before)


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
    rng, group, log2 = samples(4, 18, 60, level=14.0)
    values = np.where(seen_above(rng, log2, 12.5), 2**log2, None)
    order = np.argsort(group, kind="stable")
    batches = [f"Batch {g}" if i % 6 == 0 else None for i, g in enumerate(group[order])]
    lines = [["Project 12, areas, exported by hand"], ["", *batches]]
    lines += [["Compound", *(f"run {i}" for i in order)]]
    lines += [[f"C{j}", *row] for j, row in enumerate(values[order].T)]
    workbook(folder / "areas.xlsx", Areas=lines, Notes=[["see the lab book"]])
    return "areas.xlsx", group[order]


def european(folder):
    """A CSV of a German Excel: semicolons, decimal commas, marks for missing."""
    rng, group, log2 = samples(5, 27, 30, level=3.0, spread=0.5, effect=2.0, share=0.5, noise=0.4)
    seen = seen_above(rng, log2, 2.0, 0.3)
    texts = np.char.replace(log2.round(2).astype(str), ".", ",").astype(object)
    texts[~seen] = rng.choice(["n.d.", "n.a.", "-", "?", ""], (~seen).sum())
    around = {"Probe": [f"P{i:03d}" for i in range(27)]}, {"Ort": "Köln"}
    return written(folder, "werte.csv", group, texts, "Stoff {}", "", *around, sep=";")


def below_limit(folder):
    """Metabolomics: concentrations over decades, <LOD and <0.05 where nothing was found."""
    rng, group, log2 = samples(6, 30, 40, level=2.0, spread=3.0)
    seen = seen_above(rng, log2, 0.0, 0.3)
    texts = np.array([[f"{2**v:.3g}" for v in row] for row in log2], dtype=object)
    texts[~seen] = rng.choice(["<LOD", "<0.05", "BDL"], (~seen).sum())
    before = {"Sample ID": [f"patient {i}" for i in range(30)]}
    return written(folder, "metabolites.csv", group, texts, "Metabolite {}", "", before)


def survey(folder):
    """Answers from 1 to 7, some left out, free text, an age in years."""
    rng, group, _ = samples(7, 60, 2)
    profile = rng.integers(1, 8, (GROUPS, 16))
    answers = np.clip(np.round(profile[group] + rng.normal(0, 0.8, (60, 16))), 1, 7).astype(int)
    texts = np.where(rng.random(answers.shape) < 0.1, "", answers.astype(str))
    before = {"respondent": [f"R{i:03d}" for i in range(60)], "age": rng.integers(18, 80, 60)}
    after = {"comment": rng.choice(["fine", "too long, really", "", "n/a"], 60)}
    columns = [f"Q{j + 1}" for j in range(16)]
    return written(folder, "survey.csv", group, texts, columns, "", before, after)


def wide(folder):
    """6,000 genes in rows, 15 samples in columns, zeros for genes that were not seen."""
    rng, group, log2 = samples(8, 15, 6_000, level=5.0, spread=3.0, share=0.05)
    seen = seen_above(rng, log2, 2.0)
    counts = np.where(seen, (2**log2).round(), 0).astype(np.int64).T
    before = {"gene_id": [f"ENSG{j:011d}" for j in range(6_000)]}
    return written(folder, "counts.tsv.gz", group, counts, "patient_{}", "", before)


def annotated(folder):
    """A plain table, and a second file that says where each sample comes from."""
    rng, group, log2 = samples(9, 27, 30, level=0.0, spread=1.0, effect=2.0)
    values = np.where(rng.random(log2.shape) < 0.85, log2, np.nan).round(3)
    names = [f"S{i:03d}" for i in range(27)]
    about = pd.DataFrame({
        "sample": names, "tissue": np.array(["liver", "lung", "skin"])[group],
        "batch": rng.integers(1, 4, 27).astype(str), "age": rng.integers(20, 80, 27),
    })  # fmt: skip
    about.sample(frac=1, random_state=0).to_csv(folder / "about.csv", index=False)
    return written(folder, "markers.csv", group, values, "marker {}", "", {"sample": names})


def hopeless(folder):
    """A table copied from a report: units behind every number."""
    lines = ["sample,mass,volume,share"]
    lines += [f"s{i},{i * 1.5:.1f} mg,{i * 2} ml,{i} %" for i in range(30)]
    (folder / "report.csv").write_text("\n".join(lines) + "\n")
    return "report.csv", None


# --- other programs, names, marks, signs, sizes and missing values -----------------------------


def decimal_commas(values, digits=2):
    return np.char.replace(np.char.mod(f"%.{digits}f", values), ".", ",").astype(object)


def maxquant_intensities(folder):
    """No LFQ: intensities beside iBAQ, the sum over all samples, names of decoys and flags."""
    rng, group, values = intensities(101, 40, 300, 22.0, 0, groups=4)
    x = values.round().astype(np.int64).T
    ids = [("REV__" if j % 37 == 5 else "CON__" if j % 41 == 7 else "") + f"A0A{j:04d}"
           for j in range(300)]  # fmt: skip
    names = [f"{'ctrl' if i < 20 else 'drug'}_{i}" for i in range(40)]
    before = {"Protein IDs": ids, "Number of proteins": rng.integers(1, 5, 300)}
    before |= {"Sequence coverage [%]": rng.uniform(0, 90, 300).round(1), "Intensity": x.sum(1)}
    before |= {f"Identification type {name}": "By MS/MS" for name in names}
    after = {f"iBAQ {name}": x[:, i] // 7 for i, name in enumerate(names)}
    after |= {"Reverse": ["+" if name.startswith("REV") else "" for name in ids]}
    options = "--columns 'Intensity *' --drop-rows Reverse=+ --log2"
    columns = [f"Intensity {name}" for name in names]
    return written(folder, "mq.txt", group, x, columns, options, before, after | {"id": range(300)})


def decoys_by_name(folder):
    """Decoys that no column flags."""
    _, group, x = intensities(102, 21, 200, 21.5, 0)
    ids = [("REV__" if j % 37 == 5 else "") + f"A0A{j:04d}" for j in range(200)]
    before = {"Majority protein IDs": ids, "Gene names": [f"G{j}" for j in range(200)]}
    options = "--transpose --drop-rows 'Majority protein IDs=REV__*' --log2"
    return written(
        folder, "lfq.tsv", group, x.round().T, "LFQ intensity run{:02d}", options, before
    )


def diann_paths(folder):
    """Columns named by paths, beside counts of sequences."""
    rng, group, x = intensities(103, 36, 180, 19.0, level=20.0)
    before = {"Protein.Group": [f"P{j:05d}" for j in range(180)]}
    before["N.Sequences"] = rng.integers(1, 30, 180)
    columns = [f"/mnt/data/run 7/{i:02d}_plasma.mzML.dia" for i in range(36)]
    options = "--columns '*.dia' --transpose --log2"
    return written(folder, "report.pg_matrix.tsv", group, x.T, columns, options, before)


def spectronaut(folder):
    """ "Filtered" where nothing was found."""
    rng, group, log2 = shuffled(104, 24, 200, groups=2, level=17.0)
    x = np.array([[repr(float(v)) for v in row] for row in 2**log2], dtype=object)
    x[~seen_above(rng, log2, 16.0)] = "Filtered"
    columns = [f"[{i}] PL_{i:02d}.raw.PG.Quantity" for i in range(24)]
    before = {"PG.ProteinGroups": [f"P{j:05d}" for j in range(200)]}
    after = {"PG.Qvalue": rng.uniform(0, 0.01, 200)}
    options = "--columns *.PG.Quantity --transpose --log2"
    return written(folder, "spectronaut.tsv", group, x.T, columns, options, before, after)


def fragpipe(folder):
    rng, group, values = intensities(105, 20, 250, 21.5, 0, groups=2)
    x = values.T
    before = {"Protein": [f"sp|P{j:05d}|X_HUMAN" for j in range(250)]}
    before["Protein Length"] = rng.integers(80, 900, 250)
    kinds = {"Spectral Count": rng.integers(0, 40, x.shape), "Intensity": x}
    before |= {f"k{i} {kind}": v[:, i] for kind, v in kinds.items() for i in range(20)}
    columns = [f"k{i} MaxLFQ Intensity" for i in range(20)]
    options = "--columns '* MaxLFQ Intensity' --missing-value 0 --log2"
    return written(folder, "combined_protein.tsv", group, x, columns, options, before)


def proteome_discoverer(folder):
    """Excel, a flag that says True, abundances twice."""
    rng, group, values = intensities(106, 16, 150, 21.5, groups=2)
    x = values.T
    before = {"Accession": [f"P{j:05d}" for j in range(150)]}
    before["# Peptides"] = rng.integers(1, 50, 150)
    before["Contaminant"] = np.arange(150) % 50 == 0
    before |= {f"Abundance: F{i}: Sample": x[:, i] for i in range(16)}
    columns = [f"Abundances (Normalized): F{i}: Sample" for i in range(16)]
    options = "--drop-rows Contaminant=True --log2"
    return written(folder, "proteins.xlsx", group, x, columns, options, before)


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
    texts = np.vstack([["mg/l"] * 25, texts])
    before = {"Echantillon": ["", *(f"E{i}" for i in range(50))]}
    return written(folder, "acides.csv", group, texts, "acide {}", "", before, sep=";")


def unicode_text(folder):
    """What Excel calls Unicode text: UTF-16, tabs."""
    rng, group, values = shuffled(109, 48, 30, groups=4, level=8.0, spread=1.0, share=0.5)
    values = np.where(seen_above(rng, values, 7.0, 0.5), values, np.nan).round(4)
    how = {"before": {"Proben-ID": [f"Ä{i}" for i in range(48)]}, "na_rep": "missing"}
    return written(folder, "cytokines.txt", group, values, "Zytokin {}", encoding="utf-16", **how)


def merged_cells(folder):
    """A title page, then groups over names over units."""
    rng, group, log2 = shuffled(110, 27, 45, level=12.0)
    values = np.where(seen_above(rng, log2, 11.0), (2**log2).astype(object), "<LOD")
    lines = [["Sample", "Amino acids", *[None] * 19, "Lipids", *[None] * 24]]
    lines += [[None, *(f"c{j}" for j in range(45))], [None, *["µM"] * 45]]
    lines += [[f"m{i}", *row] for i, row in enumerate(values)]
    title = [["This workbook holds areas"]]
    workbook(folder / "merged.xlsx", ["B1:U1"], Sheet=title, Data=lines)
    return "merged.xlsx", group, "--log2"


def compounds_in_rows(folder):
    """Thousands set apart, masses and times beside the samples."""
    rng, group, log2 = shuffled(111, 32, 90, groups=4, level=15.0, spread=2.5)
    texts = np.array([[f"{v:,.1f}" for v in row] for row in 2**log2], dtype=object)
    texts[~seen_above(rng, log2, 14.0)] = "<0.05"
    before = {"Compound Name": [f"comp {j}" for j in range(90)]}
    before |= {"m/z": rng.uniform(80, 900, 90).round(4), "RT [min]": rng.uniform(0.5, 22, 90)}
    options = "--transpose --drop m/z --drop 'RT [min]' --log2"
    return written(folder, "compounds.csv", group, texts.T, "mouse-{}", options, before)


def coded_survey(folder):
    rng, group, _ = shuffled(114, 120, 2)
    profile = rng.integers(1, 6, (3, 18))
    answers = np.clip(np.round(profile[group] + rng.normal(0, 0.7, (120, 18))), 1, 5).astype(int)
    answers[rng.random(answers.shape) < 0.15] = 99
    before = {"sex": rng.integers(1, 3, 120)}
    return written(folder, "codes.csv", group, answers, "v{}", "--missing-value 99", before)


def log_tpm(folder):
    """Logarithms below and above 0, exact zeros where nothing was seen, samples in rows."""
    rng, group, log2 = shuffled(115, 24, 3000, level=4.0, share=0.06)
    values = np.where(seen_above(rng, log2, 2.5), log2, 0).round(3)
    before = {"Sample_Name": [f"TCGA-{i}" for i in range(24)]}
    return written(folder, "log_tpm.csv.gz", group, values, "GENE{}", "--missing-value 0", before)


def tpm(folder):
    """Each gene hardly skewed, all together over five decades."""
    rng, group, x = intensities(116, 30, 2000, 0.0, 0, level=3.0, spread=2.5, share=0.08)
    before = {"Geneid": [f"ENSG{j}.3" for j in range(2000)]}
    before["Length"] = rng.integers(300, 9000, 2000)
    options = "--transpose --drop Length --log2"
    return written(folder, "tpm.txt", group, x.round(2).T, "SRR{}", options, before)


def unnamed_genes(folder):
    """Counts as R writes them: accessions in front, no name over them."""
    rng, group, log2 = shuffled(117, 22, 1500, groups=2, level=5.0, spread=3.0, share=0.1)
    counts = rng.poisson(2 ** np.clip(log2, -9, 18)).T
    before = {"": [f"ENSMUSG{j:011d}" for j in range(1500)]}
    return written(folder, "counts.csv", group, counts, "S{}", "--transpose --log1p", before)


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
    before = {"Well sample": [f"w{i}" for i in range(60)]}
    return written(folder, "ct.csv", group, texts, "miR-{}", "", before)


def clinic(folder):
    """Features of different units, dates, sexes."""
    rng, group, values = shuffled(123, 140, 12, level=0.0, spread=0.0, effect=3.0, share=0.7,
                                  noise=0.8)  # fmt: skip
    values = values * 10.0 ** rng.uniform(-1, 2.5, 12) + 10.0 ** rng.uniform(1, 3, 12)
    values = np.where(rng.random(values.shape) < 0.2, np.nan, values).round(2)
    before = {"Date": [f"{d:02d}.03.2026" for d in rng.integers(1, 29, 140)]}
    before["Sex"] = rng.choice(["M", "F"], 140)
    return written(folder, "clinic.csv", group, values, "lab {}", "--scale std", before)


# --- what exports have around the numbers: lists, pools, totals, remarks, sentences ------------


def lists_of_numbers(folder):
    """MaxQuant: one number for each protein of a group, beside intensities."""
    rng, group, x = intensities(201, 24, 250, 21.5, 0)
    counts = rng.integers(3, 40, 250)
    several = [f"{c};{c - 2}" if j % 3 == 0 else f"{c}" for j, c in enumerate(counts)]
    before = {"Protein IDs": [f"P{10000 + j};Q{j}" for j in range(250)]}
    before |= {"Peptide counts (all)": several, "Sequence lengths": several, "Peptides": counts}
    after = {"Evidence IDs": [f"{j};{j + 7};{j + 9}" for j in range(250)]}
    options = "--columns 'LFQ intensity *' --transpose --missing-value 0 --log2"
    x, columns = x.round().T, "LFQ intensity {:02d}"
    return written(folder, "lists.txt", group, x, columns, options, before, after)


def pools_and_blanks(folder):
    """Peak areas of samples, pools and blanks; a delimiter after the last column."""
    rng, group, x = intensities(202, 24, 200, 21.5, 0)
    x = x.round()
    pools = np.tile(x.mean(0), (4, 1)) * 2.0 ** rng.normal(0, 0.1, (4, 200))
    blanks = np.where(rng.random((2, 200)) < 0.8, 0, 1000.0)
    names = [f"S{i:02d}" for i in range(24)] + [f"QC_pool_{i}" for i in range(4)]
    columns = [f"{n}.mzXML Peak area" for n in [*names, "Blank1", "Blank2"]]
    before = {"row ID": range(200), "row m/z": rng.uniform(80, 900, 200).round(4)}
    options = "--drop '*QC*' --drop '*Blank*' --columns '*Peak area' --log2"
    values = np.vstack([x, pools, blanks]).round(1).T
    return written(folder, "areas.csv", group, values, columns, options, before, {"": ""})


def plate_of_a_kit(folder):
    """A line of classes under the names, limits and controls among the rows."""
    rng, group, log2 = shuffled(203, 60, 40, level=1.0, share=0.6)
    texts = np.char.mod("%.3f", 2**log2).astype(object)
    texts[~seen_above(rng, log2, -0.5)] = "< LOD"
    front = ["Plate Bar Code", "Sample Type", "Sample Identification"]
    lines = [[*front, *(f"C{j}" for j in range(40))], ["Class", "", "", *["Lipids"] * 40]]
    lines += [["LOD (calc.) [uM]", "", "", *["0.100"] * 40]]
    lines += [["1020", "QC Level 2", f"QC{q}", *np.char.mod("%.3f", 2 ** log2.mean(0))]
              for q in range(3)]  # fmt: skip
    lines += [["1020", "Sample", f"p{i}", *row] for i, row in enumerate(texts)]
    (folder / "kit.csv").write_text("\n".join(map(",".join, lines)) + "\n", encoding="utf-8")
    rules = "--drop-rows 'Sample Type=QC Level 2' --drop-rows 'Sample Identification='"
    return "kit.csv", group, f"{rules} --log2"


def thousands_and_means(folder):
    """Thousands set apart by blanks that do not break, a mean below the rows."""
    rng, group, values = shuffled(204, 50, 14, level=9.5, spread=1.0, share=0.7, noise=0.5)
    x = np.where(rng.random(values.shape) < 0.1, np.nan, np.exp(values / 1.5 + 3))
    lines = ["sep=;", ";".join(["Échantillon", *(f"Métabolite {j}" for j in range(14)), "", ""])]
    for name, row in zip([*(f"E{i}" for i in range(50)), "Moyenne"], [*x, np.nanmean(x, 0)],
                         strict=True):  # fmt: skip
        cells = ["nd" if v != v else f"{v:,.1f}".translate({44: 0x202F, 46: 44}) for v in row]
        lines.append(";".join([name, *cells, "", ""]))
    (folder / "moyenne.csv").write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
    return "moyenne.csv", group, "--drop-rows Échantillon=Moyenne"


def western_letters(folder):
    """An older Excel: no UTF-8, thousands set apart by points, a total."""
    _, group, values = shuffled(205, 45, 12, level=9.5, spread=1.0, share=0.8, noise=0.5)
    x = np.exp(values / 1.5 + 4)
    x = [[f"{v:,.2f}".translate({44: 46, 46: 44}) for v in row] for row in [*x, x.sum(0)]]
    before = {"Proben-Nr.": [*(f"P{i}" for i in range(45)), "Summe"], "Größe": "groß"}
    how = {"sep": ";", "encoding": "cp1252", "lineterminator": "\r\n"}
    options, x = "--drop-rows Proben-Nr.=Summe", np.array(x)
    return written(folder, "labor.csv", group, x, "Stoff {} [µg/l]", options, before, **how)


def genes_that_come_again(folder):
    """Logarithms of a curated table: names of genes repeat, statistics beside the samples."""
    rng, group, log2 = shuffled(206, 20, 300, groups=2)
    values = np.where(seen_above(rng, log2, 21.5), log2.round(4), np.nan).T
    before = {"Gene Symbol": [f"GENE{j - j % 7 // 6}" for j in range(300)]}
    options, after = "--transpose --drop 'p value'", {"p value": rng.random(300)}
    return written(
        folder, "genes.csv", group, values, "S{:02d}", options, before, after, na_rep="NA"
    )


def known_above_the_names(folder):
    """Excel: groups and boxes over the samples, pathways beside the metabolites."""
    _, group, x = intensities(207, 30, 120, 21.5)
    lines = [["", "", "CLIENT_IDENTIFIER", *(f"c{i}" for i in range(30))],
             ["", "", "BOX NUMBER", *(i // 9 for i in range(30))],
             ["PATHWAY_SORTORDER", "BIOCHEMICAL", "HMDB",
              *(f"A-{i}" for i in range(30))]]  # fmt: skip
    for j, values in enumerate(x.round().T):
        lines.append([j + 1, f"metabolite {j}", f"HMDB{j:05d}", *values])
    pd.DataFrame(lines).to_excel(folder / "known.xlsx", index=False, header=False)
    return "known.xlsx", group, "--transpose --log2"


def blanks_in_names(folder):
    """Tabs, and one blank in every row; remarks around the table, as GEO has them."""
    rng, group, ratios = shuffled(208, 26, 400, level=0.0, spread=0.0, share=0.2)
    frame = pd.DataFrame(np.where(rng.random(ratios.shape) < 0.1, np.nan, ratios.round(3)).T)
    frame.columns = [f"GSM{i}" for i in range(26)]
    frame.insert(0, "ID_REF", [f"probe {j}" for j in range(400)])
    remarks = "!Series_title\tx\n" + "!Sample_title" + "\ta" * 26 + "\n!begin\n"
    table = frame.to_csv(sep="\t", index=False, lineterminator="\n")
    (folder / "series.txt").write_bytes(f"{remarks}{table}!end\n".encode())
    return "series.txt", group, "--transpose"


# --- reports in other shapes -------------------------------------------------------------------


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
    rng, group, x = intensities(303, 24, 90, 21.5, groups=4)
    order = np.argsort(group, kind="stable")
    heads = ["Ctrl", "DrugA", "DrugB", "Both"]
    lines = [[None, *(heads[i // 6] if i % 6 == 0 else None for i in range(24))]]
    lines += [["Protein", *(f"r{i % 6 + 1}" for i in range(24)), "Mean", "CV [%]", "p-value"]]
    for j, values in enumerate(x[order].T):
        cells = [None if np.isnan(value) else value for value in values]
        mean = np.mean([cell for cell in cells if cell] or [0.0])
        lines.append([f"prot {j}", *cells, mean, rng.uniform(5, 90), rng.random()])
    workbook(folder / "groups.xlsx", ["B1:G1", "H1:M1", "N1:S1", "T1:Y1"], Sheet=lines)
    return "groups.xlsx", group[order], "--transpose --drop Mean --drop p-value --log2"


LAB_FILES = {
    name: make
    for name, make in list(globals().items())
    if inspect.isfunction(make) and [*inspect.signature(make).parameters] == ["folder"]
}
