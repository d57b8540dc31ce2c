"""Files and what is imported on use: `atomic` lets files appear whole or not at all, `model_files`
writes and reads fitted models, `optional` imports packages of the extras or says which one to
install.
"""
