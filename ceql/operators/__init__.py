"""The operators and functions of CEQL: tables, a row for each, that all other rooms read.

* `values`: The kinds of values, comparisons of single values and LIKE; the rules for all operators.
* `arithmetic`: The operators + - * / %, on values and on columns.
* `functions`: The functions of single values, and the aggregates.

The comparisons are those of both languages: `spaseq.core.comparisons`.
"""
