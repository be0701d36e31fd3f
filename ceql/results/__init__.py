"""What a query reports.

`history` keeps the events that future matches may contain, `bindings` say which variable took which of them, and
`matches` are what a user sees.

* `history` (`Block`, `History`, `Past`): The events that future matches may contain: batches, and
  blocks of events that were pushed one by one.
* `bindings` (`Bindings`, `Shown`): Which variable took which positions of a match, and the attributes of its events:
  valuations as columns.
* `matches` (`Match`, `MatchTable`, `empty_table`): Matches as objects, or in columns.
"""

__all__ = ["bindings", "history", "matches"]
