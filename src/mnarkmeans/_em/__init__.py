"""Mixtures for data with missing values, fitted together with the missingness mechanism.

mechanisms  P(missing | x): mcar, class, decay, threshold, limit
em          one EM for normal clusters and Student's t: E-step, M-step, priors, and the objective
fit         starts, the choice of mechanism, tails and reference by BIC, tempering
"""
