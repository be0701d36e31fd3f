"""The guards of a query's pattern, and their meaning.

`guards` say what a run takes, meets and passes. `registers` decide them on sets of mappings; `encoding` lets the
kernels join mappings, as codes.

* `guards` (`Free`, `Meets`, `Pass`, `Take`, `conjunctions_of`): The guards of a query's pattern: what a run is asked at
  an instant. Who decides them: `spaseq.language.guards.registers`.
* `bound` (`Bound`, `MayBind`, `bound_in_states`, `freed_by_rounds`, `transitions`): What a run in a state of the
  automaton has bound, as far as the states tell.
* `terms` (`NumberedTerms`, `SolutionTerms`): Numbers for the terms that runs hold.
* `round_lists` (`RoundLists`): Numbers for the lists of rounds that runs hold.
* `compared` (`Asked`, `Compared`, `Filters`, `outer_filters`): The FILTERs between GPMs, as the codes of runs are
  asked about them.
* `sides` (`NAMES`, `SideCodes`): The codes of what FILTERs between GPMs compare: a variable, or arithmetic on one.
* `layout` (`Columns`, `Layout`, `Value`, `layout_of`): The registers of runs and the columns of instants.
* `operations` (`CompiledGuards`, `compile_guards`): The guards of an automaton as operations on codes.
* `encoding` (`TermCodes`): Runs as codes: what the kernels need to join mappings themselves.
* `registers` (`MappingRegisters`, `Row`): The meaning of guards on sets of mappings: what a run holds, and what becomes
  of it at an instant.
"""

__all__ = ["bound", "compared", "encoding", "guards", "layout", "operations", "registers", "round_lists", "sides",
           "terms"]  # fmt: skip
