"""MNARKMeansCV: choose lam, and k, from how fits to parts of the data agree and predict."""

from .search import MNARKMeansCV, SelectionWarning

__all__ = ["MNARKMeansCV", "SelectionWarning"]
