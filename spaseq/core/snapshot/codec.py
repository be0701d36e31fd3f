"""Plain values as bytes: None, bool, int, float, str, bytes, tuples, lists, sets, dicts, arrays, and named kinds.

Values are written by column, because a snapshot has many of the same type. A list of numbers is one array, a list of
pairs is two columns, and a list of dicts with the same keys is one column for each key. Only a list of different types
has a byte for each element with its type. A single value is a column of length 1. So the work for each value is done by
numpy and built-in functions, not in a loop here. Whole numbers take as few bytes as their range needs. Every text is
written once, and referred to by number.

Lengths are checked against the size of the data before memory is allocated: every value of a column takes at least a
byte. Damaged data raises `ValueError`, `TypeError` (elements of sets and keys of dicts that cannot be hashed), or the
error of a `Kind`'s `value` function. `spaseq.core.snapshot.unseal` turns all of these into one error.

Rejected: pickle and marshal (run code, or crash, on made-up data); JSON (no arrays, tuples, sets). Also CBOR and
msgpack: a dependency that writes value by value, has no arrays or columns, and leaves the checks to us.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

DEPTH: Final = 64
"""The depth to which values may be nested."""
_MIXED: Final = 255
_NONE, _BOOL, _INT, _FLOAT, _TEXT, _BYTES, _TUPLE, _LIST, _SET, _FROZENSET, _DICT, _ARRAY, _SCALAR, _KIND = range(14)
_BIG, _ALIKE, _KEYED = 20, 21, 22
"""Further forms: whole numbers beyond int64, tuples of one length, dicts with the same keys in the same order."""
_CODES: Final = {
    type(None): _NONE, bool: _BOOL, int: _INT, float: _FLOAT, str: _TEXT, bytes: _BYTES, tuple: _TUPLE, list: _LIST,
    set: _SET, frozenset: _FROZENSET, dict: _DICT, np.ndarray: _ARRAY,
}  # fmt: skip
_CONTAINERS: Final[dict[int, Callable[[Iterable[Any]], Any]]] = {
    _TUPLE: tuple, _LIST: list, _SET: set, _FROZENSET: frozenset,
}  # fmt: skip
_DTYPES: Final = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
_TIMES: Final = [f"{kind}8[{unit}]" for kind in "Mm" for unit in ("s", "ms", "us", "ns", "D", "h", "m")]
_ARRAYS: Final = {np.dtype(name): number for number, name in enumerate(_DTYPES + _TIMES)}
_OF_NUMBER: Final = list(_ARRAYS)
_MOST: Final = (1 << 63) - 1
_PACKED: Final = _MOST - (1 << 32)
"""The greatest minimum from which differences of up to four bytes may be counted without leaving int64."""
_HEAD: Final = struct.Struct("<qB")
_U64: Final = struct.Struct("<Q")


class Unwritable(TypeError):
    """A value of a type that the codec does not know."""


class Kind(NamedTuple):
    """The text form of values of a further type. `name` identifies the kind in the data. `value` is the inverse of
    `text`; for any text, also of a forged snapshot, it must do nothing but make a value or raise an error.
    """

    name: str
    types: tuple[type, ...]
    text: Callable[[Any], str]
    value: Callable[[str], Any]


def _moment_text(value: datetime.datetime) -> str:
    zone = value.tzinfo
    if isinstance(zone, ZoneInfo) and zone.key is not None:
        return f"{value.replace(tzinfo=None).isoformat()} {zone.key} {value.fold}"
    return value.isoformat()


def _moment(text: str) -> datetime.datetime:
    if " " not in text:
        return datetime.datetime.fromisoformat(text)
    plain, key, fold = text.split(" ")
    return datetime.datetime.fromisoformat(plain).replace(tzinfo=ZoneInfo(key), fold=int(fold))


def _duration_text(value: datetime.timedelta) -> str:
    return f"{value.days} {value.seconds} {value.microseconds}"


def _duration(text: str) -> datetime.timedelta:
    return datetime.timedelta(*map(int, text.split(" ")))


_BUILT_IN: Final = (
    Kind("decimal", (Decimal,), str, Decimal),
    Kind("datetime", (datetime.datetime,), _moment_text, _moment),
    Kind("date", (datetime.date,), datetime.date.isoformat, datetime.date.fromisoformat),
    Kind("time", (datetime.time,), datetime.time.isoformat, datetime.time.fromisoformat),
    Kind("timedelta", (datetime.timedelta,), _duration_text, _duration),
)


def encode(value: Any, kinds: Sequence[Kind] = ()) -> bytes:
    """`value` as bytes. `Unwritable` for a value that is neither plain nor of a type of `kinds`; subclasses of these
    types are not written either."""
    writer = _Writer((*_BUILT_IN, *kinds))
    writer.column([value], 0)
    tree = writer.parts
    writer.parts = []
    writer.texts_themselves()
    return b"".join([_U64.pack(sum(map(len, tree))), *tree, *writer.parts])


def decode(data: bytes | memoryview, kinds: Sequence[Kind] = ()) -> Any:
    """The inverse of `encode`. Raises ValueError or TypeError for data that `encode` did not write; arrays are
    copies."""
    reader = _Reader(memoryview(data), (*_BUILT_IN, *kinds))
    (length,) = _U64.unpack(reader.take(8))
    tree = reader.take(length)
    reader.read_texts()
    _require(reader.at == len(reader.data))
    reader.data, reader.at = tree, 0
    (value,) = reader.column(1, 0)
    _require(reader.at == len(tree))
    return value


def _require(holds: bool | np.bool_) -> None:
    if not holds:
        raise ValueError("the data is not what was written")


class _Writer:
    """Writes columns of values. `parts`: the bytes written so far, in pieces."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.parts: list[Any] = []
        self._codes = dict(_CODES)
        self._kinds: dict[int, Kind] = {}
        for number, kind in enumerate(kinds):
            self._kinds[number] = kind
            self._codes |= dict.fromkeys(kind.types, _KIND + 256 * number)
        self._numbers: dict[str, int] = {}

    def column(self, values: Sequence[Any], depth: int) -> None:
        """Writes values of any types. Their count is not written: the reader knows it."""
        if depth > DEPTH:
            raise Unwritable(f"values nested more than {DEPTH} deep")
        types = set(map(type, values))
        codes = {of: self._code(of) for of in types}
        several = sorted(set(codes.values()))
        if len(several) == 1:
            self._uniform(several[0], values, depth)
            return
        if len(several) > 250:
            raise Unwritable("values of more than 250 types")
        place = {of: several.index(code) for of, code in codes.items()}
        self.parts.append(bytes((_MIXED, len(several))))
        self.parts.append(bytes([place[type(value)] for value in values]))
        for number, code in enumerate(several):
            self._uniform(code, [value for value in values if place[type(value)] == number], depth)

    def _code(self, of: type) -> int:
        code = self._codes.get(of)
        if code is None:
            if issubclass(of, np.generic):
                code = self._codes[of] = _SCALAR
            else:
                raise Unwritable(f"a snapshot cannot hold a {of.__name__}")
        return code

    def _uniform(self, code: int, values: Sequence[Any], depth: int) -> None:
        match code & 255:
            case 0:
                self.parts.append(bytes(1 + len(values)))
            case 1:
                self._raw(_BOOL, np.array(values, bool))
            case 2:
                self._ints(values)
            case 3:
                self._raw(_FLOAT, np.array(values, np.float64))
            case 4:
                self.parts.append(bytes((_TEXT,)))
                self._texts(values)
            case 5:
                self.parts.append(bytes((_BYTES,)))
                self._pack(np.fromiter(map(len, values), np.int64, len(values)))
                self.parts.extend(values)
            case 6 | 7 | 8 | 9 as form:
                self._containers(form, values, depth)
            case 10:
                self._dicts(values, depth)
            case 11 | 12 as form:
                self.parts.append(bytes((form,)))
                for value in values:
                    self._array(np.asarray(value))
            case _:
                number = code >> 8
                self.parts.append(bytes((_KIND,)))
                self._texts([self._kinds[number].name])
                self._texts(list(map(self._kinds[number].text, values)))

    def _raw(self, form: int, values: np.ndarray) -> None:
        self.parts += [bytes((form,)), values.tobytes()]

    def _ints(self, values: Sequence[int]) -> None:
        try:
            numbers = np.array(values, np.int64)
        except OverflowError:
            bodies = [v.to_bytes((v.bit_length() + 8) // 8, "little", signed=True) for v in values]
            self.parts.append(bytes((_BIG,)))
            self._pack(np.fromiter(map(len, bodies), np.int64, len(bodies)))
            self.parts.extend(bodies)
            return
        self.parts.append(bytes((_INT,)))
        self._pack(numbers)

    def _pack(self, numbers: np.ndarray) -> None:
        """Writes int64 (n,) as differences to the minimum, in as few bytes as the greatest difference needs."""
        low = int(numbers.min()) if len(numbers) else 0
        reach = int(numbers.max()) - low if len(numbers) else 0
        width = 1 if reach < 1 << 8 else 2 if reach < 1 << 16 else 4 if reach < 1 << 32 else 8
        if width == 8 or low > _PACKED:
            low, width = 0, 8
        body = numbers if width == 8 else (numbers - low).astype(f"<u{width}")
        self.parts += [_HEAD.pack(low, width), body.tobytes()]

    def _texts(self, values: Sequence[str]) -> None:
        numbers = self._numbers
        fresh = [text for text in dict.fromkeys(values) if text not in numbers]
        numbers.update(zip(fresh, range(len(numbers), len(numbers) + len(fresh)), strict=True))
        self._pack(np.fromiter(map(numbers.__getitem__, values), np.int64, len(values)))

    def texts_themselves(self) -> None:
        """Writes the texts that values refer to by number."""
        texts = list(self._numbers)
        body = "".join(texts).encode("utf-8", "surrogatepass")
        self.parts += [_U64.pack(len(texts)), _U64.pack(len(body))]
        self._pack(np.fromiter(map(len, texts), np.int64, len(texts)))
        self.parts.append(body)

    def _containers(self, form: int, values: Sequence[Any], depth: int) -> None:
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        width = int(lengths[0])
        # Several tuples of one length are written by column; a single tuple as one column of its elements.
        if form == _TUPLE and len(values) > 1 and 0 < width <= 32 and (lengths == width).all():
            self.parts.append(bytes((_ALIKE, width)))
            for column in zip(*values, strict=True):
                self.column(column, depth + 1)
            return
        self.parts.append(bytes((form,)))
        self._pack(lengths)
        self._rest(list(chain.from_iterable(values)), depth)

    def _dicts(self, values: Sequence[dict[Any, Any]], depth: int) -> None:
        keys = list(values[0])
        if len(values) > 1 and keys and all(map(keys.__eq__, map(list, values))):
            self.parts.append(bytes((_KEYED,)))
            self._pack(np.array([len(keys)], np.int64))
            self.column(keys, depth + 1)
            for key in keys:
                self.column([value[key] for value in values], depth + 1)
            return
        self.parts.append(bytes((_DICT,)))
        self._pack(np.fromiter(map(len, values), np.int64, len(values)))
        self._rest(list(chain.from_iterable(values)), depth)
        self._rest([one for value in values for one in value.values()], depth)

    def _rest(self, flat: Sequence[Any], depth: int) -> None:
        if flat:
            self.column(flat, depth + 1)

    def _array(self, value: np.ndarray) -> None:
        number = _ARRAYS.get(value.dtype.newbyteorder("="))
        if number is None or value.ndim > 8:
            raise Unwritable(f"a snapshot cannot hold an array of {value.dtype}")
        self.parts.append(bytes((number, value.ndim)) + b"".join(map(_U64.pack, value.shape)))
        if value.dtype == np.int64:
            self._pack(np.ascontiguousarray(value).reshape(-1))
        else:
            self.parts.append(value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes())


class _Reader:
    """Reads what `_Writer` wrote. `at`: the number of bytes of `data` that have been read."""

    def __init__(self, data: memoryview, kinds: Sequence[Kind]) -> None:
        self.data = data
        self.at = 0
        self._kinds = {kind.name: kind for kind in kinds}
        self._texts: list[str] = []
        self._values: dict[str, dict[int, Any]] = {}

    def take(self, count: int) -> memoryview:
        """The next `count` bytes."""
        _require(0 <= count <= len(self.data) - self.at)
        self.at += count
        return self.data[self.at - count : self.at]

    def read_texts(self) -> None:
        """Reads the texts that `texts_themselves` wrote."""
        (count,), (size,) = _U64.unpack(self.take(8)), _U64.unpack(self.take(8))
        lengths = self._lengths(count)
        body = str(self.take(size), "utf-8", "surrogatepass")
        _require(int(lengths.sum()) == len(body))
        ends = np.cumsum(lengths).tolist()
        self._texts = [body[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]

    def column(self, count: int, depth: int) -> list[Any]:
        """The next `count` values."""
        _require(depth <= DEPTH)
        form = self.take(1)[0]
        if form != _MIXED:
            return self._uniform(form, count, depth)
        several = self.take(1)[0]
        places = np.frombuffer(self.take(count), np.uint8)
        counts = np.bincount(places, minlength=several).tolist()
        _require(len(counts) == several)
        parts = [iter(self._uniform(self.take(1)[0], n, depth)) for n in counts]
        return [next(parts[place]) for place in places.tolist()]

    def _uniform(self, form: int, count: int, depth: int) -> list[Any]:
        match form:
            case 0:
                _require(not any(self.take(count)))
                return [None] * count
            case 1:
                values = np.frombuffer(self.take(count), np.uint8)
                _require(values.size == 0 or values.max() <= 1)
                return list(values.view(bool).tolist())
            case 2:
                return list(self._unpack(count).tolist())
            case 3:
                return list(np.frombuffer(self.take(8 * count), np.float64).tolist())
            case 4:
                return list(map(self._texts.__getitem__, self._text_numbers(count).tolist()))
            case 5:
                return [bytes(self.take(n)) for n in self._lengths(count).tolist()]
            case 6 | 7 | 8 | 9:
                return self._containers(_CONTAINERS[form], count, depth)
            case 10:
                return self._dicts(count, depth)
            case 11:
                return [self._array() for _ in range(count)]
            case 12:
                return [self._array()[()] for _ in range(count)]
            case 13:
                return self._read_kind(count)
            case 20:
                return [int.from_bytes(self.take(n), "little", signed=True) for n in self._lengths(count).tolist()]
            case 21:
                width = self.take(1)[0]
                _require(width > 0)
                return list(zip(*(self.column(count, depth + 1) for _ in range(width)), strict=True))
            case 22:
                return self._read_dicts(count, depth)
        raise ValueError(f"no form {form}")

    def _unpack(self, count: int) -> np.ndarray:
        """The next `count` whole numbers: int64 (count,)."""
        low, width = _HEAD.unpack(self.take(_HEAD.size))
        if width == 8:
            return np.frombuffer(self.take(8 * count), "<i8").astype(np.int64)
        _require(width in (1, 2, 4) and low <= _PACKED)
        return np.frombuffer(self.take(width * count), f"<u{width}").astype(np.int64) + low

    def _lengths(self, count: int) -> np.ndarray:
        lengths = self._unpack(count)
        _require(not len(lengths) or (lengths.min() >= 0 and float(lengths.sum(dtype=np.float64)) <= 2.0**53))
        return lengths

    def _text_numbers(self, count: int) -> np.ndarray:
        numbers = self._unpack(count)
        _require(not len(numbers) or (numbers.min() >= 0 and numbers.max() < len(self._texts)))
        return numbers

    def _containers(self, make: Callable[[Iterable[Any]], Any], count: int, depth: int) -> list[Any]:
        lengths = self._lengths(count)
        flat = self._rest(int(lengths.sum()), depth)
        ends = np.cumsum(lengths).tolist()
        found = [make(flat[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]
        _require(sum(map(len, found)) == len(flat))  # no set has an element twice
        return found

    def _dicts(self, count: int, depth: int) -> list[Any]:
        lengths = self._lengths(count)
        total = int(lengths.sum())
        pairs = list(zip(self._rest(total, depth), self._rest(total, depth), strict=True))
        ends = list(accumulate(lengths.tolist()))
        found = [dict(pairs[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]
        _require(sum(map(len, found)) == total)
        return found

    def _read_dicts(self, count: int, depth: int) -> list[Any]:
        (width,) = self._lengths(1).tolist()
        _require(0 < width <= len(self.data))
        keys = self.column(width, depth + 1)
        _require(len(set(keys)) == width)
        columns = [self.column(count, depth + 1) for _ in keys]
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    def _rest(self, count: int, depth: int) -> list[Any]:
        return self.column(count, depth + 1) if count else []

    def _array(self) -> np.ndarray:
        number, dimensions = self.take(2)
        _require(number < len(_OF_NUMBER) and dimensions <= 8)
        shape = [_U64.unpack(self.take(8))[0] for _ in range(dimensions)]
        size = 1
        for length in shape:
            size *= length
        dtype = _OF_NUMBER[number]
        if dtype == np.int64:
            _require(size <= len(self.data))
            return self._unpack(size).reshape(shape)
        values = np.frombuffer(self.take(size * dtype.itemsize), dtype.newbyteorder("<"))
        if dtype.kind == "b":
            _require(not values.view(np.uint8).size or values.view(np.uint8).max() <= 1)
        return values.astype(dtype).reshape(shape)

    def _read_kind(self, count: int) -> list[Any]:
        name = self._texts[int(self._text_numbers(1)[0])]
        kind = self._kinds.get(name)
        if kind is None:
            raise ValueError(f"no kind {name}")
        known = self._values.setdefault(name, {})
        numbers = self._text_numbers(count).tolist()
        for number in set(numbers) - known.keys():
            known[number] = kind.value(self._texts[number])
        return list(map(known.__getitem__, numbers))
