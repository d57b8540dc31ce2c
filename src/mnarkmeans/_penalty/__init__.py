"""`lam="auto"`: how strongly gaps lean towards the reference is read off the data. `common` fits
clusters and mechanism together, `em` does so for `MNARMixture`; `mechanisms` are the ways of
losing values, `mar` asks whether other features explain the gaps instead, `evidence` weighs them,
and `choice` gives the penalty, an `answer`. `cells`, `deviations`, `sides`, `groups` and `limit`
judge partitions where values get lost below a limit, and `reference` tells a limit from zero.
`rows` is what all of them see of a table.
"""
