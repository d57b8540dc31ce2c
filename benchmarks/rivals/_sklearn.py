"""What the two scikit-learn contenders and its accelerated copy share."""


def run(KMeans, data, iterations, algorithm):
    job = data.job
    if job.starts:
        model = KMeans(job.k, n_init=job.starts, algorithm=algorithm, random_state=0)
    else:
        model = KMeans(
            job.k,
            init=data.start.astype(job.dtype),
            n_init=1,
            max_iter=iterations,
            tol=0.0,
            algorithm=algorithm,
        )
    model.fit(data.filled)
    return model.cluster_centers_, model.n_iter_
