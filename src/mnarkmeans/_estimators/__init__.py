"""The estimators a user meets.

kmeans         MNARKMeans: all rows at once
minibatch      MiniBatchMNARKMeans: rows in batches
base           what any model can do with its fitted centres: predict, transform, impute
mixture        MNARMixture: soft clusters
mixture_fit    how it comes to its clusters
mixture_rows   what it says of rows
mixture_doubt  how sure it may be that was fitted to few rows
saving         `save`, for all of them
"""
