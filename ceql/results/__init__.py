"""What a query reports.

`history` keeps the events that matches can still name, `bindings` say which variable took which of them, and `matches`
are what a user sees.

* `history` (`Block`, `History`, `Past`, `first_position`): The events that matches can still name: batches, and blocks
  of events that came one by one.
* `bindings` (`Bindings`, `Shown`): Which variable took which positions of a match, and the attributes of its events:
  valuations as columns.
* `matches` (`Match`, `MatchTable`, `empty_table`): What a query reports: matches one by one, or in columns.
"""

__all__ = ["bindings", "history", "matches"]
