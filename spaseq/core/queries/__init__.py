"""Queries of either language, apart from their texts.

* `compiled`: What a query of either language is compiled to.
* `own_functions`: Functions of the user, by the names that queries call them by: a registry for each language.
* `networks`: Networks of queries: their order, and the file that names them.
"""
