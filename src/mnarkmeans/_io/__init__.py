"""Files, and what is imported on use.

atomic          files appear whole or not at all
model_files     fitted models are written and read
model_checks    every field of a model file is looked at
mixture_checks  the same for MNARMixture
plain_values    numbers, words and arrays as JSON and an archive
optional        packages of the extras are imported, or the one to install is named
memory          how much memory there is
"""
