"""Columnar event batches: reading them, their time and their order."""
