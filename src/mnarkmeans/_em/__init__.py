"""Mixtures for data with missing values, fitted together with the missingness mechanism.

values      the observed values as mechanisms need them
mechanisms  P(missing | x): mcar, class, decay, threshold, limit
tails       normal clusters or Student's t
em          one EM: E-step, M-step, priors, and what they maximise
fit         starts, the choice of mechanism, tails and reference by BIC, tempering
"""
