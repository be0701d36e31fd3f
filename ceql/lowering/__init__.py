"""Syntax tree to pattern: a CEQL query in the pattern algebra of the engine.

`lower` does it, with `partition_keys` for equalities that may partition the stream.

* `taken`: The numbers of events that patterns and their variables take.
* `partition_keys`: Equalities over all events of a match become a partition: `x.id = y.id AND y.id = z.id` is PARTITION
  BY [id].
* `rounds`: Conditions that read events before the one at hand: `b.price < PREV(b.price)`, `c.price > b[0].price`.
* `disjunctions`: The ORs of a FILTER: the number of alternatives they stand for, and conditions that take the place of
  many.
* `parts`: The parts of a formula on their way to a pattern.
* `absences`: The events that a NOT says must not come, and the borders of parts that it stands at.
* `borders`: NOT around the whole formula, inside the window of a match or for a time of its own.
* `lower`: Syntax tree to pattern: the meaning of a CEQL query in the pattern algebra.
* `passing`: The events that each step and loop of a query passes over, in words.
* `advice`: Parts of a query that are probably not meant, though they can be run.
"""
