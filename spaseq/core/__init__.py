"""The core: the parts that both query languages use, and nothing of either language.

A front end lowers its queries to `pattern` and gives `engine` batches of `events`; the rest serves these.

Modules:

* `errors`: The exceptions, a class for each party that has to act.
* `text`: Helpers for the text of queries: the ends of words, and refused characters.
* `words`: The words of both languages, and patterns that find the parts of a query.
* `watch`: Limits of time and memory, and their checks; one thread at a time in a session.
* `held`: The memory that an evaluation holds, in bytes, by its use.
* `integers`: Integers sorted and made distinct by counting: keys, codes and rows.
* `jit`: Kernels: how numba compiles them, and the cache of compiled kernels.
* `lazy_names`: Public names of a package that are loaded when they are first used.
* `measure`: The width of a text.
* `steps`: The steps of a match.
* `protocols`: The interface that both languages implement: query, matches, match, session.
* `snapshot/`: The state of an evaluation as bytes.
* `events/`: Columnar batches of typed events, their time and order, and the readers that make them.
* `pattern/`: The pattern algebra ([CEL]) to which both languages lower their queries.
* `automata/`: Patterns compiled to automata; symbol classes; lazy determinisation; register match automata.
* `tecs/`: tECS, the compact structure of all runs ([CORE]).
* `engine/`: Evaluates a compiled pattern over batches.
* `forecast/`: Forecasts of the next match.
* `drawing/`: Pictures: automata as DOT and SVG, matches on a time axis.
"""

__all__: list[str] = []
