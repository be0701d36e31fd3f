"""Aggregates over all matches without listing them: rows of a semiring (`rows`), and the way of events through the
window (`machine`). `layout` has the arrays.
"""
