"""The formats of `spaseq run`: those that both commands share, and its own."""

from __future__ import annotations

from typing import Final

from spaseq.tools.command import Format
from spaseq.tools.command.formats import CSV, JSONL, PARQUET, TABLE

FORMATS: Final[dict[str, Format]] = {
    "table": TABLE,
    "json": Format("spaseq.cli.output:write_json", ("json", "srj"), whole=True, letters="spaseq-json"),
    "xml": Format("spaseq.cli.output:write_xml", ("xml", "srx"), whole=True, letters="xmlcharrefreplace"),
    "csv": CSV,
    "tsv": Format("spaseq.cli.output:write_tsv", ("tsv",)),
    "jsonl": JSONL,
    "parquet": PARQUET,
    "nquads": Format("spaseq.cli.output:write_nquads", ("nq",), letters="spaseq-rdf"),
}
"""Of `spaseq.cli.output.FoundResults`."""
