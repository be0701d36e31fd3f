"""Queries over tables of tuples: events in, a row for each match out.

* `columns`: The columns of users' DataFrames: which the query reads, and whether it can, before anything runs.
* `plan`: The division of the tuples among tasks: by keys, by slices of time, or not.
* `slices`: Slices of time, whose bounds Spark computes.
* `frames`: The tuples of all streams in one DataFrame, with their times, in the tasks that need them.
* `match`: The rows of the matches: analysed at once, computed by an action.
* `rows`: In a task: the engine over tuples as they come, and the rows of its matches.
"""
