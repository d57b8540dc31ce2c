"""Minimises the loss for one number of clusters and one penalty: starting centres (`starts`), a
table in memory from its starts to the best of them (`solve`), Lloyd's loop wherever the rows are
(`lloyd`), which rows cannot change cluster (`bounds`), what became of the starts (`results`),
threads (`threads`) and what a waiting user is told (`progress`). The maths is in
``src/core/loss.h``.
"""
