"""What console formatters print of the offsets topic, as stored records.

Up to 3.8 a record is a line of text, since 3.9 a JSON object, and no line break stands between two
objects. Neither form tells offsets, nor the times of records: a commit is placed at its own commit
time, a group at the end of its join phase where that is told, and the rest at the record before.

Source: kafka 0.10.2 to 4.4: OffsetsMessageFormatter, GroupMetadataMessageFormatter;
CoordinatorRecordMessageFormatter.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from coordinator_sim.errors import DataError
from coordinator_sim.logtext.reading.stored_json import record_of
from coordinator_sim.logtext.reading.stored_text import formatter_record
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.messages.group_records import GroupMetadataValue, OffsetCommitValue
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace.offsets_topic import StoredRecord

_LARGEST: Final = 64 << 20
"""Characters of one JSON object; a group's record has at most some megabytes."""
_JOINED_LINES: Final = 50
_UNKNOWN: Final = '"unknown"'
_MARKS: Final = re.compile(r'["\\{}]')


class _Placed:
    """Gives each record the time in its value, or else that of the record before."""

    def __init__(self) -> None:
        self._last_ms = 0
        self._count = 0

    def record(self, record: LogRecord, number: int) -> StoredRecord:
        told_ms = -1
        if isinstance(record.value, OffsetCommitValue):
            told_ms = record.value.commit_timestamp
        elif isinstance(record.value, GroupMetadataValue):
            told_ms = record.value.current_state_timestamp
        if told_ms >= 0:
            self._last_ms = told_ms
        return StoredRecord(
            record=record,
            offset=number,
            timestamp_ms=self._last_ms,
            is_timed=told_ms >= 0 and isinstance(record.value, OffsetCommitValue),
        )


def read_formatter_text(lines: Iterable[str], summary: IngestSummary) -> Iterator[StoredRecord]:
    """Yield the records of a formatter up to 3.8; `offset` is the number of the line."""
    placed = _Placed()
    for number, text in _whole_records(lines, summary):
        try:
            record = formatter_record(text)
        except DataError as error:
            summary.count_unparsed(str(error))
            continue
        if record is None:
            if text.strip():
                summary.count_unparsed("a line of no known form")
            continue
        summary.parsed += 1
        yield placed.record(record, number)


def _whole_records(lines: Iterable[str], summary: IngestSummary) -> Iterator[tuple[int, str]]:
    """Yield each record with the number of its first line: metadata may hold line breaks."""
    first = 0
    parts: list[str] = []
    for number, line in enumerate(lines, 1):
        summary.lines += 1
        text = line.rstrip("\r\n")
        if parts and "::" not in text and len(parts) < _JOINED_LINES and text:
            parts.append(text)
            summary.continuations += 1
            continue
        if parts:
            yield first, "\n".join(parts)
        first, parts = number, [text]
    if parts:
        yield first, "\n".join(parts)


def read_formatter_json(chunks: Iterable[str], summary: IngestSummary) -> Iterator[StoredRecord]:
    """Yield the records of a formatter since 3.9; `offset` is the number of the object.

    Args:
        chunks: The text, in pieces of any size.
        summary: Receives the counts.
    """
    placed = _Placed()
    for number, node in enumerate(_objects(chunks, summary), 1):
        summary.lines += 1
        try:
            record = _record_of(node)
        except DataError as error:
            summary.count_unparsed(str(error)[:120])
            continue
        if record is None:
            summary.known += 1
            continue
        summary.parsed += 1
        yield placed.record(record, number)


def _record_of(node: Any) -> LogRecord | None:  # noqa: ANN401 - parsed JSON
    key = node.get("key") if isinstance(node, dict) else None
    if not isinstance(key, dict) or json.dumps(key.get("data")) == _UNKNOWN:
        return None
    value = node.get("value")
    if isinstance(value, dict) and json.dumps(value.get("data")) == _UNKNOWN:
        return None
    return record_of(key, value)


def _objects(chunks: Iterable[str], summary: IngestSummary) -> Iterator[Any]:
    """Yield the JSON objects of a text without separators; broken text is passed over.

    An object is decoded when its last brace has come, so that no text is decoded twice.
    """
    decoder = json.JSONDecoder()
    for text in _bracketed(chunks, summary):
        try:
            yield decoder.decode(text)
        except json.JSONDecodeError:
            summary.count_unparsed("JSON that is broken")


def _bracketed(chunks: Iterable[str], summary: IngestSummary) -> Iterator[str]:
    """Yield the texts from each outermost brace to its end."""
    braces = _Braces()
    parts: list[str] = []
    size = 0
    for chunk in chunks:
        start = 0
        for found in _MARKS.finditer(chunk):
            depth = braces.depth
            braces.take(found.start(), found[0])
            if depth == 0 and braces.depth:
                start = found.start()
            elif depth and braces.depth == 0:
                yield "".join((*parts, chunk[start : found.end()]))
                parts, size = [], 0
        braces.next_chunk(len(chunk))
        if braces.depth:
            parts.append(chunk[start:])
            size += len(chunk) - start
        if size > _LARGEST:
            summary.count_unparsed("JSON that has no end")
            parts, size, braces = [], 0, _Braces()
    if braces.depth:
        summary.count_unparsed("JSON that is cut")


@dataclass(slots=True)
class _Braces:
    """Nesting depth at a position in JSON, updated by braces, quotation marks, backslashes."""

    depth: int = 0
    is_text: bool = False
    passed_over: int = -1
    """Position that a backslash in front of it takes its meaning from."""

    def take(self, at: int, mark: str) -> None:
        """Take the next mark of the chunk."""
        if at == self.passed_over:
            return
        if self.is_text:
            if mark == "\\":
                self.passed_over = at + 1
            self.is_text = mark != '"'
        elif mark == '"':
            self.is_text = self.depth > 0
        elif mark == "{":
            self.depth += 1
        elif mark == "}" and self.depth:
            self.depth -= 1

    def next_chunk(self, size: int) -> None:
        """Go on in the chunk after one of this size."""
        self.passed_over = 0 if self.passed_over == size else -1
