"""Speed and memory of mnarkmeans beside other k-means, measured side by side in one run.

python -m benchmarks                    all jobs, all programs that are installed
python -m benchmarks --quick            small sizes, a minute or two
python -m benchmarks.outofcore          tables larger than memory
python -m benchmarks.scaling_dask       Dask workers
python -m benchmarks.fuzz               random tables against a slow oracle
python -m benchmarks.soak               everything at once for a long time
"""
