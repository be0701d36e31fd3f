"""The table between graph pattern matching and recognition: the value of every GPM at every instant.

`chunks` merges batches of several streams into instants. `solve` evaluates the GPMs on them. `conjunctions` joins the
values of several GPMs. `instants` is the batch that the engine reads, and `instant_rows` the table for events that are
pushed one by one.

* `chunks`: Merges batches of several streams by time into chunks of instants, without an object per event.
* `conjunctions`: The conjunction of graph patterns at an instant, as columns ([SPAseq] Definition 8).
* `instant_rows`: The rows of one instant, for events that are pushed one at a time, without arrays.
* `instants`: The batches that the engine reads: rows of the table, and the mapping sets of conjunctions at them.
* `solve`: Evaluates the GPMs and makes the table: the value of every GPM at every instant.
"""
