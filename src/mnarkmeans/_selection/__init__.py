"""MNARKMeansCV: choose lam, and k, from how fits to parts of the data agree and predict.

search     the estimator: evidence and verdict for every k, the refit
grid       candidates for lam
fits       fits to parts of the rows, with every candidate
evidence   what those fits showed
predicted  what the candidates' partitions predict of rows left out
criteria   from the evidence to one lam
trials     one trial for each k, and which k wins
doubts     what makes a choice doubtful, in words
agreement  how far partitions agree
stability  how much of each cluster of any fitted model comes back
"""

from .search import MNARKMeansCV, SelectionWarning

__all__ = ["MNARKMeansCV", "SelectionWarning"]
