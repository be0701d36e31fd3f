"""An evaluation in progress, as both languages have it.

* `past`: The events that matches may name: blocks in order, found by position, dropped from the front.
* `recognition`: The state of an evaluation between two events.
* `session`: An evaluation that events are pushed to, one call at a time, until `close` or the end of its `with` block.
"""
