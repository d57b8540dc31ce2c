"""What comes in: arrays, frames and sparse matrices are judged once at the door (`validation`),
looked over in one pass (`first_pass`, which mends CSR matrices through `csr`), measured (`scale`)
and become an `Observed` (`observed`), the only form of a table that the algorithms see; `filling`
gives it back without gaps, `frames` as the kind of frame that came in.
"""
