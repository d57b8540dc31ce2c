"""The command line: one file per verb, and what they share.

fit, select, predict, impute, diagnose, report, compare, demo, app   the verbs
_main      runs a verb and turns whatever happens into an exit code
_options   the options, in groups that several verbs take
_console   results, notes, progress and errors for people, JSON for programs
_claims    outputs appear whole or not at all; finished parts of long work are kept
_fitting   a table is read, prepared, fitted and assessed
_outputs   the files of a fit
"""
