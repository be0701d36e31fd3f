"""The formats of `ceql run`: one row and one writer each."""

from __future__ import annotations

from typing import Final

from spaseq.command import Format

__all__ = ["ALERTS", "FORECASTS", "MATCHES"]

MATCHES: Final[dict[str, Format]] = {
    "table": Format("ceql.cli.writers:TableWriter"),
    "json": Format("ceql.cli.writers:JsonWriter", ("json",), whole=True),
    "csv": Format("ceql.cli.writers:csv_writer", ("csv",)),
    "tsv": Format("ceql.cli.writers:tsv_writer", ("tsv",)),
    "jsonl": Format("ceql.cli.writers:JsonLinesWriter", ("jsonl", "ndjson")),
    "parquet": Format("ceql.cli.writers:write_parquet", ("parquet", "pq"), whole=True, binary=True),
    "count": Format("ceql.cli.writers:write_count"),
}
"""Writers of matches are made of (out, shown) and given tables of matches; that of a binary format takes (matches,
tables, path), that of `count` (matches, limit, out)."""

FORECASTS: Final[dict[str, Format]] = {
    "text": Format("ceql.cli.alerting:write_text", ("txt",)),
    "csv": Format("ceql.cli.alerting:write_csv", ("csv",)),
    "jsonl": Format("ceql.cli.alerting:write_jsonl", ("jsonl", "ndjson")),
}
"""Writers of lines take (lines, names, text, out), a batch of them at a time; see `ceql.cli.alerting`."""

ALERTS: Final[dict[str, Format]] = {**FORECASTS, "count": Format("ceql.cli.alerting:write_count", whole=True)}
