"""The fuzz target: right inputs of every kind are mutated, and nothing but the project's own errors may come of them.

* `mutate`: what becomes of bytes and of texts.
* `kinds`: the kinds of inputs, each drawn from a seed: queries, files of events, knowledge, options, snapshots, …
* `clocks`: events without times, types or keys: drawn, and what must hold of them.
* `checks`: an input is run in this process; `Wrong` says what is wrong with what came of it.
* `worker`, `campaign`: many inputs in a process with a watchdog, by `make fuzz` or `python -m tests.fuzz --help`.

A find is a JSON file (`kinds.Input`) that `python -m tests.fuzz --again FILE` runs again. What is found is mended at
its cause, and becomes a case in `tests/cases/` or a test beside what it is about.
"""
