"""The operators and functions of CEQL: tables, a row for each, that all other rooms read.

* `values`: The kinds of values, comparisons of single values and LIKE; the rules for all operators.
* `arithmetic`: The operators + - * / %, on values and on columns.
* `function`: A row of the table of functions, and how it is computed of values and of columns.
* `functions`: The table: all functions of single values, and the aggregates.
* `aggregates`: The rows of COUNT, SUM, AVG and the like, and CORR.
* `choices`: The rows of COALESCE, NULLIF, LEAST and GREATEST.
* `texts`: The rows of LOWER, SUBSTRING, REGEXP_EXTRACT and others.
* `numbers`: The rows of ABS, ROUND, POWER and others.
* `times`: The arithmetic of times and durations, and the rows of HOUR, DATE_TRUNC and others.
* `zones`: The offsets of time zones, of single times and of columns.
* `casts`: The rows of CAST and TRY_CAST.
* `sets`: The rows of MEMBER and CIDR_MATCH.
* `own`: Functions of the user, as rows of the table of functions.
* `columns`: Columns as arguments and results of functions: constants, choices between columns, values in a list.

The comparisons are those of both languages: `spaseq.core.comparisons`.
"""
