"""`lam="auto"`: how strongly gaps lean towards the reference is read off the data. `mixture` fits
clusters and mechanism together, `decay` and `threshold` are the mechanisms, `mar` asks whether
other features explain the gaps instead, `evidence` weighs them, and `choice` gives the penalty.
`cells`, `sides`, `groups` and `limit` judge partitions where values get lost below a limit, and
`reference` tells a limit from zero. `em` and `mechanisms` are those of `MNARMixture`.
"""
