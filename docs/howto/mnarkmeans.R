# k-means for data frames with missing values, by the Python package mnarkmeans.
# Say where Python is before sourcing this file: Sys.setenv(RETICULATE_PYTHON = ".../python")

library(reticulate)
mnarkmeans <- import("mnarkmeans")

# A pandas data frame as an R data frame with the names of `like`; some versions of reticulate do not
# convert it themselves.
as_frame <- function(x, like) {
  x <- as.data.frame(if (is.data.frame(x)) x else x$to_numpy())
  dimnames(x) <- dimnames(like)
  x
}

# Cluster the numeric columns of a data frame. Further arguments are those of MNARKMeans. Columns become
# double first, because an NA among integers would arrive in Python as -2147483648; clusters count from 1.
cluster_gaps <- function(data, k, ..., seed = 0L) {
  numbers <- data[vapply(data, is.numeric, logical(1))]
  numbers[] <- lapply(numbers, as.double)
  estimator <- mnarkmeans$MNARKMeans(as.integer(k), ..., random_state = as.integer(seed))
  model <- estimator$fit(numbers)
  centers <- as.data.frame(model$cluster_centers_)
  dimnames(centers) <- list(seq_len(k), names(numbers))
  list(
    model = model,
    cluster = factor(as.vector(model$labels_) + 1L, levels = seq_len(k)),
    centers = centers,
    filled = as_frame(model$impute(numbers), like = numbers),
    lam = model$lam_
  )
}
