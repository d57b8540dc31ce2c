"""The command line: tables in, files out.

_options   what can be said to the verbs, in groups that travel together; _groups spreads them
_verbs     the verbs; one module with the work beside them for each
_app       runs a verb and turns whatever happens into an exit code (_signals, _errors)
_lines     a text file becomes lines of UTF-8; _layout tells how it is written, _headers what
           stands above its rows
_written   how a number is written: decimal signs, thousands
_marks     what stands where a number should: marks for missing, and words nobody explained
_text      a text file becomes a frame, every row checked; _excel the same for a sheet
_frames    a frame becomes a table: its rows (_dropped) and columns, what was left out and why
_numbering  columns of numbers that measure nothing: identifiers, dates, running numbers
_formats   every file format becomes a table (_table)
_prepare   normalising, logarithms, centring, scaling; stored in the model and repeated later
_remembered  how a table was read, stored in the model too
_fill      the file a table came from, with its gaps filled
_command   the command as it was typed, and the one to type next
_suggest   what names (_structure, _controls) and ranges (_look) of a table suggest; _spoken says
           it in the command's words
_annotations  what else is known of the rows, against the clusters
_job       what the verbs share: read and prepare a table, fit with progress
_blocks    a table larger than memory, fitted in blocks
_output    places are claimed, files appear whole or not at all
_h5ad      a copy of an .h5ad file with the labels in it
_results   the files of a fit; _csv writes tables; _resume keeps finished parts
_console   lines for people, JSON for machines, progress on a terminal
"""
