"""Queries as values of Python, in the manner of expressions in data frames. They become trees of `ceql.syntax.ast`.

A value of this package wraps a syntax tree and never changes. A method gives a new value. `str` prints the text of the
query, and that text is compiled, so that errors, plans, snapshots and Spark know nothing of this package.

* `names`: The variables of a query: marks in the trees, which become names when the text is asked for.
* `constants`: Constants of Python as constants of CEQL.
* `values`: Attributes of events, expressions and conditions.
* `clauses`: The clauses of a query: windows, keys, strategies, columns.
* `patterns`: Events and the parts of patterns.
* `reading`: The text of a pattern or a query as a value of this package.
"""
