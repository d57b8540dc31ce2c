"""`mnarkmeans fit`: a table in; clusters, centres, markers, model and report out."""

from __future__ import annotations

from .. import MNARKMeans
from ._fitting import claimed_folder, open_job
from ._options import FittingOptions, FolderOptions, SourceOptions
from ._outputs import write_results


def fit(fitting: FittingOptions, output: FolderOptions, source: SourceOptions) -> None:
    """Cluster a table; write labels, centres, markers, model and report.

    Example: mnarkmeans fit cells.csv -k 4 -o result
    """
    with claimed_folder(source, output) as claim:
        job = open_job(output, source, fitting.n_clusters)
        model = MNARKMeans(reference=job.reference, **vars(fitting))
        job.fit(model)
        job.assess(model)
        with claim.writing() as folder:
            write_results(folder, job)
    job.print()
