"""Syntax tree to pattern: what a query means in terms of the core.

`lower` does it, with `repeat` for `{l,m}` and `partition_keys` for equalities that divide the stream.

* `repeat` (`repeated`, `size`): Bounded repetition `φ{l,m}`, written out: l to m copies of φ, anything between them, as
  with `φ+`.
* `partition_keys` (`infer_keys`, `least`): An equality that every event of a match carries becomes a partition: `x.id =
  y.id AND y.id = z.id` over the formula.
* `lower` (`Lowered`, `lower`): Syntax tree to pattern: the meaning of a CEQL query in terms of the core.
"""

__all__ = ["lower", "partition_keys", "repeat"]
