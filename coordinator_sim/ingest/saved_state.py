"""The state of an import as typed data in a file, and back: nothing in a file is ever run.

A trace may come from anywhere. The file is MessagePack of numbers, texts, bytes and arrays. What is
an object names its class by its number in a list in the file; a class is one of those that the
modules below define to hold data, and is made without a call of its `__init__`. The types of its
fields are checked. What a file holds beyond that is refused with one line.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import cache, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from msgspec import Struct

from coordinator_sim import __version__
from coordinator_sim.errors import DataError

_MARK: Final = b"coordinator-sim import state "
_REMEDY: Final = "ingest all files together, without --append-to"
_MODULES: Final = tuple(
    f"coordinator_sim.{room}.{name}"
    for room, names in {
        "ingest": "ahead imports kinds ordering precedence same_files segments skew stages streams "
        "writing",
        "logtext.reading": "incarnations repeats summary",
        "runs": "ownership parquet run_directory",
        "trace": "batches digest epoch_groups epoch_members events exchange exchanges "
        "history offsets_topic schema sources_read",
        "kafka": "api_keys errors states",
        "log.format": "salvage",
        "messages": "consumer_group_records group_records heartbeat join_group leave_group "
        "offset_commit offset_fetch records share_group_records streams_group_records sync_group",
    }.items()
    for name in names.split()
)
"""Modules that define the classes of an import's state."""
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})
_TUPLE, _LIST, _DICT, _COUNTER, _SET, _FROZENSET, _DEQUE = range(7)
_ENUM, _STRUCT, _OBJECT, _AGAIN, _ARRAY, _PATH, _RANGE = range(7, 14)
_KINDS: Final = "biufb"
"""Kinds of the types of arrays: booleans and numbers."""
_DAMAGES: Final = (
    *(TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError),
    msgspec.MsgspecError,
)
"""What data raises that is not what it should be."""


@cache
def _classes() -> dict[str, type]:
    """The classes of an import's state by their names."""
    return {
        f"{module}.{each.__qualname__}": each
        for module in _MODULES
        for each in vars(import_module(module)).values()
        if isinstance(each, type) and each.__module__ == module
    }


class _Encoder:
    """Makes data of one value; what is referred to twice and may change is written once."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        # The objects are held, so that no other one gets their id.
        self._numbers: dict[int, tuple[int, object]] = {}

    def encode(self, value: Any) -> Any:  # noqa: ANN401 - any value of an import
        """Return a value as numbers, texts, bytes and lists.

        Raises:
            TypeError: it is of a class that is no part of an import's state.
        """
        kind = type(value)
        if kind in _PLAIN:
            return value
        if isinstance(value, Struct):
            return [_STRUCT, self._class(kind), *self.each(msgspec.structs.astuple(value))]
        if isinstance(value, Enum):
            return [_ENUM, self._class(kind), value.value]
        if isinstance(value, np.generic):
            return value.item()
        unchanging = _UNCHANGING.get(kind)
        if unchanging is not None:
            return unchanging(self, value)
        known = self._numbers.get(id(value))
        if known is not None:
            return [_AGAIN, known[0]]
        self._numbers[id(value)] = len(self._numbers), value
        return self._changeable(kind, value)

    def _changeable(self, kind: type, value: Any) -> list[Any]:  # noqa: ANN401 - as above
        if kind is list:
            return [_LIST, *self.each(value)]
        if kind in (dict, Counter):
            tag = _DICT if kind is dict else _COUNTER
            return [tag, *self.each(chain.from_iterable(value.items()))]
        if kind is set:
            return [_SET, *self.sorted(value)]
        if kind is deque:
            return [_DEQUE, *self.each(value)]
        if kind is np.ndarray and value.dtype.kind in _KINDS and value.ndim == 1:
            return [_ARRAY, value.dtype.str, value.tobytes()]
        return [_OBJECT, self._class(kind), self.encode(_state_of(value))]

    def each(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield each value as `encode` returns it."""
        # A call for each number and text would take half of the time.
        return (value if type(value) in _PLAIN else self.encode(value) for value in values)

    def sorted(self, values: Any) -> list[Any]:  # noqa: ANN401 - a set
        """The members of a set in an order that no hash seed changes."""
        return sorted(map(self.encode, values), key=msgspec.msgpack.encode)

    def _class(self, kind: type) -> int:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name not in _classes():
            raise TypeError(f"{name} is no part of an import's state")
        return self.names.setdefault(name, len(self.names))


