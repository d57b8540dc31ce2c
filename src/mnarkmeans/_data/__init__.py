"""What comes in is judged once, at the door; behind it there is one form of a table, `Observed`.

validation  the door: arrays, frames and sparse matrices become an `Observed`, or a clear error
oddities    what is odd about a table, told to its user
first_pass  the first look at a table, whole or in blocks
observed    `Observed`, the only form of a table that the algorithms see
gaps        which entries are gaps
csr         CSR matrices as the core takes them
scale       how large numbers may be
frames      frames in, the same kind of frame out
filling     a table given back without gaps
"""
