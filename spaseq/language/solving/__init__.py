"""The table between graph pattern matching and recognition: what every GPM's value is at an instant.

`chunks` merges batches of several streams into instants; `solve` evaluates the GPMs on them; `conjunctions` joins
several at an instant; `instants` is what the engine reads, and `instant_rows` the same for events that are pushed one
by one.

* `chunks` (`Chunk`, `Piece`, `by_stream`, `chunk_of`, `merge_batches`): Batches of several streams become chunks of
  instants: merged by time, without an object per event.
* `conjunctions` (`Joined`, `Member`, `joined`): The conjunction of graph patterns at an instant, joined as columns over
  a chunk ([SPAseq] Definition 8).
* `instant_rows` (`InstantRows`, `Solved`): The rows of one instant, for events that are pushed one at a time: the same
  table as `ChunkRows`, without arrays.
* `instants` (`Before`, `InstantBatch`, `Rows`): What the engine reads of instants: rows of the table of solutions, and
  the mapping sets of conjunctions at them.
* `solve` (`ChunkRows`, `InstantSolutions`, `SolvedRows`, `Solver`): The table between graph pattern matching and
  sequence recognition: what every GPM's value is at an instant.
"""

__all__ = ["chunks", "conjunctions", "instant_rows", "instants", "solve"]
