"""Speed and memory of mnarkmeans beside other k-means, measured side by side in one run.

python -m benchmarks            all jobs, all rivals that are installed
python -m benchmarks --quick    small sizes, a minute or two
"""
