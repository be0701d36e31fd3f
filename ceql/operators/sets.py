"""The functions of lists and of networks: MEMBER, which is `x IN list`, and CIDR_MATCH.

A list has numbers; one that is missing is equal to nothing. A text that is no address of the internet is in no network:
CIDR_MATCH is NULL of it. An address of version 4 is in no network of version 6, and the other way round.
"""

from __future__ import annotations

import functools
import ipaddress
from typing import Any, Final

from ceql.operators.function import Function
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


def _member(value: Any, found: tuple[float, ...]) -> bool:
    return value in found


SETS: Final = (
    Function("CIDR_MATCH", ("text", "text"), "truth", _cidr_match, repeats=True, check=_check_networks,
             sample="CIDR_MATCH(x.address, '10.0.0.0/8')"),
    Function("MEMBER", ("number", "list"), "truth", _member, sample="MEMBER(x.price, x.history)"),
)  # fmt: skip
