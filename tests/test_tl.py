"""tl.mnar_kmeans: every kind of AnnData gives the same answer, and the file can be written."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MissingDataWarning, MNARKMeans
from mnarkmeans.datasets import load_usoskin
from mnarkmeans.metrics import clustering_error_rate
from mnarkmeans.tl import mnar_kmeans

anndata = pytest.importorskip("anndata")
AnnData = anndata.AnnData

KEY = "mnar_kmeans"
SETTINGS = dict(lam=0.3, random_state=0, n_init=3)


@pytest.fixture
def expression():
    """60 cells of 3 kinds, 8 genes, about half of the values dropped out; gene 7 never seen."""
    rng = np.random.default_rng(3)
    rates = np.array([[6, 6, 5, 1, 1, 1, 2, 0], [1, 1, 1, 6, 7, 1, 2, 0], [1, 1, 1, 1, 1, 7, 5, 0]])
    return np.log1p(rng.poisson(rates[np.repeat([0, 1, 2], 20)]).astype(float))


def make(X, **kwargs):
    import pandas as pd

    obs = pd.DataFrame(index=[f"cell{i}" for i in range(X.shape[0])])
    var = pd.DataFrame(index=[f"gene{j}" for j in range(X.shape[1])])
    return AnnData(X, obs=obs, var=var, **kwargs)


def run(adata, n_clusters=3, **kwargs):
    mnar_kmeans(adata, n_clusters, **{**SETTINGS, **kwargs})
    return adata


def plain(X, **kwargs):
    return MNARKMeans(3, lam=0.3, random_state=0, n_init=3, missing_values=0, **kwargs).fit(X)


def test_what_is_written_is_what_the_estimator_finds(expression):
    adata, model = run(make(expression)), plain(expression[:, :7])
    labels = adata.obs[KEY]
    assert labels.dtype == "category"
    assert labels.cat.categories.tolist() == ["0", "1", "2"]
    np.testing.assert_array_equal(labels.astype(int), model.labels_)
    own = model.transform(expression[:, :7])[np.arange(60), model.labels_]
    np.testing.assert_array_equal(adata.obs[f"{KEY}_distance"], own)
    np.testing.assert_array_equal(adata.varm[KEY][:7], model.cluster_centers_.T)
    results = adata.uns[KEY]
    assert results["lam"] == 0.3
    assert results["inertia"] == model.inertia_
    assert results["n_iter"] == model.n_iter_
    assert results["params"]["n_clusters"] == 3
    assert results["verdict"]["kind"] == "separate"
    assert np.isnan(adata.varm[KEY][7]).all()  # a gene never seen is left out


def stored_zeros(X):
    """CSR that stores some of its zeros."""
    thin = sparse.csr_matrix(np.ones_like(X))
    thin.data[:] = X.ravel()
    return thin


@pytest.mark.parametrize(
    "kind",
    [sparse.csr_matrix, sparse.csc_array, stored_zeros],
)
def test_sparse_equals_dense_also_with_stored_zeros(expression, kind):
    dense, thin = run(make(expression)), run(make(kind(expression)))
    assert (dense.obs[KEY] == thin.obs[KEY]).all()
    np.testing.assert_allclose(thin.varm[KEY], dense.varm[KEY], rtol=1e-12)
    assert thin.uns[KEY]["inertia"] == pytest.approx(dense.uns[KEY]["inertia"])


def test_float32_is_read_and_raw_counts_are_refused(expression):
    assert run(make(expression.astype(np.float32))).uns[KEY]["inertia"] > 0
    counts = np.expm1(expression).round()
    for kind in (np.asarray, sparse.csr_matrix, lambda X: X.astype(np.int32)):
        with pytest.raises(ValueError, match="normalize_total"):
            run(make(kind(counts)))


def test_several_numbers_of_clusters_are_compared(expression):
    adata = make(expression)
    assert mnar_kmeans(adata, [2, 3], **SETTINGS) is None
    found = adata.uns[KEY]
    assert found["n_clusters"] == len(adata.obs[KEY].cat.categories)
    assert sorted(set(found["cv_results"]["param_n_clusters"])) == [2, 3]


def test_the_seed_may_be_a_generator(expression):
    one, two = (run(make(expression), random_state=None, rng=seed)
                for seed in (7, np.random.default_rng(7)))  # fmt: skip
    assert (one.obs[KEY] == two.obs[KEY]).all()
    with pytest.raises(ValueError, match="two names"):
        run(make(expression), rng=1, random_state=1)


@pytest.mark.parametrize("name", ["lam", "reference"])
def test_numbers_by_name_go_to_their_genes(expression, name):
    adata = make(expression)
    given = np.arange(adata.n_vars) / 10
    named = dict(zip(adata.var_names[::-1], given[::-1], strict=True))
    run(adata, **{name: named})
    found = adata.uns[KEY][name]
    np.testing.assert_array_equal(found[~np.isnan(found)], given[~np.isnan(found)])
    with pytest.raises(ValueError, match=f"{name} must have one number .* 'other' is not a column"):
        run(adata, **{name: named | {"other": 1.0}})


def test_one_line_about_the_result(expression, capsys):
    run(make(expression))
    line = capsys.readouterr().out
    assert line == "mnar_kmeans: clusters of 20, 20, 20 cells, lam 0.3. Separate groups.\n"
    run(make(expression), verbose=False)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_backed_equals_memory(expression, kind, tmp_path, monkeypatch):
    monkeypatch.setattr("mnarkmeans.tl.BACKED_ROWS", 7)
    make(kind(expression)).write_h5ad(tmp_path / "data.h5ad")
    backed = anndata.read_h5ad(tmp_path / "data.h5ad", backed="r")
    run(backed)
    memory = run(make(expression))
    assert backed.isbacked
    assert (backed.obs[KEY] == memory.obs[KEY]).all()
    np.testing.assert_allclose(backed.varm[KEY], memory.varm[KEY], rtol=1e-12)
    backed.file.close()


@pytest.mark.parametrize(
    "settings",
    [{"random_state": np.random.RandomState(0)}, {"reference": np.full(8, 0.1)}, {"layer": "log"},
     {"use_rep": "pca"}],
)  # fmt: skip
def test_h5ad_round_trip(expression, tmp_path, settings):
    adata = make(expression, layers={"log": expression}, obsm={"pca": expression[:, :3] - 0.5})
    run(adata, **settings)
    adata.write_h5ad(tmp_path / "data.h5ad")
    back = anndata.read_h5ad(tmp_path / "data.h5ad")
    assert (back.obs[KEY] == adata.obs[KEY]).all()
    assert back.obs[KEY].cat.categories.tolist() == ["0", "1", "2"]
    for name, value in adata.uns[KEY]["params"].items():
        np.testing.assert_array_equal(back.uns[KEY]["params"][name], value)
    for name in adata.uns[KEY].keys() - {"params"}:
        np.testing.assert_array_equal(back.uns[KEY][name], adata.uns[KEY][name])
    if "use_rep" not in settings:
        np.testing.assert_array_equal(back.varm[KEY], adata.varm[KEY])


def test_a_representation_is_clustered_in_place_of_genes(expression):
    """Its zeros are observed; a data frame will do."""
    import pandas as pd

    rep = pd.DataFrame(expression[:, :3], index=[f"cell{i}" for i in range(60)]).add_prefix("PC")
    adata = run(make(expression, obsm={"pca": rep}), use_rep="pca", lam=[0.3, 0.1, 0.0])
    model = MNARKMeans(3, lam=[0.3, 0.1, 0.0], random_state=0, n_init=3).fit(expression[:, :3])
    np.testing.assert_array_equal(adata.obs[KEY].astype(int), model.labels_)
    np.testing.assert_array_equal(adata.uns[KEY]["centers"], model.cluster_centers_.T)
    assert KEY not in adata.varm


def test_copy_leaves_the_original_alone(expression):
    adata = make(expression)
    changed = mnar_kmeans(adata, 3, **SETTINGS, copy=True)
    assert KEY in changed.obs
    assert not {*adata.obs, *adata.varm, *adata.uns}


def test_key_layer_and_second_run_live_side_by_side(expression):
    adata = make(np.zeros_like(expression), layers={"log": expression})
    run(adata, layer="log", key_added="k3")
    run(adata, 2, layer="log", key_added="k2")
    kinds = ("", "_confidence", "_distance")
    assert set(adata.obs) == {key + kind for key in ("k2", "k3") for kind in kinds}
    assert adata.varm["k2"].shape == (8, 2)


def test_highly_variable_genes_are_used_when_marked(expression):
    adata = make(expression)
    adata.var["highly_variable"] = np.arange(8) < 6
    run(adata)
    assert np.isnan(adata.varm[KEY][6:]).all()
    assert np.isfinite(adata.varm[KEY][:6]).all()
    run(adata, use_highly_variable=False)
    assert np.isfinite(adata.varm[KEY][:7]).all()


def test_zero_measured_is_not_a_gap(expression):
    for kind in (np.asarray, sparse.csr_matrix):
        adata = run(make(kind(expression)), zero_is_missing=False)
        labels = MNARKMeans(3, lam=0.3, random_state=0, n_init=3).fit_predict(expression)
        np.testing.assert_array_equal(adata.obs[KEY].astype(int), labels)


def test_scaled_data_are_warned_about(expression):
    with pytest.warns(MissingDataWarning, match="scaled or centred"):
        run(make(expression - 0.5))


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"layer": "raw"}, KeyError, "not in adata.layers"),
        ({"use_rep": "X_pca"}, KeyError, "not in adata.obsm"),
        ({"use_rep": "pca", "layer": "log"}, ValueError, "replaces the genes"),
        ({"use_highly_variable": True}, KeyError, "highly_variable_genes"),
        ({"reference": np.zeros(3)}, ValueError, "one per column"),
        ({"lam": -1.0}, ValueError, "lam must be"),
        ({"n_inits": 3}, TypeError, "n_inits"),
        ({"batch_key": "run"}, KeyError, "'run' is not in"),
    ],
)
def test_mistakes_are_named(expression, settings, error, words):
    adata = make(expression)
    with pytest.raises(error, match=words):
        run(adata, **settings)
    assert KEY not in adata.obs


def test_nothing_observed_is_an_error():
    with pytest.raises(ValueError, match="nothing to cluster"):
        run(make(np.zeros((10, 4))))


@pytest.mark.parametrize("zero_is_missing", [True, False])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_dask_matrix_equals_memory(expression, kind, zero_is_missing):
    da = pytest.importorskip("dask.array")
    start = expression[[0, 20, 40], : 7 if zero_is_missing else 8]
    blocks = da.from_array(expression, chunks=(25, 4)).map_blocks(kind)
    settings = dict(init=start, n_init=1, zero_is_missing=zero_is_missing)
    lazy, memory = (run(make(X), **settings) for X in (blocks, kind(expression)))
    assert (lazy.obs[KEY] == memory.obs[KEY]).all()
    np.testing.assert_allclose(lazy.varm[KEY], memory.varm[KEY])
    np.testing.assert_allclose(lazy.obs[f"{KEY}_distance"], memory.obs[f"{KEY}_distance"])


# --- real data --------------------------------------------------------------------------------


def usoskin(**kwargs):
    folder = os.environ.get("MNARKMEANS_DATA")
    folder = Path(folder) if folder else Path(__file__).parents[1] / ".." / "shared" / "data"
    if not (folder / "GSE59739_cleardata_significant.txt").is_file():
        pytest.skip("Usoskin data not found: set MNARKMEANS_DATA to the folder that holds it")
    return load_usoskin(folder, preparation="counts", **kwargs)


def test_usoskin_with_default_settings():
    counts = usoskin(max_missing=None)
    adata = make(sparse.csr_matrix(np.log1p(counts.data)))
    mnar_kmeans(adata, 4, random_state=0)
    assert clustering_error_rate(counts.target, adata.obs[KEY].astype(int)) <= 0.012


def test_batch_key_removes_what_differs_between_batches():
    rng = np.random.default_rng(0)
    types, run = rng.integers(0, 3, 240), np.arange(240) % 2
    rates = np.exp(rng.normal(0.5, 1.2, (3, 60))[types] + 1.5 * rng.normal(size=(2, 60))[run])
    X = np.log1p(rng.poisson(rates)).astype(float)
    adata = make(sparse.csr_matrix(X))
    adata.obs["run"] = np.array(["a", "b"])[run]
    mnar_kmeans(adata, 3, random_state=0, key_added="plain", verbose=False)
    mnar_kmeans(adata, 3, random_state=0, batch_key="run", verbose=False)
    found = adjusted_rand_score(types, adata.obs[KEY])
    assert found > 0.95 > adjusted_rand_score(types, adata.obs["plain"])
    assert adata.uns[KEY]["batch_shifts"].shape == (2, 60)
    assert adata.uns[KEY]["params"]["batch_key"] == "run"


def test_batches_that_cannot_be_used_are_refused(expression, monkeypatch):
    adata = make(expression)
    adata.obs["run"] = np.arange(60) % 2
    monkeypatch.setattr("mnarkmeans.tl.LARGEST_DENSE", 100)
    with pytest.raises(ValueError, match="60 x 7 is too large"):
        run(adata, batch_key="run")
