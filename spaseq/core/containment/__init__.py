"""Containment of queries: the matches that one of two queries reports and the other one does not.

Both languages have a command and a function `compare` on top of it (`ceql.containment`, `spaseq.language.containment`).
The class that is decided and its proof: `docs/rma.md`, containment.

* `result`: The answer: a relation, and streams that show it.
* `windows`: Two windows as bounds on lengths, and the times by which one of them can be left.
* `product`: The search through the product of two automata that mark the same events.
* `deciding`: The relation of two queries from what is known of their automata and of their choices.
"""
