"""The results of a query.

`history` keeps the events that future matches may contain, and `bindings` have those that each variable took.
`selected` computes the columns of SELECT of them, and `matches` are the objects that a user sees. `named`
has those of several queries together.

* `history`: The events that future matches may contain: batches, and blocks of events that were pushed one by one.
* `bindings`: The positions of a match that each variable took, and the attributes of its events: valuations as columns.
* `segments`: Aggregates over consecutive segments of a column: one value for each match.
* `column_types`: The Arrow types of the columns that SELECT computes, from those of the events' attributes.
* `sums`: Aggregates over all matches that end at an event: what events add to them, and their values.
* `selected`: The columns that SELECT computes: a row for each match.
* `folding`: Aggregates over matches as nodes that these share, or over matches that must be listed after all.
* `groups`: The rows of GROUP BY KEY and of GROUP BY 1 HOUR: those of events, added up.
* `typed`: Rows of matches as objects of a class of the user's.
* `matches`: Matches as objects, or in columns.
* `ordering`: ORDER BY: the matches of each event in the order of their keys, and with LIMIT the first ones.
* `ranking`: The first matches of ORDER BY with LIMIT, found over the nodes that matches share.
* `named`: Matches of several queries in one order: pairs of a query's name and a match, or a table of all.
"""
