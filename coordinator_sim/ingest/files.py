"""Finding and opening the files that a user names: folders, rotated and compressed files."""

import gzip
import hashlib
import mmap
import stat
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import AnyStr, Final

from coordinator_sim.errors import ConfigError
from coordinator_sim.ingest.kinds import (
    SAMPLE_BYTES,
    UTF16_MARKS,
    Kind,
    is_left_over,
    is_segment_name,
    kind_of,
    topic_of,
    unread,
)
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.logtext.reading.exports import FileForm, Shape, begins_record, form_of, records

_SUFFIXES: Final = (
    *(".log", ".out", ".txt", ".json", ".jsonl", ".csv", ".gz"),
    *(".pcap", ".pcapng", ".cap"),
)
_GZIP_MAGIC: Final = b"\x1f\x8b"
_REPORT_LINES: Final = 2_000
BLOCK_BYTES: Final = 8_388_608
"""Bytes of lines that are read at a time."""
LINE_LIMIT: Final = 1_000_000
"""Bytes of a line that are read (characters in UTF-16); what is longer is cut there."""
UNPACKED_LIMIT: Final = 1 << 30
"""Bytes of a compressed segment that are read: ten times the largest that brokers write."""
_BLOCK: Final = 1 << 20
_RECORD_LINES: Final = 10_000
"""Lines of one record, such as a stack trace, that stay in their order."""
_SPECIAL: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(slots=True)
class FoundFiles:
    """What the paths of a user name.

    Args:
        files: Files to read, each once.
        other_topics: Segments of other topics in the folders named, which are left out.
    """

    files: dict[Path, None] = field(default_factory=dict)
    other_topics: int = 0


def find_files(paths: list[Path]) -> FoundFiles:
    """The files named, and those in the folders named that look like a source; sorted.

    Of a broker's log directory, the segments of the offsets topic are taken.

    Raises:
        ConfigError: A path does not exist or is no file, such as a pipe that nobody may ever write
            to, or a folder holds nothing that looks like a source.
    """
    found = FoundFiles()
    for path in paths:
        if path.is_dir():
            inside = [file for file in sorted(path.rglob("*")) if _looks_like_source(file)]
            taken = [file for file in inside if not _is_of_other_topic(file)]
            found.other_topics += len(inside) - len(taken)
            if not taken:
                raise ConfigError(_nothing_in(path, len(inside)))
            found.files.update(dict.fromkeys(taken))
        elif path.exists():
            _check_regular(path)
            found.files[path] = None
        else:
            raise ConfigError(f"{path}: no such file or folder")
    return found


def _nothing_in(folder: Path, other_segments: int) -> str:
    if other_segments:
        return (
            f"{folder}: {other_segments} segments in this folder, and none of {OFFSETS_TOPIC}: "
            "only those tell of groups"
        )
    return (
        f"{folder}: no log in this folder; files are taken by name: "
        f"{' '.join(_SUFFIXES)} and rotated ones such as server.log.1"
    )


def _is_of_other_topic(path: Path) -> bool:
    return is_segment_name(path.name) and topic_of(path.parent.name) not in (None, OFFSETS_TOPIC)


def _check_regular(path: Path) -> None:
    if not path.is_file():
        mode = path.stat().st_mode
        kind = next((name for is_kind, name in _SPECIAL if is_kind(mode)), "no regular file")
        raise ConfigError(f"{path} is {kind}; write what it holds to a file and name that")


EMPTY: Final = "is empty; name the broker's server.log, or leave this file out"
"""The problem of an empty file, which is none beside others: brokers open logs that they never use.
"""


