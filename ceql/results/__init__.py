"""The results of a query.

`history` keeps the events that future matches may contain, `bindings` have the events that each variable took, and
`matches` are the objects that a user sees.

* `history`: The events that future matches may contain: batches, and blocks of events that were pushed one by one.
* `bindings`: The positions of a match that each variable took, and the attributes of its events: valuations as columns.
* `matches`: Matches as objects, or in columns.
"""
