"""The functions of SPARQL expressions (SPARQL 1.1 §17), of terms and of numbers.

Modules:

* `table`: The functions of SPARQL 1.1 §17.4 and the casts, a row each.
* `numbers`: Numbers by the rules of SPARQL 1.1 §17 and XPath: truth, arithmetic, rounding, and the texts of results.
* `regex`: Regular expressions of REGEX and REPLACE (XPath Functions §5.6.1), in time linear in the text.
* `own`: Functions of the user by IRI: SPARQL's extension functions (SPARQL 1.1 §17.6), of terms.
* `registered`: Calls of functions that users registered, with us or with rdflib; and sums of times.
"""

from __future__ import annotations

from spaseq.gpm.functions.table import CASTS, FRESH, FUNCTIONS, Function

__all__ = ["CASTS", "FRESH", "FUNCTIONS", "Function"]
