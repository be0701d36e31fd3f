"""The functions of lists and of networks: MEMBER, which is `x IN list`, `x < ANY(list)`, `x < ALL(list)`, CIDR_MATCH.

A list has numbers or texts. For MEMBER one that is missing is equal to nothing. ANY is the OR of the comparisons with
all elements and ALL their AND, three-valued, as in SQL. Of an empty list ANY is false and ALL is true, even for NULL.
Of a list that is NULL both are NULL.

A text that is no address of the internet is in no network:
CIDR_MATCH is NULL of it. An address of version 4 is in no network of version 6, and the other way round.
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
from typing import Any, Final

from ceql.operators.function import Function
from ceql.operators.values import ELEMENTS, compare, kind_of
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.errors import EventError

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@functools.lru_cache(4096)
def _network(text: str) -> _Network:
    """`10.0.0.0/8`; `10.1.2.3/8` is the same network. `EventError` if it is none."""
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise EventError(f"{text!r} is no network", hint="for example '10.0.0.0/8', '2001:db8::/32'") from None


def _cidr_match(address: str, *networks: str) -> bool | None:
    found = [_network(network) for network in networks]
    try:
        parsed = ipaddress.ip_address(address.strip())
    except ValueError:
        return None
    return any(parsed in network for network in found)


def _check_networks(address: str | None, *networks: str | None) -> None:
    for network in networks:
        if network is not None:
            _network(network)


def is_member(value: Any, found: tuple[Any, ...]) -> bool:
    """True if an element of a list is equal to a value. `EventError` if the elements are of another kind."""
    first = next((each for each in found if each is not None), value)
    compare("=", value, first)
    return value in found


def _row(symbol: str, quantifier: str) -> Function:
    """`x < ANY(list)`, `x < ALL(list)`; `settles` is the truth of one comparison that decides the whole."""
    settles, holds = quantifier == "ANY", COMPARISONS[symbol].holds

    def work(value: Any, found: tuple[Any, ...] | None) -> bool | None:
        if found is None:
            return None
        if None not in found and value is not None and kind_of(value) == ELEMENTS[kind_of(found)]:
            # PERF: 1.4 us an event for four numbers; 2.3 us if each comparison looks at kinds.
            truths = {*map(holds, itertools.repeat(value), found)}
        else:
            truths = {compare(symbol, value, each) for each in found}
        if settles in truths:
            return settles
        return None if None in truths else not settles

    sample = f"x.price {symbol} {quantifier}(x.history)"
    return Function(f"{symbol} {quantifier}", ("any", "list/texts"), "truth", work, takes_null=True, sample=sample,
                    symbol=symbol, quantifier=quantifier)  # fmt: skip


SETS: Final = (
    Function("CIDR_MATCH", ("text", "text"), "truth", _cidr_match, repeats=True, check=_check_networks,
             sample="CIDR_MATCH(x.address, '10.0.0.0/8')"),
    Function("MEMBER", ("number/text", "list/texts"), "truth", is_member, sample="MEMBER(x.price, x.history)"),
    *(_row(symbol, quantifier) for quantifier in ("ANY", "ALL") for symbol in COMPARISONS),
)  # fmt: skip
