"""Every way to choose lam, on the same fresh data: ``python -m benchmarks.study``."""
