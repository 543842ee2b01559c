"""Finding and opening the log files that a user names: folders, rotated and compressed files."""

import gzip
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import AnyStr, Final

from coordinator_sim.errors import ConfigError

_SUFFIXES: Final = (".log", ".out", ".txt", ".json", ".jsonl", ".csv", ".gz")
_GZIP_MAGIC: Final = b"\x1f\x8b"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_SAMPLE_BYTES: Final = 8_192
_BINARY_SHARE: Final = 0.02
"""Share of control characters above which a file is no text; a log has next to none."""
_OTHER_TEXT: Final = (
    (
        re.compile(rb"\[[^\]\n]*,\d+\]::|[^\s\[]\S*::(?:GroupMetadata\(|NULL)|\{\"key\":"),
        "what a formatter of kafka-console-consumer prints",
    ),
    (
        re.compile(rb"Dumping \S+\.log|Log starting offset: |Starting offset: |baseOffset: \d"),
        "what kafka-dump-log prints",
    ),
)
"""How the first line of text begins that tells of groups and is no log."""
_REPORT_LINES: Final = 2_000
BLOCK_BYTES: Final = 8_388_608
"""Bytes of lines that are read at a time."""
LINE_LIMIT: Final = 1_000_000
"""Bytes of a line that are read (characters in UTF-16); what is longer is cut there."""
_KINDS: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def find_logs(paths: list[Path]) -> list[Path]:
    """The files named, and those in the folders named that look like logs; sorted, each once.

    Raises:
        ConfigError: A path does not exist or is no file, such as a pipe that nobody may ever write
            to, or a folder holds nothing that looks like a log.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = [file for file in sorted(path.rglob("*")) if _looks_like_log(file)]
            if not inside:
                raise ConfigError(
                    f"{path}: no log in this folder; files are taken by name: "
                    f"{' '.join(_SUFFIXES)} and rotated ones such as server.log.1"
                )
            found.update(dict.fromkeys(inside))
        elif path.exists():
            _check_regular(path)
            found[path] = None
        else:
            raise ConfigError(f"{path}: no such file or folder")
    return list(found)


def _check_regular(path: Path) -> None:
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "no regular file")
        raise ConfigError(f"{path} is {kind}; write what it holds to a file and name that")


def why_unreadable(path: Path) -> str | None:
    """What is wrong with a file as a log, and what to do; None when it can be read."""
    try:
        with path.open("rb") as file:
            is_gzip = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            source = gzip.GzipFile(fileobj=file) if is_gzip else file
            sample = source.read(_SAMPLE_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if not sample.strip():
        return "is empty; name the broker's server.log, or leave this file out"
    if sample.startswith(_UTF16_MARKS):
        return None
    controls = sum(1 for byte in sample if byte < ord(" ") and byte not in b"\t\n\r\x1b\x00")
    if sample.count(0) + controls > len(sample) * _BINARY_SHARE:
        return "is binary, not a text log; name the broker's server.log"
    begins = sample.lstrip(b"\xef\xbb\xbf \t\r\n")
    for pattern, kind in _OTHER_TEXT:
        if pattern.match(begins):
            return (
                f"is {kind}, which is not read; name the broker's server.log, or look at the "
                "segments themselves with: coordinator-sim log dump"
            )
    return None


@dataclass(slots=True)
class LogFileReader:
    """The lines of one file, with what went wrong while reading them.

    Args:
        path: A file that `why_unreadable` has nothing against.
        on_progress: Told the bytes of the file used so far, now and then.
        cut_count: Lines so far that were longer than `LINE_LIMIT`; the rest of each is left out.
    """

    path: Path
    on_progress: Callable[[int], None]
    problem: str | None = None
    cut_count: int = 0

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
        with self.path.open("rb") as raw:
            is_gzip = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            source = gzip.GzipFile(fileobj=raw) if is_gzip else raw
            encoding = "utf-16" if source.peek(2)[:2] in _UTF16_MARKS else "utf-8"
            if not is_gzip and encoding == "utf-8":
                yield from self._chunks(raw)
            for lines in _gathered(self._encoded(source, encoding)):
                if not raw.closed:
                    self.on_progress(raw.tell())
                yield lines

    def _chunks(self, raw: BufferedReader) -> Iterator[bytes]:
        """Whole lines as they are in the file, up to one that is longer than `LINE_LIMIT`."""
        while True:
            start = raw.tell()
            data = raw.read(BLOCK_BYTES)
            if len(data) == BLOCK_BYTES:
                data = data[: data.rfind(b"\n") + 1]
            raw.seek(start + len(data))
            if not data or _has_long_line(data):
                raw.seek(start)
                return
            self.on_progress(raw.tell())
            yield data

    def _encoded(self, source: gzip.GzipFile | BufferedReader, encoding: str) -> Iterator[bytes]:
        if encoding == "utf-8":
            yield from self._bounded(source.readline, b"\n")
        else:
            for line in self._decoded(source, encoding):
                yield line.encode("utf-8", errors="replace")

    def _lines(self) -> Iterator[str]:
        with self.path.open("rb") as raw:
            start = raw.read(2)
            is_gzip = start == _GZIP_MAGIC
            raw.seek(0)
            source = gzip.GzipFile(fileobj=raw) if is_gzip else raw
            encoding = "utf-16" if source.peek(2)[:2] in _UTF16_MARKS else "utf-8"
            for number, line in enumerate(self._decoded(source, encoding)):
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


def _looks_like_log(path: Path) -> bool:
    if path.name.startswith(".") or not path.is_file():
        return False
    return path.suffix in _SUFFIXES or ".log" in path.name