def recognise(path: Path) -> Kind | str:
    """The kind of a file, or a message with the problem and its fix."""
    try:
        with unpacked(path) as source:
            sample = source.read(SAMPLE_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    is_segment = is_segment_name(path.name) and topic_of(path.parent.name) == OFFSETS_TOPIC
    if not sample.strip() and not is_segment:
        return EMPTY
    return kind_of(sample, path.name) or (
        "is binary, and neither a segment of the offsets topic nor a capture; name the broker's "
        "server.log or kafka-request.log, or a folder such as __consumer_offsets-12"
    )


def named_unread(path: Path) -> str | None:
    """Return what a file without events is, and what to do; None where nothing shows it."""
    try:
        with unpacked(path) as source:
            return unread(source.read(SAMPLE_BYTES))
    except (OSError, EOFError, zlib.error):
        return None


@contextmanager
def unpacked(path: Path) -> "Iterator[gzip.GzipFile | BufferedReader]":
    """Open a file, and what is in it where it is compressed."""
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == _GZIP_MAGIC
        raw.seek(0)
        yield gzip.GzipFile(fileobj=raw) if is_gzip else raw


@contextmanager
def whole(path: Path) -> Iterator[memoryview]:
    """All bytes of a file, mapped; those of a compressed one are in memory.

    Raises:
        OSError: It cannot be read.
        EOFError: It is compressed, and cut short.
        ValueError: It is compressed, and holds more than `UNPACKED_LIMIT`.
        zlib.error: It is compressed, and damaged.
    """
    with path.open("rb") as raw:
        if raw.read(2) == _GZIP_MAGIC:
            raw.seek(0)
            data = gzip.GzipFile(fileobj=raw).read(UNPACKED_LIMIT + 1)
            if len(data) > UNPACKED_LIMIT:
                raise ValueError(f"holds more than {UNPACKED_LIMIT >> 30} GiB; gunzip it first")
            yield memoryview(data)
            return
        if path.stat().st_size == 0:
            yield memoryview(b"")
            return
        with (
            mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as view,
        ):
            yield view


def content_digest(path: Path) -> str:
    """A digest of what a file holds, compressed or not; empty for a damaged one."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with unpacked(path) as source:
            while block := source.read(_BLOCK):
                digest.update(block)
    except (OSError, EOFError, zlib.error):
        return ""
    return digest.hexdigest()


def holds(path: Path, mark: bytes) -> bool:
    """Whether a mark is anywhere in a file; what is readable of a damaged one is searched."""
    kept = b""
    try:
        with unpacked(path) as source:
            while block := source.read(_BLOCK):
                if mark in kept + block:
                    return True
                kept = block[-len(mark) :]
    except (OSError, EOFError, zlib.error):
        return False
    return False


def form_in(
    path: Path,
    zone: tzinfo = UTC,
    *,
    day_first: bool = False,
    reword: Callable[[str], str] = str,
) -> FileForm:
    """Return the form of a file of text, as `form_of` does; a damaged file counts as plain.

    Other arguments as of `form_of`; `reword` puts the times into an order that it knows.
    """
    try:
        with unpacked(path) as source:
            sample = source.read(SAMPLE_BYTES)
    except (OSError, EOFError, zlib.error):
        return FileForm()
    encoding = "utf-16" if sample[:2] in UTF16_MARKS else "utf-8"
    return form_of(reword(sample.decode(encoding, errors="replace")), zone, day_first=day_first)


@dataclass(slots=True)
class LogFileReader:
    """The lines of one file, with what went wrong while reading them.

    Records of documents and tables are a line each; a file with the newest line first is turned
    round.

    Args:
        path: A file of text.
        on_progress: Told the bytes of the file used so far, now and then.
        cut_count: Lines so far that were longer than `LINE_LIMIT`; the rest of each is left out.
        start: Position of the first line of `blocks`; only where `is_splittable`.
        stop: Position behind the last line of `blocks`; None for the end of the file.
        day_first: Whether the day comes before the month in dates such as 03/04/2024.
    """

    path: Path
    on_progress: Callable[[int], None]
    problem: str | None = None
    cut_count: int = 0
    start: int = 0
    stop: int | None = None
    day_first: bool = False

    def lines(self) -> Iterator[str]:
        """The lines; they end early, with `problem` set, when the file is damaged."""
        try:
            yield from self._lines()
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            self.problem = f"is damaged, its readable part was taken: {reason}"

    def blocks(self) -> Iterator[bytes]:
        """The lines in UTF-8, many at a time; they end early like those of `lines`."""
        try:
            yield from self._blocks()
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            self.problem = f"is damaged, its readable part was taken: {reason}"

    def _blocks(self) -> Iterator[bytes]:
        form = form_in(self.path, day_first=self.day_first)
        with self.path.open("rb") as raw:
            is_gzip = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            source = gzip.GzipFile(fileobj=raw) if is_gzip else raw
            encoding = "utf-16" if source.peek(2)[:2] in UTF16_MARKS else "utf-8"
            if not is_gzip and encoding == "utf-8" and form.is_plain:
                raw.seek(self.start)
                yield from self._chunks(raw)
            for lines in _gathered(self._encoded(source, encoding, form)):
                if not raw.closed:
                    self.on_progress(raw.tell())
                yield lines

    def _chunks(self, raw: BufferedReader) -> Iterator[bytes]:
        """Whole lines as they are in the file, up to one that is longer than `LINE_LIMIT`."""
        while True:
            start = raw.tell()
            data = raw.read(BLOCK_BYTES if self.stop is None else self._size_from(start))
            if len(data) == BLOCK_BYTES:
                data = data[: data.rfind(b"\n") + 1]
            raw.seek(start + len(data))
            if not data or _has_long_line(data):
                raw.seek(start)
                return
            self.on_progress(raw.tell())
            yield data

    def _size_from(self, start: int) -> int:
        return min(BLOCK_BYTES, (self.stop or start) - start)

    def _encoded(
        self, source: gzip.GzipFile | BufferedReader, encoding: str, form: FileForm
    ) -> Iterator[bytes]:
        def read_line(limit: int) -> bytes:
            is_behind = self.stop is not None and source.tell() >= self.stop
            return b"" if is_behind else source.readline(limit)

        if encoding == "utf-8" and form.is_plain:
            yield from self._bounded(read_line, b"\n")
        else:
            for line in self._records(source, encoding, form):
                yield line.encode("utf-8", errors="replace")

    def _records(
        self, source: gzip.GzipFile | BufferedReader, encoding: str, form: FileForm
    ) -> Iterator[str]:
        """Yield the records of a file as lines, the oldest first."""
        is_document = form.shape in (Shape.ARRAYS, Shape.OBJECTS)
        read = _pieces_of if is_document else self._decoded
        told = records(read(source, encoding), form.shape)
        return _turned(told) if form.newest_first else told

    def _lines(self) -> Iterator[str]:
        form = form_in(self.path, day_first=self.day_first)
        with self.path.open("rb") as raw:
            start = raw.read(2)
            is_gzip = start == _GZIP_MAGIC
            raw.seek(0)
            source = gzip.GzipFile(fileobj=raw) if is_gzip else raw
            encoding = "utf-16" if source.peek(2)[:2] in UTF16_MARKS else "utf-8"
            for number, line in enumerate(self._records(source, encoding, form)):
                if number % _REPORT_LINES == 0:
                    self.on_progress(raw.tell())
                yield line

    def _decoded(self, source: gzip.GzipFile | BufferedReader, encoding: str) -> Iterator[str]:
        if encoding == "utf-16":
            with TextIOWrapper(source, encoding=encoding, errors="replace") as text:
                yield from self._bounded(text.readline, "\n")
            return
        for line in self._bounded(source.readline, b"\n"):
            yield line.decode("utf-8", errors="replace")

    def _bounded(self, read_line: Callable[[int], AnyStr], line_end: AnyStr) -> Iterator[AnyStr]:
        """Lines of at most `LINE_LIMIT`, so that memory is bounded whatever the file holds."""
        while line := read_line(LINE_LIMIT):
            yield line
            if len(line) == LINE_LIMIT and not line.endswith(line_end):
                rest = read_line(LINE_LIMIT)
                self.cut_count += bool(rest)
                while rest and not rest.endswith(line_end):
                    rest = read_line(LINE_LIMIT)


def is_splittable(path: Path, *, day_first: bool = False) -> bool:
    """Whether a file of text can be read from the middle.

    A compressed one cannot, nor one in UTF-16, nor one whose lines are not its records in order.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as raw:
        begins = raw.read(2)
    if begins == _GZIP_MAGIC or begins in UTF16_MARKS:
        return False
    return form_in(path, day_first=day_first).is_plain


def line_border(path: Path, position: int) -> int:
    """The first position from there on at which a line begins, or the file ends.

    Raises:
        OSError: It cannot be read.
    """
    if position <= 0:
        return 0
    with path.open("rb") as raw:
        raw.seek(position - 1)
        while block := raw.read(_BLOCK):
            found = block.find(b"\n")
            if found >= 0:
                return raw.tell() - len(block) + found + 1
        return raw.tell()


def _pieces_of(source: gzip.GzipFile | BufferedReader, encoding: str) -> Iterator[str]:
    """Yield the text of a file in pieces."""
    decoder = getincrementaldecoder(encoding)(errors="replace")
    while block := source.read(_BLOCK):
        yield decoder.decode(block)


def _turned(lines: Iterator[str]) -> Iterator[str]:
    """Turn a file with the newest record first round; the lines of a record keep their order.

    Turning takes linear time, and a temporary file instead of memory.
    """
    with TemporaryFile() as kept:
        for line in lines:
            kept.write((line if line.endswith("\n") else f"{line}\n").encode(errors="replace"))
        kept.flush()
        if not kept.tell():
            return
        with mmap.mmap(kept.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            record: list[str] = []
            end = len(mapped)
            while end:
                start = mapped.rfind(b"\n", 0, end - 1) + 1
                record.append(mapped[start:end].decode())
                end = start
                if begins_record(record[-1]) or len(record) >= _RECORD_LINES or not end:
                    yield from reversed(record)
                    record = []


def _gathered(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines, many at a time, each with a line end; also those before an error."""
    some: list[bytes] = []
    size = 0
    problem: Exception | None = None
    while True:
        try:
            line = next(lines)
        except StopIteration:
            break
        except (OSError, EOFError, zlib.error) as error:
            problem = error
            break
        some.append(line if line.endswith(b"\n") else line + b"\n")
        size += len(line)
        if size >= BLOCK_BYTES:
            yield b"".join(some)
            some, size = [], 0
    if some:
        yield b"".join(some)
    if problem is not None:
        raise problem


def _has_long_line(data: bytes) -> bool:
    start = 0
    while len(data) - start >= LINE_LIMIT:
        end = data.rfind(b"\n", start, start + LINE_LIMIT)
        if end < 0:
            return True
        start = end + 1
    return False


def _looks_like_source(path: Path) -> bool:
    if path.name.startswith(".") or not path.is_file() or is_left_over(path.name):
        return False
    return path.suffix in _SUFFIXES or ".log" in path.name
