"""Matches, and the results that result clauses compute from them.

`history` keeps the instants that a `match` may show; `columns` and `gathered` are matches as columns; `results`
computes the results of SELECT and the clauses behind it.

* `match`: A match, as a query's user sees it.
* `step_values`: The values of variables at the instants that a match to come may hold, of steps whose values runs do
  not keep.
* `instant_values`: The mappings of conjunctions at the instants of a batch, as codes of terms.
* `counted`: The number of the solutions of a window, without a list of them.
* `columns`: Matches as columns: the form of many results, until one of them is read as a `Match`.
* `gathered`: Matches gathered as columns, over terms of their own: the input of result clauses.
* `history`: The instants that a match to come may hold: their times, and their events if matches show them.
* `computing`: Result clauses as operations on columns, by the plan of graph patterns.
* `results`: From matches to results: SELECT expressions, DISTINCT, GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET.
* `solutions`: Solutions, pairs of a time and a mapping, of matches; matches as a table.
* `typed`: Results as a table of Arrow's types, or of RDF terms as they are.
* `timelines`: Matches to look at: on a time axis, and as the table of a notebook.
"""
