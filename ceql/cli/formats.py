"""The output formats of the `ceql` commands, from the table that both commands share."""

from __future__ import annotations

from typing import Final

from spaseq.tools.command import Format
from spaseq.tools.command.formats import COUNT, CSV, JSON, JSONL, PARQUET, TABLE, TSV

MATCHES: Final[dict[str, Format]] = {
    "table": TABLE, "json": JSON, "csv": CSV, "tsv": TSV, "jsonl": JSONL, "parquet": PARQUET, "count": COUNT,
}  # fmt: skip
"""Of `ceql.cli.output.FoundMatches`."""

FORECASTS: Final[dict[str, Format]] = {
    "text": Format("ceql.cli.alerting:write_text", ("txt",), people=True, letters="backslashreplace"),
    "csv": CSV,
    "jsonl": JSONL,
}
"""Of forecasts, and of alerts but for `count`."""

ALERTS: Final[dict[str, Format]] = {**FORECASTS, "count": COUNT}
