"""What comes in: arrays, frames and sparse matrices are judged once at the door (`validation`),
looked over in one pass (`first_pass`) and become an `Observed` (`observed`), the only form of a
table that the algorithms see; `frames` turns answers back into the kind of frame that came in.
"""
