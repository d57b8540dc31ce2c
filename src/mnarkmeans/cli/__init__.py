"""The command line: tables in, files out.

_app          runs a verb and turns whatever happens into an exit code
_verbs        the verbs: what each takes and what it is for
_options      what can be said to them, in groups that travel together
_groups       spreads these groups into options
_signals      SIGTERM ends a run as Ctrl-C does
_errors       a mistake that the user can mend
_console      lines for people, JSON for machines, progress on a terminal

the work of the verbs
_fit          fit
_blocks       fit, for a table larger than memory
_select       select
_compare      compare
_forecast     how long its methods will take
_within       work in a process of its own, which can be ended
_diagnose     diagnose
_use          predict and impute
_report       report
_demo         demo
_job          what they share: read and prepare a table, fit with progress

reading
_formats      every file format becomes a table
_table        what a table is: numbers with gaps, names, the story of their reading
_lines        a text file becomes lines of UTF-8
_layout       how it is written: encoding, delimiter, decimals, header
_headers      what stands above its rows
_written      how a number is written: decimal signs, thousands
_marks        what stands where a number should: marks for missing, and words nobody explained
_text         a text file becomes a frame, every row checked
_excel        the same for a sheet
_frames       a frame becomes a table: its rows and columns, what was left out and why
_dropped      rows that were asked to be left out
_numbering    columns of numbers that measure nothing: identifiers, dates, running numbers
_meaning      tables that can be read and do not mean what clustering takes them for
_remembered   how a table was read, stored in the model
_annotations  what else is known of the rows, against the clusters

preparing
_prepare      normalising, logarithms, centring, scaling; stored in the model and repeated later
_suggest      what names and ranges of a table suggest
_structure    which columns are samples and which rows features, by their names
_controls     rows and columns that are no samples
_look         what the numbers of a table are like
_command      the command as it was typed, and the one to type next
_spoken       the package's advice in the command's words

writing
_output       places are claimed, files appear whole or not at all
_results      the files of a fit
_csv          text tables for spreadsheets
_resume       finished parts of long work
_fill         the file a table came from, with its gaps filled
_h5ad         a copy of an .h5ad file with the labels in it
"""
