"""The estimators a user meets: `kmeans` (all rows at once), `minibatch` (rows in batches), and in
`base` what any model can do with its fitted centres: predict, transform, impute. `mixture` has soft
clusters, fitted by `mixture_fit`; `mixture_rows` is what it says of rows.
"""
