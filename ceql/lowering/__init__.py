"""Syntax tree to pattern: a CEQL query in the pattern algebra of the engine.

`lower` does it, with `partition_keys` for equalities that may partition the stream.

* `taken`: The numbers of events that patterns and their variables take.
* `partition_keys`: Equalities over all events of a match become a partition: `x.id = y.id AND y.id = z.id` is PARTITION
  BY [id].
* `disjunctions`: The ORs of a FILTER: the number of alternatives they stand for, and conditions that take the place of
  many.
* `lower`: Syntax tree to pattern: the meaning of a CEQL query in the pattern algebra.
* `advice`: Parts of a query that are probably not meant, though they can be run.
"""

__all__ = ["advice", "disjunctions", "lower", "partition_keys", "taken"]
