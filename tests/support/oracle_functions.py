"""The functions of CEQL on single values, written from their definitions: times are datetimes, durations timedeltas."""

from __future__ import annotations

import datetime
import ipaddress
import math
import operator
import re
import zoneinfo
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000}
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
TRUTHS = ("CIDR_MATCH", "CONTAINS", "ENDSWITH", "MEMBER", "STARTSWITH")
"""Those that may stand for a condition."""


def call(name: str, arguments: list[Any]) -> Any:
    """The result, None for NULL. COALESCE, CONCAT, NULLIF, ANY and ALL take NULL; the others are NULL then."""
    if name == "COALESCE":
        return next((value for value in arguments if value is not None), None)
    if name == "CONCAT":
        return "".join(value for value in arguments if value is not None)
    if name == "NULLIF":
        return None if arguments[0] == arguments[1] else arguments[0]
    if name.endswith((" ANY", " SOME", " ALL")):
        sign, word = name.split()
        return _any_or_all(sign, word, *arguments)
    return None if None in arguments else FUNCTIONS[name](*arguments)


def _any_or_all(sign: str, word: str, value: Any, found: list[Any] | None) -> bool | None:
    """`value < ANY(list)` is the OR of the comparisons with the elements, ALL the AND; a NULL makes one unknown."""
    if found is None:
        return None
    truths = [None if value is None or each is None else SIGNS[sign](value, each) for each in found]
    if word == "ALL":
        return False if False in truths else None if None in truths else True
    return True if True in truths else None if None in truths else False


def _round(value: Any, digits: int = 0) -> Any:
    unit = Decimal(1).scaleb(-digits)
    return float((Decimal(str(value)) / unit).quantize(Decimal(1), ROUND_HALF_UP) * unit)


def _substring(text: str, start: int, length: int | None = None) -> str:
    places = range(1, len(text) + 1)
    return "".join(text[k - 1] for k in places if k >= start and (length is None or k < start + length))


def _extract(text: str, pattern: str, group: int = 0) -> str | None:
    found = re.search(pattern, text)
    return found[group] if found else None


def time(value: Any, unit: str = "s") -> datetime.datetime:
    """A time of a number in a unit, or of a text."""
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, str):
        found = datetime.datetime.fromisoformat(value)
        return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)
    return EPOCH + datetime.timedelta(microseconds=float(value) * 1_000_000 / UNITS[unit])


def _local(value: Any, zone: str = "UTC") -> datetime.datetime:
    return time(value).astimezone(zoneinfo.ZoneInfo(zone))


def _truncate(unit: str, value: Any, zone: str = "UTC") -> datetime.datetime:
    local = _local(value, zone)
    start = local.replace(minute=0, second=0, microsecond=0)
    match unit:
        case "second":
            start = local.replace(microsecond=0)
        case "minute":
            start = local.replace(second=0, microsecond=0)
        case "day":
            start = start.replace(hour=0)
        case "week":
            start = start.replace(hour=0) - datetime.timedelta(days=local.weekday())
        case "month":
            start = start.replace(hour=0, day=1)
        case "quarter":
            start = start.replace(hour=0, day=1, month=(local.month - 1) // 3 * 3 + 1)
        case "year":
            start = start.replace(hour=0, day=1, month=1)
    return start.astimezone(datetime.UTC)


def _cast(value: Any, kind: str) -> Any:
    if kind == "TEXT":
        return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value).removesuffix(".0")
    if kind == "INTEGER":
        return int(_round(float(value)))
    if kind == "BOOLEAN":
        return value.lower() in ("true", "t", "yes", "1") if isinstance(value, str) else bool(value)
    return float(value) if kind == "NUMBER" else time(value)


def _try_cast(value: Any, kind: str) -> Any:
    try:
        return _cast(value, kind)
    except (TypeError, ValueError):
        return None


def _cidr_match(address: str, *networks: str) -> bool | None:
    try:
        return any(ipaddress.ip_address(address) in ipaddress.ip_network(network) for network in networks)
    except ValueError:
        return None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "LOWER": str.lower,
    "UPPER": str.upper,
    "TRIM": lambda text, characters=" ": text.strip(characters),
    "LTRIM": lambda text, characters=" ": text.lstrip(characters),
    "RTRIM": lambda text, characters=" ": text.rstrip(characters),
    "LENGTH": len,
    "SUBSTRING": _substring,
    "POSITION": lambda part, text: text.find(part) + 1,
    "CONTAINS": lambda whole, part: part in whole,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
    "REPLACE": lambda text, old, new: text.replace(old, new) if old else text,
    "REGEXP_EXTRACT": _extract,
    "ABS": abs,
    "ROUND": _round,
    "FLOOR": math.floor,
    "CEIL": math.ceil,
    "MOD": math.fmod,
    "POWER": lambda base, exponent: float(base) ** exponent,
    "SQRT": lambda value: math.sqrt(value) if value >= 0 else None,
    "LN": lambda value: math.log(value) if value > 0 else None,
    "EXP": math.exp,
    "SIGN": lambda value: (value > 0) - (value < 0),
    "LEAST": min,
    "GREATEST": max,
    "YEAR": lambda value, *zone: _local(value, *zone).year,
    "MONTH": lambda value, *zone: _local(value, *zone).month,
    "DAY": lambda value, *zone: _local(value, *zone).day,
    "HOUR": lambda value, *zone: _local(value, *zone).hour,
    "MINUTE": lambda value, *zone: _local(value, *zone).minute,
    "SECOND": lambda value, *zone: _local(value, *zone).second,
    "WEEKDAY": lambda value, *zone: _local(value, *zone).isoweekday(),
    "DATE_TRUNC": _truncate,
    "TO_TIME": time,
    "CAST": _cast,
    "TRY_CAST": _try_cast,
    "CIDR_MATCH": _cidr_match,
    "MEMBER": lambda value, found: value in found,
}
NAMES = (*FUNCTIONS, "COALESCE", "CONCAT", "NULLIF")
