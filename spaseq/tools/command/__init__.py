"""The parts that the commands `spaseq` and `ceql` share, so that both behave alike. Independent of the languages.

* `frame` runs a command: it turns errors into messages and exit codes, and reads the query.
* `functions` runs the files of `--functions`.
* `outputs` opens the output: results come out whole.
* `options` has the arguments that both commands have.
* `late` writes the events that come too late.
* `formats` chooses the format of the output, `writers` has the formats of more than one command.
* `table` writes aligned columns, `colours` prints texts for people.
* `progress` shows a line on the terminal while events are read.
* `demos` has the examples.
* `comparing` has the command that compares two queries.
* `process` handles interrupts and the end of the process, `lines` has standard output end with a whole line.
"""

from __future__ import annotations

from spaseq.tools.command.comparing import add_compare
from spaseq.tools.command.demos import add_demo
from spaseq.tools.command.formats import Format, chosen_format
from spaseq.tools.command.frame import (
    accounted,
    bounded,
    compiled_query,
    is_network,
    note,
    query_file,
    query_text,
    remarks,
    report,
    run_main,
    warn,
)
from spaseq.tools.command.late import late_beside, late_file
from spaseq.tools.command.options import (
    add_explain,
    add_follow,
    add_memory,
    add_plot,
    add_query,
    add_results,
    add_text_form,
    add_times,
    clock_of,
    command_parser,
    text_form_of,
    times_of,
)
from spaseq.tools.command.outputs import opened
from spaseq.tools.command.process import run_command
from spaseq.tools.command.table import Table

__all__ = [
    "Format",
    "Table",
    "accounted",
    "add_compare",
    "add_demo",
    "add_explain",
    "add_follow",
    "add_memory",
    "add_plot",
    "add_query",
    "add_results",
    "add_text_form",
    "add_times",
    "bounded",
    "chosen_format",
    "clock_of",
    "command_parser",
    "compiled_query",
    "is_network",
    "late_beside",
    "late_file",
    "note",
    "opened",
    "query_file",
    "query_text",
    "remarks",
    "report",
    "run_command",
    "run_main",
    "text_form_of",
    "times_of",
    "warn",
]  # fmt: skip
