"""Everything at once, for a long time: ``python -m benchmarks.soak --minutes 60``.

work       what is done in a turn: fits, predictions, reports, a cluster whose workers are killed
watch      a process for each kind of work, its memory and files, and what it leaves behind
figures    whether memory was flat, and the table for the documentation
"""
