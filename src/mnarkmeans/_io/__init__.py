"""Files and what is imported on use: `model_files` writes and reads fitted models, `optional`
imports packages of the extras or says which one to install.
"""
