"""FileStreamSource and FileStreamSink: their settings, their lines, their offsets.

The logic of the two connectors that come with Kafka, without touching a file: bytes in, lines and
source offsets out, and the reverse. A driver opens the files.

Source: kafka trunk, connect/file/.../FileStreamSourceConnector.java, FileStreamSourceTask.java,
FileStreamSinkConnector.java, FileStreamSinkTask.java.
"""

import codecs
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.herding.requests import ConnectorOffset
from coordinator_sim.connect.plugins.manifests import (
    ConnectorManifest,
    SettingSpec,
    TaskRule,
    TasksSpec,
)

_PACKAGE: Final = "org.apache.kafka.connect.file."
SOURCE_CLASS: Final = f"{_PACKAGE}FileStreamSourceConnector"
SINK_CLASS: Final = f"{_PACKAGE}FileStreamSinkConnector"
FILENAME_FIELD: Final = "filename"
POSITION_FIELD: Final = "position"
INITIAL_BUFFER_UNITS: Final = 1024
"""FileStreamSourceTask's buffer, in Java chars; it doubles when a line does not fit."""
DEFAULT_BATCH_SIZE: Final = 2000
WAIT_MS: Final = 1000
"""How long a poll waits when there was nothing to read, or no file yet."""
_LONG_MAX: Final = (1 << 63) - 1


def source_manifest(version: str) -> ConnectorManifest:
    """Manifest of FileStreamSource, which has one task and ignores `tasks.max`."""
    settings = (
        SettingSpec(name="file", optional=True, documentation="File to read; absent for stdin."),
        SettingSpec(name="topic", non_empty=True, documentation="Topic to write the lines to."),
        SettingSpec(
            name="batch.size",
            type="int",
            default=str(DEFAULT_BATCH_SIZE),
            importance="low",
            documentation="Most lines that one poll gives.",
        ),
    )
    return ConnectorManifest(
        class_name=SOURCE_CLASS,
        type="source",
        version=version,
        settings=settings,
        alters_offsets=True,
    )


def sink_manifest(version: str) -> ConnectorManifest:
    """Manifest of FileStreamSink: `tasks.max` tasks that all append to one file."""
    file = SettingSpec(
        name="file", optional=True, documentation="File to write; absent for stdout."
    )
    return ConnectorManifest(
        class_name=SINK_CLASS,
        type="sink",
        version=version,
        settings=(file,),
        tasks=TasksSpec(rule=TaskRule.COPIES),
        alters_offsets=True,
    )


class Line(Struct, frozen=True):
    """A line that was read, and the position where reading continues.

    Args:
        text: The line without its line end.
        position: The source offset; None when reading stdin, which has none.
    """

    text: str
    position: int | None


def source_partition(filename: str | None) -> dict[str, object]:
    """Return the source partition of a file, or of stdin (None)."""
    return {FILENAME_FIELD: filename}


def source_offset(position: int | None) -> dict[str, object]:
    """Return the source offset of a position."""
    return {POSITION_FIELD: position}


class LineReader:
    """Splits the data read from one file into lines, for one task.

    Args:
        position: Bytes of the file skipped before reading; None for stdin.
        batch_size: Largest number of lines of one poll.
        buffer_units: Initial size of the buffer, in Java chars.
    """

    def __init__(
        self,
        position: int | None,
        *,
        batch_size: int = DEFAULT_BATCH_SIZE,
        buffer_units: int = INITIAL_BUFFER_UNITS,
    ) -> None:
        self._position = position
        self._batch_size = batch_size
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unread = ""
        self._buffer = ""
        self.buffer_units = buffer_units

    def feed(self, data: bytes) -> None:
        """Add bytes of the file that are ready to be read."""
        self._unread += _as_units(self._decoder.decode(data))

    def poll(self) -> tuple[tuple[Line, ...], bool]:
        """Return the lines of one poll, and whether it waits `WAIT_MS` before it returns.

        QUIRK: lines beyond a full batch stay in the buffer until more bytes arrive, and a last line
        without an end is never read, for the end is what shows that it is whole.
        """
        lines: list[Line] = []
        waits = not self._unread
        while self._unread:
            room = self.buffer_units - len(self._buffer)
            self._buffer += self._unread[:room]
            self._unread = self._unread[room:]
            found = False
            while (line := self._extract_line()) is not None:
                found = True
                lines.append(line)
                if len(lines) >= self._batch_size:
                    return tuple(lines), False
            if not found and len(self._buffer) == self.buffer_units:
                self.buffer_units *= 2
        return tuple(lines), waits

    def _extract_line(self) -> Line | None:
        buffer = self._buffer
        ends = [at for at in (buffer.find("\n"), buffer.find("\r")) if at >= 0]
        if not ends:
            return None
        until = min(ends)
        next_start = until + 1
        if buffer[until] == "\r":
            if next_start >= len(buffer):
                # A newline may still follow the carriage return.
                return None
            next_start += buffer[next_start] == "\n"
        self._buffer = buffer[next_start:]
        if self._position is not None:
            # QUIRK: the position counts Java chars, but after a restart as many bytes are skipped:
            # with characters beyond ASCII, lines are read again in part.
            self._position += next_start
        return Line(_as_text(buffer[:until]), self._position)


def sink_line(value: str | None) -> bytes:
    """Return the bytes that FileStreamSink appends for a record's value."""
    return ("null" if value is None else value).encode("utf-8", "replace") + b"\n"


def offsets_error(config: Mapping[str, str], offsets: tuple[ConnectorOffset, ...]) -> str | None:
    """Return why FileStreamSource refuses these offsets; None when it accepts them.

    Source: FileStreamSourceConnector.alterOffsets.
    """
    if not config.get("file"):
        return (
            "Offsets cannot be modified if the 'file' configuration is unspecified. "
            "This is because stdin is used for input and offsets are not tracked."
        )
    errors = (_offset_error(each) for each in offsets if each.offset is not None)
    return next((error for error in errors if error is not None), None)


def _offset_error(given: ConnectorOffset) -> str | None:
    offset = given.offset or {}
    if POSITION_FIELD not in offset:
        return "Offset objects should either be null or contain the key 'position'"
    position = offset[POSITION_FIELD]
    if not isinstance(position, int) or isinstance(position, bool) or abs(position) > _LONG_MAX:
        return "The value for the 'position' key in the offset is expected to be a Long value"
    if position < 0:
        return "The value for the 'position' key in the offset should be a non-negative value"
    if FILENAME_FIELD not in given.partition:
        return "Partition objects should contain the key 'filename'"
    return None


def _as_units(text: str) -> str:
    """One character for each Java char: characters beyond the basic plane become two."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(chr(high << 8 | low) for high, low in pairs)


def _as_text(units: str) -> str:
    if units.isascii():
        return units
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
