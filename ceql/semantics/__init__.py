"""Whether a query means something, and over which events.

`check` resolves names and refuses what cannot be run; `scopes` and `filters` say where a condition looks for its
variables; `contradictions` finds conditions that no event satisfies. `types` checks a query against `schemas`, once
these are known.

* `filters`: The conditions of a FILTER on their way to a pattern: single ones under AND and OR, and their variables
  changed.
* `check` (`FUNCTIONS`, `check`, `conditions`, `defined_variables`, `event_types`): Does a query mean something? Names,
  patterns and scopes, before anything is compiled.
* `scopes`: Which variables a formula defines, where its conditions look for others, and a formula with some of it
  changed.
* `contradictions` (`contradictory`, `culprits`): Can one event satisfy all of some conditions? Found out from the
  conditions alone, and only where it is certain.
* `schemas` (`Schema`, `arrow_kind`, `inferred`, `read_schema`): Schemas: what kind of value each attribute of events
  has, and where that is said.
* `types` (`check_types`): Does a query fit the attributes of its events? Checked against a schema
  (`ceql.semantics.schemas`), before the first event.
"""

__all__ = ["check", "contradictions", "filters", "schemas", "scopes", "types"]
