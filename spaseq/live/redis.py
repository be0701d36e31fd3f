"""Redis Streams: the entries of a stream, by their ids, and a stream that each record is added to once. The extra
`redis`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from spaseq.core.errors import OptionError
from spaseq.live.delivery import Delivery
from spaseq.live.payloads import ID, Decode, OnBad, events_of, json_bytes, json_lines
from spaseq.live.waiting import Attempts, missing_client

try:
    from redis.asyncio import Redis
    from redis.exceptions import ConnectionError, TimeoutError, WatchError
except ImportError as error:
    raise missing_client("redis", "redis") from error

_WAIT: Final = 500
"""Milliseconds that the server holds a request while nothing comes. It frees the connection then, for other commands.
"""
_WEEK: Final = 7 * 86_400


class RedisSource:
    """The entries of a Redis Stream, in order; a position is the id of one.

    The payload of an entry is its field `field`; without one (None) the fields themselves are the event, as texts.
    Entries are read without a consumer group: the position is in the state alone. Entries that are trimmed before they
    were read are lost; `trim` removes those that a saved state covers, if nobody else reads the stream.
    """

    def __init__(
        self,
        stream: str,
        *,
        url: str = "redis://localhost:6379",
        field: str | None = "data",
        start: str = "0",
        batch: int = 1_000,
        trim: bool = False,
        decode: Decode = json_lines,
        on_bad: OnBad | None = None,
        attempts: int = 10,
        **options: Any,
    ) -> None:
        """`start`: the id to begin behind if there is no state; "$" for what comes from now on. `batch`: the most
        entries that come at once. `attempts`: as of `WebSocketSource`. `options`: those of `Redis.from_url`."""
        self._stream = stream
        self._client = Redis.from_url(url, **options)
        self._field = None if field is None else field.encode()
        self._position = start
        self._batch = batch
        self._trim = trim
        self._decode = decode
        self._on_bad = on_bad
        self._attempts = Attempts(attempts)
        self.idle: bool = False
        """True if the server had no more when it was asked last."""

    async def seek(self, position: Any) -> None:
        """Begin behind an entry. `OptionError` for what is no id."""
        if not isinstance(position, str):
            raise OptionError(f"{position!r} is no position of a Redis Stream", "it is the id of an entry: '1718-0'")
        self._position = position

    async def commit(self, position: Any) -> None:
        """With `trim`, remove the entries in front of this one."""
        if self._trim:
            await self._client.xtrim(self._stream, minid=position, approximate=False)

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self._deliveries()

    async def _deliveries(self) -> AsyncIterator[Delivery]:
        if self._position == "$":  # settled once: what comes between two requests would be lost
            last = await self._client.xrevrange(self._stream, count=1)
            self._position = last[0][0].decode() if last else "0"
        while True:
            try:
                found = await self._client.xread({self._stream: self._position}, count=self._batch, block=_WAIT)
            except (ConnectionError, TimeoutError) as error:
                self.idle = False
                await self._attempts.wait(error)
                continue
            self._attempts.succeed()
            self.idle = not found
            for _, entries in found.items() if isinstance(found, dict) else found:
                flat = entries[0] if entries and isinstance(entries[0], list) else entries
                events: list[Any] = []
                for number, fields in flat:
                    events += self._events(number.decode(), fields)
                self._position = flat[-1][0].decode()
                yield Delivery(events, self._position)

    def _events(self, number: str, fields: dict[bytes, bytes]) -> list[Any]:
        if self._field is None:
            return [{name.decode(): value.decode() for name, value in fields.items()}]
        payload = fields.get(self._field, b"")
        return events_of(payload, self._decode, self._on_bad, f"{self._stream}, entry {number}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class RedisSink:
    """A Redis Stream that each record becomes an entry of, as JSON in the field `data`. It knows ids.

    An id is a key beside the stream, which expires behind `known` seconds, a week if not given. The entry and the key
    are written in one transaction. An entry with an id has it as the field `match_id`.
    """

    def __init__(
        self,
        stream: str,
        *,
        url: str = "redis://localhost:6379",
        field: str = "data",
        known: int = _WEEK,
        **options: Any,
    ) -> None:
        self._stream = stream
        self._client = Redis.from_url(url, **options)
        self._field = field
        self._known = known

    async def send(self, record: Mapping[str, Any], *, id: str | None = None) -> None:
        """Add the record, unless its id is known. Raises the errors of `redis`."""
        fields: dict[Any, Any] = {self._field: json_bytes(record)}
        if id is None:
            await self._client.xadd(self._stream, fields)
            return
        key = f"{self._stream}:{ID}:{id}"
        async with self._client.pipeline(transaction=True) as pipe:
            while True:
                try:
                    await pipe.watch(key)
                    if await pipe.exists(key):
                        return
                    pipe.multi()
                    pipe.set(key, 1, ex=self._known)
                    pipe.xadd(self._stream, {**fields, ID: id})
                    await pipe.execute()
                    return
                except WatchError:  # another one sends it at this moment
                    continue

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
