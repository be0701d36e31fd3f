"""The version of both packages; `pyproject.toml` reads it here."""

from __future__ import annotations

from typing import Final

__all__ = ["VERSION"]

VERSION: Final = "0.1.0"
