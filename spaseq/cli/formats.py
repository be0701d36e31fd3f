"""The formats of `spaseq run`: one row and one writer each."""

from __future__ import annotations

from typing import Final

from spaseq.command import Format

__all__ = ["FORMATS"]

FORMATS: Final[dict[str, Format]] = {
    "table": Format("spaseq.cli.output:write_table"),
    "json": Format("spaseq.cli.output:write_json", ("json", "srj"), whole=True),
    "xml": Format("spaseq.cli.output:write_xml", ("xml", "srx"), whole=True),
    "csv": Format("spaseq.cli.output:write_csv", ("csv",)),
    "tsv": Format("spaseq.cli.output:write_tsv", ("tsv",)),
    "jsonl": Format("spaseq.cli.output:write_jsonl", ("jsonl", "ndjson")),
    "parquet": Format("spaseq.cli.output:write_parquet", ("parquet", "pq"), whole=True, binary=True),
    "nquads": Format("spaseq.cli.output:write_nquads", ("nq",)),
}
"""Writers of text take (solutions, sink), of `jsonl` (matches, sink); that of a binary format (matches, variables,
path, limit). All return how many they wrote."""
