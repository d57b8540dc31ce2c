"""
Single cells: zeros that are dropouts
=====================================

:func:`mnarkmeans.tl.mnar_kmeans` clusters an AnnData object in place, the scanpy way. The data are
the 700 blood cells that come with scanpy.
"""

# %%
# ``.raw`` holds log-normalised expression, where zero means "not detected". (``.X`` of this
# object is scaled: there zero means "average".)
import matplotlib.pyplot as plt
import pandas as pd
import scanpy as sc

from mnarkmeans import tl

adata = sc.datasets.pbmc68k_reduced().raw.to_adata()
zeros = 1 - adata.X.count_nonzero() / (adata.n_obs * adata.n_vars)
print(f"{adata.n_obs} cells, {adata.n_vars} genes, {zeros:.0%} zeros")

# %%
# Labels, distances and centres are stored in the object.
tl.mnar_kmeans(adata, n_clusters=7, random_state=0)
adata.obs[["bulk_labels", "mnar_kmeans", "mnar_kmeans_distance"]].head()

# %%
# scanpy's plots take them from there.
fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
sc.pl.umap(adata, color="mnar_kmeans", ax=axes[0], show=False, title="clusters found")
sc.pl.umap(adata, color="bulk_labels", ax=axes[1], show=False, title="published cell types")
plt.show()

# %%
# The genes in which a cluster's centre stands out most from the mean of the other centres:
centers = pd.DataFrame(adata.varm["mnar_kmeans"], index=adata.var_names)
for cluster in centers:
    others = centers.drop(columns=cluster).mean(axis=1)
    top = (centers[cluster] - others).nlargest(4).index
    print(cluster, *top)
