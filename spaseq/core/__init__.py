"""The core: the parts that both query languages use, and nothing of either language.

A front end lowers its queries to `pattern` and gives `engine` batches of `events`; the rest serves these.

Modules:

* `errors`: The exceptions, a class for each party that has to act.
* `text`: Helpers for the text of queries: the ends of words, and refused characters.
* `words`: The words of both languages, and patterns that find the parts of a query.
* `watch`: Limits of time and memory, and what looks at them; one thread at a time in a session.
* `held`: What an evaluation holds in memory, in bytes, by what it is for.
* `comparisons`: The six comparisons, a row for each: mirror, negation and function.
* `integers`: Integers put in order and told apart by counting, as keys, codes and rows are.
* `jit`: Kernels: how numba compiles them, and the cache of compiled kernels.
* `compiling`: Makes numba compile kernels faster, and each once.
* `lazy_names`: Public names of a package that are loaded when they are first used.
* `measure`: The width of a text.
* `steps`: The steps of a match.
* `queries/`: What a query is compiled to, functions of the user, and networks of queries, of either language.
* `protocols`: The face that both languages show: query, matches, match, session.
* `snapshot/`: The state of an evaluation as bytes.
* `files/`: Files by their names: where they are, and how they are written.
* `events/`: Columnar batches of typed events, their time and order, and the readers that make them.
* `after`: AFTER MATCH as both languages write it.
* `kinds`: The words for kinds of values, which CAST and the columns of CSV files share; and the texts of truth values.
* `slips`: Hints for names that are not known: the known name that one may be a slip for.
* `trees`: Walks over trees of frozen nodes.
* `pattern/`: The pattern algebra ([CEL]) to which both languages lower their queries.
* `automata/`: Patterns compiled to automata; symbol classes; lazy determinisation; register match automata.
* `tecs/`: tECS, the compact structure of all runs ([CORE]).
* `engine/`: Evaluates a compiled pattern over batches.
* `containment/`: The matches that one of two queries reports and the other one does not.
* `collected`: Matches in hand, as a sequence and as a table; and matches that are found as they are asked for.
* `forecast/`: Forecasts of the next match.
* `drawing/`: Pictures: automata as DOT and SVG, matches on a time axis.
"""
