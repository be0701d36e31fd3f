"""Aggregates over all matches without listing them: rows of a semiring (`rows`), and the way of events through the
window (`machine`), or over nodes that matches share (`nodes`). `best` finds the best matches over such nodes. `layout`
has the arrays.

Arguments of all of them:

* `held`, `takes`: the named tuples `Held` and `Takes` of `layout`; `tables`: `Tables` of `spaseq.core.automata`;
* `width`: the number of deterministic states; `key`: the partition;
* `weights`: rows with the numbers of events, `e` that of the event; `added`: how many of the whole numbers are added.
"""
