"""A checked query as a pattern of the core.

* `lower`: Lower a checked query to the core's pattern over instants.
"""
