"""The text of `kafka-dump-log`, of every release, as stored records.

Since 2.4 a batch has a line of its own, and its records follow with `| ` in front. Up to 2.3 each
record's line has everything. Since 3.8 keys and values are JSON. A commit's metadata may hold line
breaks, so a line that begins like none of these continues the one before.

Source: kafka 0.10.2 to 4.4, DumpLogSegments: printBatchLevel, dumpLog, OffsetsMessageParser.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.logtext.reading.stored_json import record_of
from coordinator_sim.logtext.reading.stored_text import DELETED, dumped_record
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace.offsets_topic import StoredRecord, TransactionEnd

_BATCH: Final = re.compile(r"baseOffset: -?\d")
_RECORD: Final = re.compile(r"(?:\| )?offset: (-?\d{1,19}) ")
_OTHER: Final = re.compile(
    r"Dumping |Starting offset: |Log starting offset: |Found \d+ invalid|Mismatches in :|"
    r"Snapshot end offset|\| records do not parse"
)
_PARTITION: Final = re.compile(r"__consumer_offsets-(\d{1,9})(?!\d)")
_TIME: Final = re.compile(r"(?:CreateTime|LogAppendTime): (-?\d{1,19})")
_PRODUCER: Final = re.compile(r"producerId: (-?\d{1,19})")
_MARKER: Final = re.compile(r"endTxnMarker: (COMMIT|ABORT)")
_CONTENTS: Final = re.compile(r" key: (.*?) payload: (.*)$", re.DOTALL)
_NEW_KEY: Final = '{"type":'
_NO_KEY: Final = (" key: none", " key: Unknown record type", " key: Error at offset")
_NOT_DECODED: Final = "a record without key and payload; use kafka-dump-log with --offsets-decoder"
_JOINED_LINES: Final = 50
"""Most line breaks in one record; a commit's metadata has at most 4,096 bytes by default."""


class _Batch(Struct, frozen=True):
    """What the records of a batch share."""

    producer_id: int = -1
    is_transactional: bool = False
    is_valid: bool = True


class DumpText:
    """Reads the text of one run of kafka-dump-log.

    Args:
        summary: Receives the counts.

    Attributes:
        invalid: Records of batches whose CRC is wrong, which are left out.
        torn_bytes: Bytes at the ends of the segments that the tool could not read.
    """

    def __init__(self, summary: IngestSummary | None = None) -> None:
        self.summary = IngestSummary() if summary is None else summary
        self.invalid = 0
        self.torn_bytes = 0
        self._partition: int | None = None
        self._batch = _Batch()

    def read(self, lines: Iterable[str]) -> Iterator[tuple[StoredRecord | TransactionEnd, ...]]:
        """Yield records and markers, those of one batch together. May be called once."""
        batch: list[StoredRecord | TransactionEnd] = []
        for text in self._whole_lines(lines):
            if _RECORD.match(text) is None or not text.startswith("|"):
                yield tuple(batch)
                batch.clear()
            found = self._line(text)
            if found is not None:
                batch.append(found)
        yield tuple(batch)

    def _whole_lines(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines, those that continue another joined to it."""
        parts: list[str] = []
        for line in lines:
            self.summary.lines += 1
            text = line.rstrip("\r\n")
            begins = _RECORD.match(text) or _BATCH.match(text) or _OTHER.match(text)
            if begins is None and parts and len(parts) < _JOINED_LINES:
                parts.append(text)
                self.summary.continuations += 1
                continue
            if parts:
                yield "\n".join(parts)
            parts = [text]
        if parts:
            yield "\n".join(parts)

    def _line(self, text: str) -> StoredRecord | TransactionEnd | None:
        if _BATCH.match(text):
            self._batch = _batch_of(text)
            self.summary.known += 1
            return None
        record = _RECORD.match(text)
        if record is None:
            self._other(text)
            return None
        batch = self._batch if text.startswith("|") else _batch_of(text)
        if not batch.is_valid:
            self.invalid += 1
            self.summary.unparsed += 1
            return None
        time = _TIME.search(text)
        timestamp_ms = -1 if time is None else int(time[1])
        marker = _MARKER.search(text)
        if marker is not None and " key: " not in text[: marker.start()]:
            self.summary.known += 1
            return TransactionEnd(batch.producer_id, marker[1] == "COMMIT", timestamp_ms)
        contents = self._contents(text)
        if contents is None:
            return None
        self.summary.parsed += 1
        return StoredRecord(
            record=contents,
            offset=int(record[1]),
            timestamp_ms=max(timestamp_ms, 0),
            partition=self._partition,
            producer_id=batch.producer_id if batch.is_transactional else -1,
            is_timed=timestamp_ms >= 0,
        )

    def _contents(self, text: str) -> LogRecord | None:
        found = _CONTENTS.search(text)
        if found is None:
            if " key: " not in text:
                # A dump without --offsets-decoder: there is nothing to tell.
                self.summary.count_unparsed(_NOT_DECODED)
            elif any(mark in text for mark in _NO_KEY):
                self.summary.known += 1
            else:
                self.summary.count_unparsed("a record that is cut")
            return None
        try:
            record = _contents_of(found[1], found[2])
        except DataError as error:
            self.summary.count_unparsed(str(error)[:120])
            return None
        if record is None:
            self.summary.known += 1
        return record

    def _other(self, text: str) -> None:
        if text.startswith("Dumping "):
            found = _PARTITION.search(text)
            self._partition = None if found is None else int(found[1])
            self._batch = _Batch()
        elif text.startswith("Found "):
            self.torn_bytes += int(text.split()[1])
        elif text.strip() and _OTHER.match(text) is None:
            self.summary.count_unparsed("a line of no known form")
            return
        self.summary.known += 1


def _batch_of(text: str) -> _Batch:
    producer = _PRODUCER.search(text)
    return _Batch(
        -1 if producer is None else int(producer[1]),
        "isTransactional: true" in text,
        "isvalid: false" not in text.lower(),
    )


def _contents_of(key: str, payload: str) -> LogRecord | None:
    if not key.startswith(_NEW_KEY):
        return dumped_record(key, payload)
    try:
        value = None if payload == DELETED else json.loads(payload)
        return record_of(json.loads(key), value)
    except json.JSONDecodeError as error:
        raise DataError("a record with JSON that is cut or broken") from error
