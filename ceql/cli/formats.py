"""The output formats of the `ceql` commands: a row with its writer for each."""

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
"""The writers of text formats are classes or functions of (out, shown), whose result has `begin`, `row` and `end`; the
writer of a binary format is a function of (matches, tables, path), that of `count` one of (matches, limit, out)."""

FORECASTS: Final[dict[str, Format]] = {
    "text": Format("ceql.cli.alerting:write_text", ("txt",)),
    "csv": Format("ceql.cli.alerting:write_csv", ("csv",)),
    "jsonl": Format("ceql.cli.alerting:write_jsonl", ("jsonl", "ndjson")),
}
"""The writers of alerts and forecasts are functions of (lines in batches, column names, line to text, out), all in
`ceql.cli.alerting`."""

ALERTS: Final[dict[str, Format]] = {**FORECASTS, "count": Format("ceql.cli.alerting:write_count", whole=True)}
