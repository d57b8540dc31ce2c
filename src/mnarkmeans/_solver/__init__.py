"""Minimises the loss for one number of clusters and one penalty. ``src/core/loss.h`` has the maths.

starts    starting centres
solve     a table in memory, from its starts to the best of them
lloyd     Lloyd's loop, wherever the rows are
bounds    which rows cannot change cluster
results   what became of the starts, and which is the best
progress  what a waiting user is told
threads   how many threads, and cuts that do not depend on it
"""
