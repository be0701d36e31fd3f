"""The versions of PySpark that this package works with."""

from __future__ import annotations

import re
from typing import Final

from spaseq.core.errors import OptionError

SUPPORTED: Final = ">=4.2,<4.4"
"""The versions that are tested, as pyproject.toml has them. Later ones are tried all the same."""
_LEAST: Final = (4, 2)
_INSTALL: Final = "pip install 'spaseq[spark]' brings one that does; a cluster needs the same version of Spark"


def check_pyspark() -> None:
    """Raises `OptionError` if PySpark is not installed, or is older than what this package needs."""
    try:
        from pyspark import __version__ as found
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise OptionError("spaseq.spark needs PySpark, which is not installed", _INSTALL) from None
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < _LEAST:
        raise OptionError(f"PySpark {found} is installed, and spaseq.spark works with pyspark{SUPPORTED}", _INSTALL)
