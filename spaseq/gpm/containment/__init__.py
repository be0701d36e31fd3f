"""The parts of the comparison of two SPAseq queries that are about graph patterns.

* `implied`: Conditions that imply each other.
* `fitting`: Random graphs that triple patterns fit.
"""
