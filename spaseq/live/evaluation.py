"""The matches of a query over a source: one evaluation, for both languages and for networks of queries.

The consumer pulls: a batch is asked for when the matches of the one before were taken, so a slow consumer makes the
source wait. Events are pushed to a session in the loop's thread.

*At least once.* A state (`spaseq.live.states`) is taken between two batches only, when every match of the earlier ones
was taken and the consumer has come back for the next. So a program that writes a match before it asks for the next one
has written all matches that a saved state covers. After a crash the events behind the state are delivered again, and
their matches found again. Each is given once or more; `match_id` names it, for sinks that drop the second. The source
hears `commit` behind a save alone, so it forgets nothing that may be asked for again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

from spaseq.core.errors import OptionError
from spaseq.core.events.growing import PAUSE, clock_length
from spaseq.core.events.options import Duration, length_of
from spaseq.live.delivery import Delivery
from spaseq.live.states import Saving, State, keep, parts_of, read_state, saving, state_bytes

if TYPE_CHECKING:
    import asyncio  # PERF: 12 ms, and commands, which load the queries' modules, do not wait for anything

M = TypeVar("M")
_END: Final = object()
_SILENT: Final = object()


class Pushed(Protocol[M]):
    """The session, as it is used here; see `spaseq.core.protocols.Session`."""

    @property
    def push(self) -> Callable[..., list[M]]: ...
    def advance_by_clock(self, behind: int) -> list[M]: ...
    def close(self) -> list[M]: ...
    def snapshot(self) -> bytes: ...
    @property
    def counters(self) -> Any: ...
    @property
    def notes(self) -> Sequence[str]: ...


class Alive(Generic[M]):
    """The matches of a query over a source, as they are found: an asynchronous iterator. `Query.alive` makes it.

    It ends when the source ends, with the matches that the end of the stream completes; a source that goes on has no
    end. An error of the source, a late event, `aclose` or a cancellation ends it without these matches. Then the
    stream goes on where a state is opened. Use it in an `async with`, or call
    `aclose`, so that the source is closed.
    """

    def __init__(
        self,
        open_session: Callable[[bytes | None], Pushed[M]],
        source: Any,
        *,
        words: tuple[str, ...] = (),
        once: bool = False,
        state: State = None,
        clock: Duration | None = None,
        save: Saving = None,
        every: Duration = "10s",
    ) -> None:
        """`open_session` gives the session, of a snapshot if there is one. `words`: those of its pushes that a
        `Delivery` may have. `once`: the first match is the last. The others: as of `Query.alive`."""
        from spaseq.live.given import batches_of

        blob = read_state(state)
        snapshot: bytes | None = None
        self._position: Any = None
        if blob is not None:
            snapshot, self._position = parts_of(blob)
        self._source = source
        self._batches: AsyncIterator[Any] = batches_of(source)
        self._seeks = self._position is not None
        if self._seeks and not hasattr(source, "seek"):
            problem = "the state covers a position of its source, and this source cannot go there"
            raise OptionError(problem, f"a {type(source).__name__} has no method seek(position)")
        self._session = open_session(snapshot)
        self._words = words
        self._once = once
        self._clock = None if clock is None else clock_length(clock)
        self._save = saving(save)
        self._every = _interval(every)
        self._saved_at = time.monotonic()
        self._changed = False
        self._found: deque[M] = deque()
        self._read: asyncio.Task[Any] | None = None
        self._running = self._over = self._ended = False

    @property
    def counters(self) -> Any:
        """The counts of the events so far, as of a session; those before the state included."""
        return self._session.counters

    @property
    def notes(self) -> Sequence[str]:
        """As of a session, for the events so far."""
        return self._session.notes

    @property
    def pending(self) -> int:
        """The number of matches of the latest batch that were not taken yet. Without any, a snapshot can be taken."""
        return len(self._found)

    @property
    def position(self) -> Any:
        """The position of the source behind the events so far; None if it has none."""
        return self._position

    def snapshot(self) -> bytes:
        """The state: a snapshot of the session, and the position that it covers, for `alive(source, state=…)`.

        It covers all matches given so far, the latest one too: keep what was made of that before the state is kept.
        Raises `OptionError` while matches are `pending`, which no state would cover, and behind the end of the stream.
        """
        if self._found:
            count = len(self._found)
            problem = f"{count} match{'' if count == 1 else 'es'} of the latest batch {'was' if count == 1 else 'were'}"
            raise OptionError(f"{problem} not taken yet, and no state has them", "take a snapshot if pending is 0")
        return state_bytes(self._session.snapshot(), self._position)

    async def save(self) -> None:
        """Keep the state now, by `save=`, and commit the position. `OptionError` without `save=`; others: as of
        `snapshot`."""
        if self._save is None:
            raise OptionError(
                "nothing says how a state is kept", "alive(source, save=PATH), or a function of its bytes"
            )
        state = self.snapshot()
        await keep(self._save, state)
        self._saved_at, self._changed = time.monotonic(), False
        await self.commit(state)

    async def commit(self, state: bytes) -> None:
        """Tell the source that this state is kept, for programs that keep states by themselves."""
        _, position = parts_of(state)
        commit = getattr(self._source, "commit", None)
        if commit is not None and position is not None:
            await commit(position)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> M:
        if self._running:
            problem = "this evaluation is running: another task waits for its next match"
            raise OptionError(problem, "one task takes the matches; a queue hands them on to several")
        self._running = True
        try:
            while not self._found or self._over:
                if self._over or self._ended:
                    self._over = True
                    await self._stop()
                    raise StopAsyncIteration
                await self._step()
            match = self._found.popleft()
        except StopAsyncIteration:
            raise
        except BaseException:
            self._over = True
            await self._stop()
            raise
        finally:
            self._running = False
        self._over |= self._once
        return match

    async def aclose(self) -> None:
        """End the evaluation, and close the source. The stream has not ended: a snapshot can still be taken."""
        self._over = True
        await self._stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        await self._stop()

    async def _step(self) -> None:
        """Take the next batch, or let time go on while nothing comes."""
        if self._seeks:
            await self._source.seek(self._position)
            self._seeks = False
        if self._save is not None and self._changed and self._seconds_to_save() <= 0:
            await self.save()
        item = await self._next()
        if item is _SILENT:
            if self._clock is not None and getattr(self._source, "idle", True):
                self._found.extend(self._session.advance_by_clock(self._clock))
                self._changed |= bool(self._found)
            return
        if item is _END:
            if self._save is not None and self._changed:
                await self.save()
            self._found.extend(self._session.close())
            self._ended = True
            return
        self._push(item if isinstance(item, Delivery) else Delivery(item))

    def _push(self, delivery: Delivery) -> None:
        words = {"stream": delivery.stream, "type": delivery.type, "time": delivery.time}
        given = {word: name for word, name in words.items() if name is not None}
        for word in given:
            if word not in self._words:
                raise OptionError(f"a delivery names a {word}, and this evaluation takes none", f"leave {word}= out")
        self._found.extend(self._session.push(delivery.events, **given))
        self._position = delivery.position
        self._changed = True

    async def _next(self) -> Any:
        """The next batch, `_END`, or `_SILENT` if none comes before there is something else to do.

        PERF: µs an event, of a push, here, and with a task for each batch. Single events: 24, 31, 47. Batches of 100:
        6.1, 6.2, 7.4. Of 1,000: 1.36, 1.38, 1.50. The machine had other work.
        """
        import asyncio

        if self._clock is None and self._save is None:
            try:
                return await anext(self._batches)
            except StopAsyncIteration:
                return _END
        if self._read is None:  # a task, for it goes on to wait when this does not
            self._read = asyncio.create_task(self._read_one())
        await asyncio.wait({self._read}, timeout=self._pause())
        if not self._read.done():
            return _SILENT
        read, self._read = self._read, None
        return read.result()

    async def _read_one(self) -> Any:
        try:
            return await anext(self._batches)
        except StopAsyncIteration:
            return _END

    def _pause(self) -> float | None:
        """Seconds up to the next thing to do while nothing comes; None if there is none."""
        pauses = [] if self._clock is None else [PAUSE]
        if self._save is not None and self._changed:
            pauses.append(max(0.0, self._seconds_to_save()))
        return min(pauses, default=None)

    def _seconds_to_save(self) -> float:
        """Seconds up to the next save."""
        return self._saved_at + self._every - time.monotonic()

    async def _stop(self) -> None:
        """End the reading, and close the source. An error of a read that this interrupts is raised."""
        import asyncio

        read, self._read = self._read, None
        if read is not None:
            read.cancel()
            await asyncio.wait({read})
        for closed in (self._batches, self._source):
            close = getattr(closed, "aclose", None)
            if close is not None:
                await close()
        if read is not None and not read.cancelled():
            read.result()


def _interval(every: Duration) -> float:
    """Seconds between two saves. Raises `OptionError` for a duration that is none, or negative."""
    length = length_of("every", every)
    if length < 0:
        raise OptionError(f"every {every}: must not be negative", '"10s", or 0 behind each batch')
    return length / 1e9
