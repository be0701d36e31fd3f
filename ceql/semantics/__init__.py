"""Checks of a query: its names, its scopes, and its types against a schema.

`check` resolves names and refuses queries that have no meaning. `scopes` and `filters` decide to which variables a
condition refers. `contradictions` finds conditions that no event satisfies. `types` checks a query against `schemas`,
once the attributes of the events are known.

* `filters`: A FILTER as single conditions under AND and OR, and conditions with other names for their variables.
* `selection`: The columns that SELECT computes: their names, and what the bare names in them stand for.
* `grouping`: GROUP BY: a row for each event at which matches end, each key or each hour, of aggregates over matches.
* `check`: Checks names, streams, functions and regular expressions of a query, before anything is compiled.
* `streams`: Variables of one stream: with `FROM S, T`, `S>R` holds the events of type R on S.
* `scopes`: The variables that a formula defines, the scope of a condition, and copies with parts changed.
* `rounds`: Conditions on each round of a loop: FIRST and LAST inside a loop are of the events before the one at hand.
* `ambiguities`: Parts of a query that can be read in two ways, each with the spelling of both readings.
* `contradictions`: Contradictions between conditions, which no event satisfies together.
* `schemas`: Schemas: the kind of value of each attribute, given by the user or by the input.
* `types`: Checks the attributes and operations of a query against a schema, before the first event.
"""
