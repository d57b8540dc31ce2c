"""Where rows lie in a picture, computed from their values and gaps, never from their labels.

plane   directions that explain most of a table with gaps, by EM
points  two coordinates per row: the plane, or UMAP of its first directions
"""
