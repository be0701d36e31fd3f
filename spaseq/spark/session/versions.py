"""The versions of PySpark that this package works with: tables of tuples with older ones than graphs."""

from __future__ import annotations

import re
from typing import Final

from spaseq.core.errors import OptionError

_BATCHES: Final = ("collect", "clear_errors", "dead_letters", "explain_match", "local_session", "match", "parse_json",
                   "parse_rdf", "progress_bar", "ship")  # fmt: skip
_STREAMS: Final = ("progress", "start_tuples", "wait")
_LEAST: Final = dict.fromkeys(_BATCHES, (3, 5)) | dict.fromkeys(_STREAMS, (4, 0)) | {"register": (4, 1)}
"""By name the first version with what it needs, if that is not `GRAPHS`."""
GRAPHS: Final = (4, 2)
"""The first version with what queries over graphs need: data sources in Python with limits, tasks by number."""
SUPPORTED: Final = ">=3.5,<4.4"
"""The versions that are tested, as pyproject.toml has them. Later ones are tried all the same."""
_INSTALL: Final = "pip install 'spaseq[spark]' brings one that does; a cluster needs the same version of Spark"


def check_pyspark(name: str) -> None:
    """Raises `OptionError` if PySpark is not installed, or is older than what `spaseq.spark.NAME` needs."""
    least = _LEAST.get(name, GRAPHS)
    found = pyspark_version()
    if found < least:
        given, needed = (".".join(map(str, version)) for version in (found, least))
        raise OptionError(f"PySpark {given} is installed, and spaseq.spark.{name} needs {needed} or later", _INSTALL)


def pyspark_version() -> tuple[int, ...]:
    """The version of PySpark, (4, 3). `OptionError` if it is not installed."""
    try:
        from pyspark import __version__ as found
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise OptionError("spaseq.spark needs PySpark, which is not installed", _INSTALL) from None
    numbers = re.match(r"(\d+)\.(\d+)", found)
    return GRAPHS if numbers is None else (int(numbers[1]), int(numbers[2]))
