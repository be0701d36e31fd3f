"""Outputs: each result comes out whole, whatever ends a command, a full disk included.

A format that can be read only once it is complete is written beside its place and renamed
(`spaseq.core.files.beside`). Until then, and if the file cannot be written, the name stands for the earlier file.
Other formats are written in place; a regular file that cannot take more is cut back to its last whole result.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, BinaryIO, Final

from spaseq.core.errors import OptionError, SpaseqError
from spaseq.core.measure import visible
from spaseq.tools.command.formats import TABLE, Format
from spaseq.tools.command.lines import is_cut, moves, whole_lines
from spaseq.tools.command.process import given_up, unbroken

_BLOCK: Final = 1 << 16
"""Characters that are written at once."""
_STANDARD: Final = (None, "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
"""The names of standard output."""


def _as_json(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _as_rdf(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    codes = map(ord, error.object[error.start : error.end])
    return "".join(f"\\u{code:04X}" if code < 1 << 16 else f"\\U{code:08X}" for code in codes), error.end


codecs.register_error("spaseq-json", _as_json)
codecs.register_error("spaseq-rdf", _as_rdf)


@contextlib.contextmanager
def opened(path: str | None, form: Format) -> Iterator[Any]:
    """Open the file that the writer of a format gets, standard output for None and `-`; at the end it is flushed.

    `OptionError` if the file cannot be opened, `OSError` with its name if it cannot be written.
    """
    if path is None or (path in _STANDARD and not form.binary):
        with _whole(sys.stdout, form) as out:
            yield out
        return
    try:
        with contextlib.ExitStack() as stack:
            file = _enter(stack, path, form)
            yield file if form.binary else stack.enter_context(_whole(file, form))
    except OSError as error:
        if not isinstance(error, BrokenPipeError) and (error.filename is None or error.filename2 is not None):
            error.filename = path
            if form.whole:
                error.add_note("no result was written")
        raise


def _enter(stack: contextlib.ExitStack, path: str, form: Format) -> Any:
    try:
        if not form.whole:
            return stack.enter_context(_in_place(path))
        file = stack.enter_context(_beside(path))
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None
    return file if form.binary else stack.enter_context(_as_text(file))


@contextlib.contextmanager
def _beside(path: str) -> Iterator[BinaryIO]:
    """`write_beside`; the file takes its place also if an interrupt, a limit or a wrong input ends the results, as long
    as there are some."""
    from spaseq.core.files.beside import write_beside

    ended: BaseException | None = None
    with write_beside(path) as file:
        try:
            yield file
        except (KeyboardInterrupt, SpaseqError, MemoryError) as error:
            if given_up() or _is_empty(file):
                raise
            ended = error
    if ended is not None:
        raise ended


def _is_empty(file: BinaryIO) -> bool:
    file.flush()
    return os.fstat(file.fileno()).st_size == 0


@contextlib.contextmanager
def _in_place(path: str) -> Iterator[Any]:
    with open(path, "w", encoding="utf-8", newline="") as file:
        yield whole_lines(file)


@contextlib.contextmanager
def _as_text(file: BinaryIO) -> Iterator[Any]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        yield whole_lines(text)
    finally:
        text.detach()


class Whole:
    """A file that gets texts in blocks. A text that was given to `write` comes out whole, whatever ends the command,
    unless an interrupt has to wait too long for the reader: then the others are dropped. `cut`: in the middle of a
    line."""

    cut = False

    def __init__(self, file: Any, form: Format) -> None:
        self._file = file
        self._waiting: list[str] = []
        self._size = 0
        self._lines = 0
        self._failed = False
        self._whole = form.whole
        self._cleans = form is not TABLE and (form.people or file.isatty())  # a table does it itself
        encoding = codecs.lookup(getattr(file, "encoding", None) or "utf-8").name
        plain = encoding == "utf-8" or form.letters in ("strict", "backslashreplace")
        self._encoding = encoding if plain else "ascii"
        self._letters = form.letters
        self._place = _regular(file, self._encoding)

    @property
    def columns(self) -> int | None:
        """The width of the terminal that is written to; None if the output is no terminal."""
        return shutil.get_terminal_size().columns if self._file.isatty() else None

    def isatty(self) -> bool:
        return bool(self._file.isatty())

    def write(self, text: str) -> None:
        self._waiting.append(text)
        self._size += len(text)
        if self._size >= _BLOCK:
            self._pass_on()

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def _pass_on(self) -> None:
        with self._unbroken():
            waiting, self._waiting, self._size = self._waiting, [], 0
            if self._failed:  # later results would stand behind a gap
                return
            if self._cleans:
                waiting = [visible(text.replace("\r\n", "\n")) for text in waiting]
            try:
                self._put(waiting)
            except OSError as error:
                self._failed = True
                if self._place is not None and not self._whole:
                    error.add_note(f"{self._lines:,} lines were written, the results behind them are missing")
                raise
            except UnicodeEncodeError:
                self._failed = not self._whole
                raise

    def _put(self, texts: Sequence[str]) -> None:
        wrong: UnicodeEncodeError | None = None
        try:
            data = self._encode(texts)
        except UnicodeEncodeError:
            texts, wrong = self._encodable(texts)
            data = self._encode(texts)
        if self._place is None:
            self._file.write(data.decode(self._encoding))
        else:
            self._write_in_place(self._place, data, texts)
        if wrong is not None:
            raise wrong

    def _encode(self, texts: Iterable[str]) -> bytes:
        return "".join(texts).encode(self._encoding, self._letters)

    def _encodable(self, texts: Sequence[str]) -> tuple[Sequence[str], UnicodeEncodeError | None]:
        """The texts before the first that the encoding of the file lacks a letter of, and the error about that."""
        for place, text in enumerate(texts):
            try:
                self._encode([text])
            except UnicodeEncodeError as error:
                return texts[:place], error
        return texts, None

    def _write_in_place(self, place: int, data: bytes, texts: Sequence[str]) -> None:
        """Write `data`, which is made of texts. If not all can be written, the file ends with the last whole one."""
        self._file.flush()
        done = 0
        try:
            while done < len(data):
                done += os.write(place, data[done:])
        except BaseException:
            ends = accumulate(len(self._encode([text])) for text in texts)
            whole = max((end for end in ends if end <= done), default=0)
            _cut_back(place, done - whole)
            done = whole
            raise
        finally:
            self._lines += data.count(b"\n", 0, done)

    def flush(self) -> None:
        self._pass_on()
        with self._unbroken():
            self._file.flush()

    @contextlib.contextmanager
    def _unbroken(self) -> Iterator[None]:
        try:
            with unbroken(lambda: moves(self._file)):
                yield
        except KeyboardInterrupt:
            if given_up():  # whatever comes would stand behind a line that may be cut off
                Whole.cut = is_cut(self._file)
                discard(self._file)
            raise


@contextlib.contextmanager
def _whole(file: Any, form: Format) -> Iterator[Whole]:
    out = Whole(file, form)
    try:
        yield out
    finally:
        out.flush()


def discard(file: Any) -> None:
    """Redirect a file, with its buffered output, to nowhere, so that Python does not try to write that again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


def _regular(file: Any, encoding: str) -> int | None:
    """The number of a regular file to which texts can be written one by one as bytes; None if it is something else."""
    try:
        number = int(file.fileno())
        regular = stat.S_ISREG(os.fstat(number).st_mode)
    except (AttributeError, OSError, ValueError):  # closed, or none
        return None
    in_pieces = "".encode(encoding) == b""  # without a byte order mark
    return number if regular and in_pieces else None


def _cut_back(place: int, size: int) -> None:
    """Remove the last bytes that were written, unless something else was written behind them."""
    with contextlib.suppress(OSError):
        end = os.lseek(place, 0, os.SEEK_CUR)
        if size and end == os.fstat(place).st_size:
            os.ftruncate(place, end - size)
            os.lseek(place, end - size, os.SEEK_SET)
