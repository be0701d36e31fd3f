"""Graph patterns over whole batches of events: tables of numbered terms instead of a mapping at a time.

`uncovered_pattern` says why a pattern is left to rdflib; `read_by` and `read_predicates` which
triples it can use. They only look at the algebra. The evaluation is
`spaseq.gpm.columnar.evaluate.BatchEvaluator`, which loads
numba: it is not imported here, so that compiling and explaining a query stays light.
"""

from __future__ import annotations

from spaseq.gpm.columnar.coverage import read_by, read_predicates, uncovered, uncovered_pattern, unsteady

__all__ = ["read_by", "read_predicates", "uncovered", "uncovered_pattern", "unsteady"]
