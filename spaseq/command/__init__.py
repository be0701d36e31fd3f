"""What the commands `spaseq` and `ceql` share, so that both behave alike.

`frame` runs a command: errors become messages and exit codes, a query is read, results are written. `options` has the
words that both understand, `formats` says how a result may be written and chooses by the name of a file, `table` is
the format for people and `progress` the line on a terminal while they wait. `process` is how a command ends and is
interrupted. Nothing here knows a language.
"""

from __future__ import annotations

from spaseq.command.formats import Format, chosen_format
from spaseq.command.frame import opened, query_text, run_main, warn
from spaseq.command.options import add_query, add_results, command_parser, count, settings_of
from spaseq.command.process import run_command, settle_interrupt
from spaseq.command.progress import watched
from spaseq.command.table import Table

__all__ = [
    "Format",
    "Table",
    "add_query",
    "add_results",
    "chosen_format",
    "command_parser",
    "count",
    "opened",
    "query_text",
    "run_command",
    "run_main",
    "settings_of",
    "settle_interrupt",
    "warn",
    "watched",
]
