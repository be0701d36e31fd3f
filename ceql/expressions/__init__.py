"""The meaning of expressions: on single values, on whole batches, and as generated code.

`ceql.operators` defines the operators. The modules evaluate expressions with that meaning on different forms of events:
`scalar` compiles closures for single events, `vectorized` works on columns. `predicates` are the conditions that an
automaton's transitions test; `codegen` compiles all predicates of an automaton to one Python function.

* `exact`: Exact comparisons of columns of numbers: whole numbers of 64 bits and doubles.
* `members`: The values of `x IN {…}`, prepared once, so that a test is a look-up.
* `scalar`: Expressions as closures, for guards, which read a few events at a time.
* `vectorized`: Expressions on whole batches: columns in, a truth value per event out.
* `predicates`: Predicates on one event, evaluated on whole batches; equal conditions are one.
* `codegen`: A generated function that gives an automaton's predicates on one event as the bits of an int.
"""
