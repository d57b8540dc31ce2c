"""Files and what is imported on use: `atomic` lets files appear whole or not at all, `model_files`
writes and reads fitted models (`model_checks` looks at every field, `plain_values` turns numbers,
words and arrays into JSON and an archive), `optional` imports packages of the extras or says which
one to install, `memory` tells how much there is.
"""
