"""The command line: tables in, files out.

_text      a text file becomes a frame: encoding, delimiter, header, ragged rows
_frames    a frame becomes a table: the id column, the numeric columns, what was left out and why
_tables    every file format becomes a table
_prepare   log1p, centring, scaling, dropping features; stored in the model and repeated later
_output    files appear whole or not at all
_console   lines for people, JSON for machines, progress on a terminal
_app       runs a verb and turns whatever happens into an exit code
_verbs_*   the verbs and their options; one module with the work beside them for each
"""
