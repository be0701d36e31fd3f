"""What expressions mean: on single values, on whole batches, and as generated code.

`values` has the operators. The other modules give expressions that meaning, each for another shape of events: `scalar`
makes closures, `vectorized` works on columns, `predicates` are what the automaton's letters are made of, and `codegen`
makes one Python function of all of them.

* `values`: What operators mean on single values; `ceql.expressions.vectorized` means the same on whole columns.
* `scalar` (`compile_condition`, `compile_value`): Expressions on single events: closures for the guards, which see a
  few events at a time.
* `vectorized` (`evaluate`, `operand`): Expressions on whole batches: arrays in, a truth per event out.
* `predicates` (`Satisfies`, `StreamIs`, `TypeIs`): Predicates on one event: equal if they mean the same, evaluated on
  whole batches.
* `codegen` (`Unfit`, `compile_bits`, `normal`): The predicates of an automaton on one event, a dict: one Python
  function gives their truths as the bits of an int.
"""

__all__ = ["codegen", "predicates", "scalar", "values", "vectorized"]
