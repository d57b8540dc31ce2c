"""Minimises the loss for one number of clusters and one penalty: starting centres (`starts`),
Lloyd's loop over many starts (`solvers`), moves of single rows (`hartigan`), the maths of the
loss (`loss`), which rows cannot change cluster (`bounds`), passes in one call or on threads
(`schedule`, `threads`) and what a waiting user is told (`progress`).
"""
