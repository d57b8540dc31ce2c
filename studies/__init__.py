"""Accuracy on simulated and real tables whose groups are known."""
