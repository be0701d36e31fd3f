"""What expressions mean: on single values, on whole batches, and as generated code.

`ceql.operators` defines the operators. The modules evaluate expressions with that meaning on different forms of events:
`scalar` compiles closures for single events, `vectorized` works on columns. `predicates` are the conditions that an
automaton's transitions test; `codegen` compiles all predicates of an automaton to one Python function.

* `exact`: Comparisons of columns of numbers by value: whole numbers of 64 bits and doubles, exactly.
* `members`: The values of `x IN {…}`, prepared once, so that a test takes a look-up however many they are.
* `scalar`: Expressions as closures, for guards, which read a few events at a time.
* `vectorized`: Expressions on whole batches: columns in, a truth value per event out.
* `predicates`: Predicates on one event, evaluated on whole batches; equal conditions make equal predicates, so each is
  evaluated once.
* `codegen`: The predicates of an automaton on one event, given as a dict: one generated function returns their truth
  values as the bits of an int.
"""

__all__ = ["codegen", "exact", "members", "predicates", "scalar", "vectorized"]
