"""Files with what real exports have around the numbers: lists, pools, totals, remarks, sentences.

    python tests/tables/lab_files.py FOLDER exports

runs the command that `diagnose` names on each.
"""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
from lab_files import seen_above
from lab_variants import shuffled


def lists_of_numbers(folder):
    """MaxQuant: one number for each protein of a group, beside intensities."""
    rng, group, log2 = shuffled(201, 24, 250)
    x = np.where(seen_above(rng, log2, 21.5), 2**log2, 0).round().T
    counts = rng.integers(3, 40, 250)
    several = [f"{c};{c - 2}" if j % 3 == 0 else f"{c}" for j, c in enumerate(counts)]
    columns = {"Protein IDs": [f"P{10000 + j};Q{j}" for j in range(250)]}
    columns |= {"Peptide counts (all)": several, "Sequence lengths": several, "Peptides": counts}
    columns |= {f"LFQ intensity {i:02d}": x[:, i] for i in range(24)}
    columns |= {"Evidence IDs": [f"{j};{j + 7};{j + 9}" for j in range(250)]}
    pd.DataFrame(columns).to_csv(folder / "lists.txt", sep="\t", index=False)
    return "lists.txt", group, "--columns 'LFQ intensity *' --transpose --missing-value 0 --log2"


def pools_and_blanks(folder):
    """Peak areas of samples, pools and blanks; a delimiter after the last column."""
    rng, group, log2 = shuffled(202, 24, 200)
    x = np.where(seen_above(rng, log2, 21.5), 2**log2, 0).round()
    pools = np.tile(x.mean(0), (4, 1)) * 2.0 ** rng.normal(0, 0.1, (4, 200))
    blanks = np.where(rng.random((2, 200)) < 0.8, 0, 1000.0)
    names = [f"S{i:02d}" for i in range(24)] + [f"QC_pool_{i}" for i in range(4)]
    frame = pd.DataFrame(np.vstack([x, pools, blanks]).round(1).T)
    frame.columns = [f"{n}.mzXML Peak area" for n in [*names, "Blank1", "Blank2"]]
    frame.insert(0, "row ID", range(200))
    frame.insert(1, "row m/z", rng.uniform(80, 900, 200).round(4))
    frame.insert(len(frame.columns), "", "")
    frame.to_csv(folder / "areas.csv", index=False)
    return "areas.csv", group, "--drop '*QC*' --drop '*Blank*' --columns '*Peak area' --log2"


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
    lines = [";".join(["Proben-Nr.", "Größe", *(f"Stoff {j} [µg/l]" for j in range(12))])]
    for name, row in zip([*(f"P{i}" for i in range(45)), "Summe"], [*x, x.sum(0)], strict=True):
        lines.append(
            ";".join([name, "groß", *(f"{v:,.2f}".translate({44: 46, 46: 44}) for v in row)])
        )
    (folder / "labor.csv").write_bytes("\r\n".join(lines).encode("cp1252"))
    return "labor.csv", group, "--encoding cp1252 --drop-rows Proben-Nr.=Summe"


def genes_that_come_again(folder):
    """Logarithms of a curated table: names of genes repeat, statistics beside the samples."""
    rng, group, log2 = shuffled(206, 20, 300, groups=2)
    frame = pd.DataFrame(np.where(seen_above(rng, log2, 21.5), log2.round(4), np.nan).T)
    frame.columns = [f"S{i:02d}" for i in range(20)]
    frame.insert(0, "Gene Symbol", [f"GENE{j - j % 7 // 6}" for j in range(300)])
    frame["p value"] = rng.random(300)
    frame.to_csv(folder / "genes.csv", index=False, na_rep="NA")
    return "genes.csv", group, "--transpose --drop 'p value'"


def known_above_the_names(folder):
    """Excel: groups and boxes over the samples, pathways beside the metabolites."""
    rng, group, log2 = shuffled(207, 30, 120)
    lines = [["", "", "CLIENT_IDENTIFIER", *(f"c{i}" for i in range(30))],
             ["", "", "BOX NUMBER", *(i // 9 for i in range(30))],
             ["PATHWAY_SORTORDER", "BIOCHEMICAL", "HMDB",
              *(f"A-{i}" for i in range(30))]]  # fmt: skip
    seen = seen_above(rng, log2, 21.5)
    for j in range(120):
        values = [
            v if s else None for v, s in zip((2 ** log2[:, j]).round(), seen[:, j], strict=True)
        ]
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


def sentences_below_names(folder):
    """Qualtrics: names, questions and a line for machines; how the survey was taken."""
    rng, group, values = shuffled(209, 150, 16, level=4.0, spread=0.0, effect=1.5, share=0.9)
    answers = np.clip(values.round(), 1, 7).astype(int).astype(object)
    answers[rng.random(answers.shape) < 0.07] = ""
    about = ["StartDate", "Progress", "Duration (in seconds)", "Finished", "ResponseId"]
    with open(folder / "survey.csv", "w", newline="", encoding="utf-8-sig") as file:
        lines = csv.writer(file)
        lines.writerow([*about, *(f"Q{j}" for j in range(16))])
        lines.writerow([*about, *(f"How much do you agree, item {j}?" for j in range(16))])
        lines.writerow([f'{{"ImportId":"QID{j}","timeZone":"UTC"}}' for j in range(21)])
        for i, row in enumerate(answers):
            seconds = int(rng.integers(100, 4000))
            lines.writerow(["2026-01-05 10:00:00", 100, seconds, 1, f"R_{i:04x}", *row])
    return "survey.csv", group, "--drop 'Duration (in seconds)'"


def eights_and_nines(folder):
    """1 to 5, 8 for don't know, 9 for no answer; a weight beside them, which is no answer."""
    rng, group, values = shuffled(210, 200, 18, level=3.0, spread=0.0, effect=1.2, share=0.9)
    answers = np.clip(values.round(), 1, 5)
    lost = rng.random(answers.shape)
    answers = np.where(lost < 0.04, 8, np.where(lost < 0.1, 9, answers)).astype(int)
    frame = pd.DataFrame(answers).add_prefix("v")
    frame.insert(0, "lfdnr", [f"{i:04d}" for i in range(200)])
    frame.insert(1, "gewicht", [f"{w:.4f}".replace(".", ",") for w in rng.uniform(0.5, 2, 200)])
    frame.to_csv(folder / "answers.csv", sep=";", index=False)
    return "answers.csv", group, "--missing-value 9 --missing-value 8"


EXPORTS = {
    make.__name__: make
    for make in (lists_of_numbers, pools_and_blanks, plate_of_a_kit, thousands_and_means,
                 western_letters, genes_that_come_again, known_above_the_names, blanks_in_names,
                 sentences_below_names, eights_and_nines)
}  # fmt: skip