_UNCHANGING: Final[dict[type, Callable[[_Encoder, Any], list[Any]]]] = {
    tuple: lambda encoder, value: [_TUPLE, *encoder.each(value)],
    frozenset: lambda encoder, value: [_FROZENSET, *encoder.sorted(value)],
    range: lambda _encoder, value: [_RANGE, value.start, value.stop, value.step],
    type(Path()): lambda _encoder, value: [_PATH, str(value)],
}
"""Ways to encode what does not change."""


def _state_of(value: Any) -> Any:  # noqa: ANN401 - an object
    """What is to be known of an object: its `__getstate__`, or its fields by their names."""
    kind: type = type(value)
    if "__getstate__" in vars(kind):
        return value.__getstate__()
    return {name: getattr(value, name) for name in _fields_of(kind)}


class _Decoder:
    """Makes a value of data, with the classes that a file names; `_DAMAGES` is what it raises."""

    def __init__(self, names: Sequence[str]) -> None:
        known = _classes()
        for name in names:
            if name not in known:
                raise ValueError(f"{name[:100]} is no part of an import")
        self._kinds = [known[name] for name in names]
        self._changeable: list[Any] = []
        self._makers: dict[int, Callable[..., Any]] = {
            _TUPLE: lambda *data: tuple(self._each(data)),
            _FROZENSET: lambda *data: frozenset(self._each(data)),
            _ENUM: lambda number, value: self._kind(number, Enum)(value),
            _STRUCT: self._struct,
            _OBJECT: self._object,
            _AGAIN: lambda number: self._changeable[_index(number)],
            _ARRAY: self._array,
            _PATH: Path,
            _RANGE: range,
            _LIST: partial(self._container, list),
            _DICT: partial(self._container, dict),
            _COUNTER: partial(self._container, Counter),
            _SET: partial(self._container, set),
            _DEQUE: partial(self._container, deque),
        }

    def decode(self, data: Any) -> Any:  # noqa: ANN401 - any value of an import
        """Return the value that data stands for."""
        if type(data) is list:
            return self._makers[data[0]](*data[1:])
        if type(data) not in _PLAIN:
            raise TypeError(f"a {type(data).__name__}")
        return data

    def _each(self, data: Iterable[Any]) -> Iterator[Any]:
        return (each if type(each) in _PLAIN else self.decode(each) for each in data)

    def _container(self, kind: type, *data: Any) -> Any:  # noqa: ANN401 - of any values
        made = kind()
        self._changeable.append(made)
        values = self._each(data)
        if isinstance(made, dict):
            # Not `update`: a Counter would count.
            for key, value in zip(values, values, strict=True):
                made[key] = value
        elif isinstance(made, set):
            made.update(values)
        else:
            made.extend(values)
        return made

    def _kind(self, number: int, base: type) -> Any:  # noqa: ANN401 - a class
        kind = self._kinds[_index(number)]
        if not issubclass(kind, base):
            raise TypeError(f"{kind.__qualname__} is no {base.__name__}")
        return kind

    def _struct(self, number: int, *data: Any) -> Struct:  # noqa: ANN401 - any fields
        kind = self._kind(number, Struct)
        values = dict(zip(kind.__struct_fields__, self._each(data), strict=True))
        _check(kind, values)
        made: Struct = kind(**values)
        return made

    def _object(self, number: int, data: Any) -> Any:  # noqa: ANN401 - any class of the modules
        kind = self._kind(number, object)
        if issubclass(kind, Enum | Struct | BaseException):
            raise TypeError(f"{kind.__qualname__} is no object")
        made = kind.__new__(kind)
        self._changeable.append(made)
        state = self.decode(data)
        if isinstance(state, dict):
            _check(kind, state)
        if "__setstate__" in vars(kind):
            made.__setstate__(state)
            return made
        for name, value in state.items():
            setattr(made, name, value)
        return made

    def _array(self, kind: str, data: bytes) -> Any:  # noqa: ANN401 - numbers of any kind
        if np.dtype(kind).kind not in _KINDS:
            raise TypeError(f"an array of {kind}")
        made = np.frombuffer(data, kind).copy()
        self._changeable.append(made)
        return made


