"""Objects of an import as bytes in a file, and back, of which only our own plain classes are made.

A trace may come from anywhere: what such a file names beyond those is refused.
"""

import io
import pickle
from typing import Any, Final

from coordinator_sim import __version__
from coordinator_sim.errors import DataError

_MARK: Final = b"coordinator-sim appendable "
_ROOMS: Final = (
    *("coordinator_sim.trace.", "coordinator_sim.logtext.reading.", "coordinator_sim.messages."),
    *("coordinator_sim.kafka.", "coordinator_sim.log.format."),
    *("coordinator_sim.ingest.imports", "coordinator_sim.ingest.kinds"),
    *("coordinator_sim.ingest.ordering", "coordinator_sim.ingest.precedence"),
    *("coordinator_sim.ingest.same_files", "coordinator_sim.ingest.segments"),
    *("coordinator_sim.ingest.skew", "coordinator_sim.ingest.stages"),
    *("coordinator_sim.ingest.ahead", "coordinator_sim.ingest.streams"),
    *("coordinator_sim.ingest.writing", "coordinator_sim.runs.ownership"),
)
"""Modules whose classes do nothing when they are made."""
_RUN_CLASSES: Final = frozenset(
    {
        ("coordinator_sim.runs.run_directory", "SettledRun"),
        ("coordinator_sim.runs.parquet", "TableState"),
    }
)
_OTHERS: Final = frozenset(
    {
        *(("builtins", name) for name in ("set", "frozenset", "range", "bytearray")),
        *(("collections", name) for name in ("Counter", "OrderedDict", "deque", "defaultdict")),
        *(("numpy", name) for name in ("dtype", "ndarray")),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
        ("pathlib", "PosixPath"),
        ("pathlib", "WindowsPath"),
        ("pathlib._local", "PosixPath"),
        ("pathlib._local", "WindowsPath"),
        ("msgspec._utils", "rebuild"),
        ("_codecs", "encode"),
        ("copyreg", "__newobj__"),
    }
)


class _Careful(pickle.Unpickler):
    """Makes no object but those of classes that are named here."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - any class
        is_ours = module.startswith(_ROOMS) or (module, name) in _RUN_CLASSES
        if not is_ours and (module, name) not in _OTHERS:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of an import")
        found = super().find_class(module, name)
        if is_ours and not isinstance(found, type):
            raise pickle.UnpicklingError(f"{module}.{name} is no class")
        return found


def dump(value: object) -> bytes:
    """Return an object as bytes, with the release that wrote it."""
    return b"%s%s\n%s" % (_MARK, __version__.encode(), pickle.dumps(value, protocol=5))


def load(data: bytes, name: str) -> Any:  # noqa: ANN401 - what was dumped
    """Return the object that `dump` made bytes of.

    Args:
        data: The bytes.
        name: Names the file in errors.

    Raises:
        DataError: Another release wrote it, or it is damaged.
    """
    head, _, rest = data.partition(b"\n")
    if not head.startswith(_MARK):
        raise DataError(f"{name} is damaged: ingest all files together, without --append-to")
    written_by = head.removeprefix(_MARK).decode(errors="replace")
    if written_by != __version__:
        raise DataError(
            f"{name} was written by release {written_by} and this is {__version__}: ingest all "
            "files together, without --append-to"
        )
    return load_trusted(rest, name)


def load_trusted(data: bytes, name: str) -> Any:  # noqa: ANN401 - what was dumped
    """Return the object of plain classes that a pickle holds.

    Raises:
        DataError: It is damaged, or holds anything else.
    """
    try:
        return _Careful(io.BytesIO(data)).load()
    except Exception as error:
        raise DataError(
            f"{name} is damaged ({error}): ingest all files together, without --append-to"
        ) from error
