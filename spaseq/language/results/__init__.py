"""Matches, and the results that result clauses compute from them.

`history` keeps the instants that a `match` may show; `columns` and `gathered` are matches as columns; `results`
computes the results of SELECT and the clauses behind it.

* `match` (`Match`): A match, as a query's user sees it.
* `columns` (`CodedLists`, `CodedTerms`, `FoundColumns`, `Kept`, `Texts`, `again`, `columns_of`, `list_ranks`,
  `rounds_text`, `solution_blocks`, `taken`, `text_ranks`): Matches as columns: the form of many results, until one of
  them is read as a `Match`.
* `gathered` (`Gathered`, `GatheredLists`, `Rows`, `SpaceTerms`, `with_lists`): Matches gathered as columns, over terms
  of their own: the input of result clauses.
* `history` (`Events`, `History`, `Made`, `Pool`): The instants that a match to come may hold: their times, and their
  events if matches show them.
* `computing` (`Computation`): Result clauses as operations on columns: the plan of graph patterns evaluated over
  solutions in place of events.
* `results` (`Results`, `finish`, `term_order`): From matches to results: SELECT expressions, DISTINCT, GROUP BY,
  HAVING, ORDER BY, LIMIT and OFFSET.
* `solutions` (`distinct_solutions`, `match_table`): Solutions, pairs of a time and a mapping, of matches; matches as a
  table.
* `typed` (`TERM`, `typed_table`): Results as a table of Arrow's types, or of RDF terms as they are.
* `timelines` (`drawn_matches`, `listed_matches`, `prefixes_of`): Matches to look at: on a time axis, and as the table
  of a notebook.
"""

__all__ = ["columns", "computing", "gathered", "history", "match", "results", "solutions", "timelines", "typed"]
