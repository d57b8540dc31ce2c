"""mnarkmeans, on the table with its gaps."""

NAME = "mnarkmeans"
MODULE = "mnarkmeans"


def supports(job):
    return True


def fit(data, iterations):
    from mnarkmeans import MNARKMeans

    job = data.job
    common = dict(lam=1.0, algorithm="lloyd", random_state=0)
    if job.starts:
        model = MNARKMeans(job.k, n_init=job.starts, **common)
    elif iterations is None:  # the run that finds how many iterations the job takes
        model = MNARKMeans(job.k, init=data.start, max_iter=100, **common)
    else:
        model = MNARKMeans(job.k, init=data.start, max_iter=iterations, tol=0.0, **common)
    model.fit(data.X)
    return model.cluster_centers_, model.n_iter_
