"""Files as laboratories have them: read and prepared as advised, clusters are the groups."""

import shlex

import numpy as np
import pytest
from lab_files import LAB_FILES, samples
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans, read_table
from mnarkmeans.tables import TableError, advise


def groups_of(advice, k):
    _, _, X = advice.preparation.fit_apply(advice.table)
    return MNARKMeans(k, reference="auto", random_state=0).fit(X).labels_


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in LAB_FILES if name != "hopeless"])
def test_the_advice_finds_the_groups(tmp_path, name):
    try:
        file, group, *expected = LAB_FILES[name](tmp_path)
    except ImportError as error:
        pytest.skip(str(error))
    advice = advise(tmp_path / file)
    typed = shlex.split(advice.command(file))
    assert typed[:3] == ["mnarkmeans", "select", file]
    assert set(shlex.split(" ".join(expected))) <= set(typed)
    assert adjusted_rand_score(group, groups_of(advice, len(set(group)))) >= 0.9
    # Nothing is left to suggest once all of it is said.
    again = advise(tmp_path / file, advice.options, advice.preparation)
    assert [str(one) for one in again.suggestions if one.typed()] == []


def test_a_hopeless_file_is_refused_with_what_to_do(tmp_path):
    file, _ = LAB_FILES["hopeless"](tmp_path)
    for read in (read_table, advise):
        with pytest.raises(TableError, match="remove units and percent signs"):
            read(tmp_path / file)


def test_columns_of_a_known_program_are_certain_advice(tmp_path):
    file, _ = LAB_FILES["maxquant"](tmp_path)
    advice = read_table(tmp_path / file).advise()
    assert [one.typed() for one in advice.certain] == ['--columns "LFQ intensity *"', "--transpose"]
    assert advice.table.shape[0] == 24
    sheet, *_ = LAB_FILES["merged_groups_and_statistics"](tmp_path)
    for options in ({}, {"transpose": True}):
        advice = read_table(tmp_path / sheet, **options).advise()
        assert advice.options.drop == ("Mean", "CV [%]", "p-value")
        assert len(advice.table.ids) == 24
    assert [one.typed() for one in advice.certain] == ['--drop Mean --drop "CV [%]" --drop p-value']
    plain, _ = LAB_FILES["below_limit"](tmp_path)
    assert read_table(tmp_path / plain).advise().certain == []
    for pattern, message in (
        ("LFQ Intensity *", r"did you mean 'LFQ intensity S\d\d'"),
        ("LFQ inten", r"no column for columns= called 'LFQ inten'"),
    ):
        with pytest.raises(TableError, match=message):
            read_table(tmp_path / file, columns=pattern)


@pytest.mark.filterwarnings("ignore")
def test_the_same_h5ad_gives_the_same_labels_by_every_way_in(tmp_path):
    anndata = pytest.importorskip("anndata")
    from mnarkmeans.tl import mnar_kmeans

    rng, group, values = samples(41, 60, 120, level=3.0, spread=0.5, share=0.0, noise=1.0)
    values[:, :15] += 3.0 * rng.normal(size=(3, 15))[group]
    values[:, 15:] *= 2.0
    adata = anndata.AnnData(values.astype(np.float32))
    adata.obs_names = [f"c{i}" for i in range(60)]
    adata.var_names = [f"g{j}" for j in range(120)]
    adata.var["highly_variable"] = np.arange(120) < 15
    adata.write_h5ad(tmp_path / "t.h5ad")
    adata.write_zarr(tmp_path / "t.zarr")
    mnar_kmeans(adata, 3, random_state=0, lam=1.0, reference=0.0, zero_is_missing=False)
    for source in (tmp_path / "t.h5ad", tmp_path / "t.zarr", adata):
        table = read_table(source)
        assert table.features == [f"g{j}" for j in range(15)]
        assert "15 features marked" in " ".join(table.notes)
        labels = MNARKMeans(3, lam=1.0, reference=0.0, random_state=0).fit(table.values).labels_
        assert adjusted_rand_score(adata.obs["mnar_kmeans"].astype(int), labels) == 1.0
    assert read_table(tmp_path / "t.h5ad", columns="g*").shape == (60, 120)
