"""`ceql.compare`: the matches that one of two queries reports and the other one does not, over all streams.

* `domains`: Values of attributes that the conditions of two queries can tell apart.
* `rows`: Events by values, and the truth of conditions of them.
* `letters`: The events that may come next: the alphabet of the product of two automata.
* `streams`: Streams of events that the engine runs both queries over.
* `compare`: The comparison of two queries.
"""