def _index(number: int) -> int:
    if number < 0:
        raise IndexError(number)
    return number


# -- the types of fields -----------------------------------------------------------------------


@cache
def _fields_of(kind: type) -> dict[str, Callable[[Any], bool]]:
    """The fields of a class, each with whether a value is of its type."""
    if not hasattr(kind, "__annotations__"):
        return {}
    return {
        name: _fits(hint)
        for name, hint in get_type_hints(kind).items()
        if get_origin(hint) not in (ClassVar, Final)
    }


@cache
def _fits(hint: Any) -> Callable[[Any], bool]:  # noqa: ANN401, PLR0911 - any type
    """Whether a value is of a type, the values in it included."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in (Any, object) or isinstance(hint, TypeVar):
        return lambda _value: True
    if hint in (None, type(None)) or origin in (Callable, Iterator):
        # What a state leaves out: it is another one's, or over.
        return lambda value: value is None
    if origin in (Union, UnionType):
        each = [_fits(argument) for argument in arguments]
        return lambda value: any(fits(value) for fits in each)
    if hint is float:
        return lambda value: type(value) in (int, float)
    if hint in (bool, int, str, bytes):
        return lambda value: type(value) is hint
    if origin is np.ndarray:
        (number,) = get_args(arguments[1])
        return lambda value: isinstance(value, np.ndarray) and value.dtype == number
    if origin is tuple and arguments[-1] is not Ellipsis:
        each = [_fits(argument) for argument in arguments]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(each)
            and all(fits(own) for fits, own in zip(each, value, strict=True))
        )
    if origin in (dict, Counter):
        keys, values = map(_fits, arguments if origin is dict else (*arguments, int))
        return lambda value: (
            isinstance(value, origin) and all(map(keys, value)) and all(map(values, value.values()))
        )
    if origin in (list, set, frozenset, deque, tuple):
        fits = _fits(arguments[0])
        return lambda value: isinstance(value, origin) and all(map(fits, value))
    return lambda value: isinstance(value, origin or hint)


def _check(kind: type, values: dict[str, Any]) -> None:
    """Refuse fields that a class has not, that lack, or that are of another type.

    Raises:
        TypeError: there are.
    """
    fields = _fields_of(kind)
    for name, value in values.items():
        if name not in fields or not fields[name](value):
            raise TypeError(f"{kind.__qualname__}.{name[:100]} has a value of another type")
    missing = sorted(fields.keys() - values.keys())
    if missing and "__setstate__" not in vars(kind) and "__getstate__" not in vars(kind):
        raise TypeError(f"{kind.__qualname__} has no {missing[0]}")


# -- files -------------------------------------------------------------------------------------


def encoded(value: object) -> bytes:
    """Return a value as bytes.

    Raises:
        TypeError: it holds what is no part of an import's state.
    """
    encoder = _Encoder()
    data = encoder.encode(value)
    return msgspec.msgpack.encode((list(encoder.names), data))


def decoded(data: bytes, name: str) -> Any:  # noqa: ANN401 - what was encoded
    """Return the value that `encoded` made bytes of.

    Args:
        data: The bytes.
        name: Names the file in errors.

    Raises:
        DataError: It is damaged, or holds anything else.
    """
    try:
        names, value = msgspec.msgpack.decode(data, type=tuple[list[str], Any])
        return _Decoder(names).decode(value)
    except _DAMAGES as error:
        raise DataError(f"{name} is damaged ({error}): {_REMEDY}") from error


def dump(value: object) -> bytes:
    """Return a value as the bytes of a file, with the release that wrote it."""
    return b"%s%s\n%s" % (_MARK, __version__.encode(), encoded(value))


def load(data: bytes, name: str) -> Any:  # noqa: ANN401 - what was dumped
    """Return the value that `dump` made bytes of.

    Args:
        data: The bytes.
        name: Names the file in errors.

    Raises:
        DataError: Another release wrote it, or it is damaged.
    """
    head, _, rest = data.partition(b"\n")
    if not head.startswith(_MARK):
        raise DataError(f"{name} is damaged, or of an earlier release: {_REMEDY}")
    written_by = head.removeprefix(_MARK).decode(errors="replace")
    if written_by != __version__:
        raise DataError(
            f"{name} was written by release {written_by} and this is {__version__}: {_REMEDY}"
        )
    return decoded(rest, name)
