"""tl.mnar_kmeans: every kind of AnnData gives the same answer, and the file can be written."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MissingDataWarning, MNARKMeans
from mnarkmeans.datasets import load_usoskin
from mnarkmeans.metrics import clustering_error_rate
from mnarkmeans.tl import mnar_kmeans

anndata = pytest.importorskip("anndata")

KEY = "mnar_kmeans"
SETTINGS = dict(lam=0.3, random_state=0, n_init=3)


@pytest.fixture
def expression():
    """60 cells of 3 kinds, 8 genes, about half of the values dropped out; gene 7 never seen."""
    rng = np.random.default_rng(3)
    rates = np.array([[6, 6, 5, 1, 1, 1, 2, 0], [1, 1, 1, 6, 7, 1, 2, 0], [1, 1, 1, 1, 1, 7, 5, 0]])
    return np.log1p(rng.poisson(rates[np.repeat([0, 1, 2], 20)]).astype(float))


def make(X, **parts):
    obs = pd.DataFrame(index=[f"cell{i}" for i in range(X.shape[0])])
    var = pd.DataFrame(index=[f"gene{j}" for j in range(X.shape[1])])
    return anndata.AnnData(X, obs=obs, var=var, **parts)


def run(adata, n_clusters=3, **settings):
    assert mnar_kmeans(adata, n_clusters, **SETTINGS | settings) is None
    return adata


def test_what_is_written_and_said_is_what_the_estimator_finds(expression, capsys):
    adata, genes = run(make(expression)), expression[:, :7]
    line = capsys.readouterr().out
    assert line == "mnar_kmeans: clusters of 20, 20, 20 cells, lam 0.3. Separate groups.\n"
    model = MNARKMeans(3, missing_values=0, **SETTINGS).fit(genes)
    labels = adata.obs[KEY]
    assert labels.dtype == "category"
    assert labels.cat.categories.tolist() == ["0", "1", "2"]
    np.testing.assert_array_equal(labels.astype(int), model.labels_)
    distances = model.transform(genes)[np.arange(60), model.labels_]
    np.testing.assert_array_equal(adata.obs[f"{KEY}_distance"], distances)
    np.testing.assert_array_equal(adata.varm[KEY][:7], model.cluster_centers_.T)
    assert np.isnan(adata.varm[KEY][7]).all()  # a gene never seen is left out
    results = adata.uns[KEY]
    assert (results["lam"], results["inertia"]) == (0.3, model.inertia_)
    assert (results["n_iter"], results["params"]["n_clusters"]) == (model.n_iter_, 3)
    assert results["verdict"]["kind"] == "separate"
    original = make(expression)
    changed = mnar_kmeans(original, 3, **SETTINGS, copy=True, verbose=False)
    assert (changed.obs[KEY] == labels).all()
    assert not {*original.obs, *original.varm, *original.uns}
    assert capsys.readouterr().out == ""


def stored_zeros(X):
    """CSR that stores some of its zeros."""
    thin = sparse.csr_matrix(np.ones_like(X))
    thin.data[:] = X.ravel()
    return thin


@pytest.mark.parametrize("zero_is_missing", [True, False])
@pytest.mark.parametrize("place", ["memory", "file", "dask"])
@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix, sparse.csc_array, stored_zeros]
)
def test_every_form_gives_the_answer_of_an_array(
    expression, kind, place, zero_is_missing, tmp_path, monkeypatch
):
    start = expression[[0, 20, 40], : 7 if zero_is_missing else 8]
    settings = dict(init=start, n_init=1, zero_is_missing=zero_is_missing)
    if place == "dask":
        da = pytest.importorskip("dask.array")
        adata = make(da.from_array(expression, chunks=(25, 4)).map_blocks(kind))
    else:
        adata = make(kind(expression))
    if place == "file":
        monkeypatch.setattr("mnarkmeans.tl.BACKED_ROWS", 7)
        adata.write_h5ad(tmp_path / "data.h5ad")
        adata = anndata.read_h5ad(tmp_path / "data.h5ad", backed="r")
    run(adata, **settings)
    assert adata.isbacked == (place == "file")
    missing = 0 if zero_is_missing else np.nan
    model = MNARKMeans(3, lam=0.3, init=start, missing_values=missing)
    model.fit(expression[:, : start.shape[1]])
    np.testing.assert_array_equal(adata.obs[KEY].astype(int), model.labels_)
    np.testing.assert_allclose(adata.varm[KEY][: start.shape[1]], model.cluster_centers_.T)
    assert adata.uns[KEY]["inertia"] == pytest.approx(model.inertia_)
    if place == "file":
        adata.file.close()


def test_float32_is_read_and_the_seed_may_be_a_generator(expression):
    assert run(make(expression.astype(np.float32))).uns[KEY]["inertia"] > 0
    one, two = (run(make(expression), random_state=None, rng=seed)
                for seed in (7, np.random.default_rng(7)))  # fmt: skip
    assert (one.obs[KEY] == two.obs[KEY]).all()


@pytest.mark.parametrize("name", ["lam", "reference"])
def test_numbers_by_name_go_to_their_genes(expression, name):
    adata = make(expression)
    given = np.arange(adata.n_vars) / 10
    named = dict(zip(adata.var_names[::-1], given[::-1], strict=True))
    run(adata, **{name: named})
    np.testing.assert_array_equal(adata.uns[KEY][name], [*given[:7], np.nan])
    with pytest.raises(ValueError, match=f"{name} must have one number .* 'other' is not a column"):
        run(adata, **{name: named | {"other": 1.0}})


@pytest.mark.parametrize(
    "settings",
    [{"random_state": np.random.RandomState(0)}, {"reference": np.full(8, 0.1)}, {"layer": "log"},
     {"lam": {f"gene{j}": j / 10 for j in range(8)}}, {"use_rep": "pca"}, {"n_clusters": [2, 3]}],
)  # fmt: skip
def test_h5ad_round_trip(expression, tmp_path, settings):
    adata = make(expression, layers={"log": expression}, obsm={"pca": expression[:, :3] - 0.5})
    run(adata, **settings)
    adata.write_h5ad(tmp_path / "data.h5ad")
    back = anndata.read_h5ad(tmp_path / "data.h5ad")
    assert (back.obs[KEY] == adata.obs[KEY]).all()
    results, stored = adata.uns[KEY], back.uns[KEY]
    assert results["n_clusters"] == len(back.obs[KEY].cat.categories)
    for part, again in ((results, stored), (results["params"], stored["params"])):
        for name in part.keys() - {"params", "cv_results"}:
            np.testing.assert_array_equal(again[name], part[name])
    if "n_clusters" in settings:
        assert sorted(set(stored["cv_results"]["param_n_clusters"])) == [2, 3]
    if "use_rep" not in settings:
        np.testing.assert_array_equal(back.varm[KEY], adata.varm[KEY])


def test_a_representation_is_clustered_in_place_of_genes(expression):
    """Its zeros are observed; a data frame will do."""
    lam = [0.3, 0.1, 0.0, 0.2]
    rep = pd.DataFrame(expression[:, :4], index=[f"cell{i}" for i in range(60)]).add_prefix("PC")
    adata = run(make(expression, obsm={"pca": rep}), use_rep="pca", lam=lam)
    model = MNARKMeans(3, lam=lam, random_state=0, n_init=3).fit(expression[:, :4])
    np.testing.assert_array_equal(adata.obs[KEY].astype(int), model.labels_)
    np.testing.assert_array_equal(adata.uns[KEY]["centers"], model.cluster_centers_.T)
    assert KEY not in adata.varm


def test_layers_and_results_of_several_runs_live_side_by_side(expression):
    adata = make(np.zeros_like(expression), layers={"log": expression})
    run(adata, layer="log", key_added="k3")
    run(adata, 2, layer="log", key_added="k2")
    kinds = ("", "_confidence", "_distance")
    assert set(adata.obs) == {key + kind for key in ("k2", "k3") for kind in kinds}
    assert adata.varm["k2"].shape == (8, 2)
    with pytest.raises(ValueError, match="nothing to cluster"):  # in X
        run(adata)


def test_highly_variable_genes_are_used_when_marked(expression):
    adata = make(expression)
    adata.var["highly_variable"] = np.arange(8) < 6
    for choice, n_used in ((None, 6), (True, 6), (False, 7)):
        run(adata, use_highly_variable=choice)
        np.testing.assert_array_equal(np.isfinite(adata.varm[KEY][:, 0]), np.arange(8) < n_used)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"layer": "raw"}, KeyError, "not in adata.layers; there are: 'counts', 'scaled'"),
        ({"layer": "counts"}, ValueError, "normalize_total"),
        ({"layer": "scaled"}, MissingDataWarning, "scaled or centred"),
        ({"use_rep": "X_pca"}, KeyError, "not in adata.obsm"),
        ({"use_rep": "pca", "layer": "log"}, ValueError, "replaces the genes"),
        ({"use_highly_variable": True}, KeyError, "highly_variable_genes"),
        ({"reference": np.zeros(3)}, ValueError, r"n_features=8.*\(3,\)"),
        ({"lam": -1.0}, ValueError, "lam must be"),
        ({"n_inits": 3}, TypeError, "n_inits"),
        ({"batch_key": "run"}, KeyError, "'run' is not in"),
        ({"rng": 1}, ValueError, "two names"),
    ],
)
def test_mistakes_are_named(expression, settings, error, words):
    counts = np.expm1(expression).round()
    for kind in (np.asarray, sparse.csr_matrix, lambda X: X.astype(np.int32)):
        adata = make(expression, layers={"counts": kind(counts), "scaled": expression - 0.5})
        with pytest.raises(error, match=words):
            run(adata, **settings)
        assert KEY not in adata.obs


def test_usoskin_with_default_settings(data_folder):
    counts = load_usoskin(data_folder, preparation="counts", max_missing=None)
    adata = make(sparse.csr_matrix(np.log1p(counts.data)))
    mnar_kmeans(adata, 4, random_state=0)
    assert clustering_error_rate(counts.target, adata.obs[KEY].astype(int)) <= 0.012


def test_batch_key_removes_what_differs_between_batches(monkeypatch):
    rng = np.random.default_rng(0)
    types, batch = rng.integers(0, 3, 240), np.arange(240) % 2
    rates = np.exp(rng.normal(0.5, 1.2, (3, 60))[types] + 1.5 * rng.normal(size=(2, 60))[batch])
    adata = make(sparse.csr_matrix(np.log1p(rng.poisson(rates)).astype(float)))
    adata.obs["run"] = np.array(["a", "b"])[batch]
    for key, batch_key in (("plain", None), (KEY, "run")):
        mnar_kmeans(adata, 3, random_state=0, key_added=key, batch_key=batch_key, verbose=False)
    agreement = adjusted_rand_score(types, adata.obs[KEY])
    assert agreement > 0.95 > adjusted_rand_score(types, adata.obs["plain"])
    assert adata.uns[KEY]["batch_shifts"].shape == (2, 60)
    assert adata.uns[KEY]["params"]["batch_key"] == "run"
    monkeypatch.setattr("mnarkmeans.tl.LARGEST_DENSE", 100)
    with pytest.raises(ValueError, match="240 x 60 is too large"):
        run(adata, batch_key="run")
