"""Exports of log stores as lines: JSON documents, tables, and files with the newest line first.

A record of a document or of a table becomes one line of JSON, which `envelopes` takes apart. No
file is opened here.

Source: the output of `aws logs filter-log-events` and `get-query-results`, of `gcloud logging read
--format=json`, of Elasticsearch's `_search`, of Datadog's logs API, and of the exports of
CloudWatch Logs Insights, Kibana, Datadog and Splunk as CSV.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import tzinfo
from enum import Enum, unique
from itertools import islice, pairwise
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.errors import UNREADABLE_JSON
from coordinator_sim.logtext.reading.envelopes import BOM, entry_of, is_heading, peel
from coordinator_sim.logtext.reading.instants import Instant, InstantReader
from coordinator_sim.logtext.reading.line_clock import OVERTAKEN_US
from coordinator_sim.logtext.reading.text import clean, has_token

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:(")|\\?\Z)|[\[\]{}]', re.DOTALL)
_DOCUMENT: Final = re.compile(r'\{|\[\s*["\[{]')
_BREAKS: Final = str.maketrans("\r\n", "  ")
_RECORD_LIMIT: Final = 1_000_000
"""Characters of a record of a document; a longer one is cut there."""
_LOOKED_AT: Final = 500
"""Records of a file's beginning that tell its form."""
_LEAST_FALLS: Final = 2
_FALLS_OF_CHANGES: Final = 0.75
"""Share of the changes between times, line by line, that are falls where the newest line is first.

The lines of several threads fall by some milliseconds now and then, and rise again.
"""
_BEGINS_RECORD: Final = re.compile(r".{0,80}?\d\d:\d\d:\d\d|.{0,2}\d{10}|\[?\{")
_HEADING_LIMIT: Final = 2_000


@unique
class Shape(Enum):
    """How the records of a file are separated."""

    LINES = "lines"
    ARRAYS = "a document of JSON"
    OBJECTS = "objects of JSON"
    TABLE = "a table"


class FileForm(Struct, frozen=True, kw_only=True):
    """How the lines of a file are read, as its beginning shows.

    Args:
        shape: How its records are separated.
        newest_first: Whether its newest record is the first one.
        unclear_zone: An abbreviation that several zones have, and that is not one of the given
            zone; None without any.
        days_proven: Whether the day comes before the month in dates such as 13/05/2024; None where
            there are only such as 03/04/2024, which show neither.
        days_unclear: Whether there are dates such as 03/04/2024 at all.
    """

    shape: Shape = Shape.LINES
    newest_first: bool = False
    unclear_zone: str | None = None
    days_proven: bool | None = None
    days_unclear: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the lines of the file are its records, the oldest first."""
        return self.shape is Shape.LINES and not self.newest_first


def form_of(sample: str, zone: tzinfo, *, day_first: bool = False) -> FileForm:
    """Return the form of a file, by the times that its lines have of their own.

    What other programs wrote proves the order of dates, but is unclear only where no line may be a
    coordinator's or a client's.

    Args:
        sample: How it begins.
        zone: Zone of the times that name none.
        day_first: Whether 03/04/2024 is in April, where no date of the sample shows that.
    """
    sample = sample.removeprefix(BOM)
    shape = _shape_of(sample)
    lines = list(islice(records(sample.splitlines(keepends=True), shape), _LOOKED_AT))
    found = _own_times(lines, InstantReader(zone, day_first=day_first))
    proven = next((one.days_proven for _, one in found if one.days_proven is not None), None)
    if proven is not None and proven != day_first:
        found = _own_times(lines, InstantReader(zone, day_first=proven))
    judged = [one for line, one in found if has_token(line)] or [one for _, one in found]
    return FileForm(
        shape=shape,
        newest_first=_is_newest_first([one.ts_us for _, one in found]),
        unclear_zone=next((one.unclear_zone for one in judged if one.unclear_zone), None),
        days_proven=proven,
        days_unclear=any(one.days_unclear for one in judged),
    )


def _own_times(lines: list[str], reader: InstantReader) -> list[tuple[str, Instant]]:
    """Return the lines that have a time of their own, each with it."""
    found = ((line, peel(clean(line), reader).instant) for line in lines)
    return [(line, instant) for line, instant in found if instant is not None]


def _is_newest_first(times: list[int]) -> bool:
    is_falling = _mostly_falls(times) or _mostly_falls(_apart(times))
    return is_falling and times[0] - times[-1] > OVERTAKEN_US


def _mostly_falls(times: list[int]) -> bool:
    changes = [after - before for before, after in pairwise(times) if after != before]
    falls = sum(change < 0 for change in changes)
    return falls >= _LEAST_FALLS and falls >= _FALLS_OF_CHANGES * len(changes)


def _apart(times: list[int]) -> list[int]:
    """Leave out the times that are as near to the last one as those of one event may be.

    The lines of several writers rise about as often as they fall, whatever their order.
    """
    kept = times[:1]
    for ts_us in times:
        if abs(ts_us - kept[-1]) > OVERTAKEN_US:
            kept.append(ts_us)
    return kept


def _shape_of(sample: str) -> Shape:
    text = sample.lstrip()
    first, _, rest = text.partition("\n")
    if _DOCUMENT.match(text):
        # A line of JSON among others is a line.
        shapes = (Shape.ARRAYS,) if _is_json(first) else (Shape.ARRAYS, Shape.OBJECTS)
        begin = first if len(shapes) == 1 else text
        if not _is_entry(first) and (begin is text or _are_documents(rest.split("\n"))):
            for shape in shapes:
                if any(map(_is_entry, islice(records([begin], shape), _LOOKED_AT))):
                    return shape
    elif len(first) < _HEADING_LIMIT and is_heading(next(csv.reader([first]), [])):
        return Shape.TABLE
    return Shape.LINES


def _are_documents(lines: Iterable[str]) -> bool:
    """Whether lines may be a document of JSON each: none is an entry itself, or plain text."""
    texts = filter(None, map(str.strip, lines))
    return all(_DOCUMENT.match(text) and not _is_entry(text) for text in texts)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except UNREADABLE_JSON:
        return False
    return True


def _is_entry(text: str) -> bool:
    """Whether a text is one entry of a log, as JSON or as a string of a document."""
    if not text.startswith(("{", "[{")):
        return has_token(text)
    try:
        return entry_of(text) is not None
    except UNREADABLE_JSON:
        return False


def records(pieces: Iterable[str], shape: Shape) -> Iterator[str]:
    """Yield the records of a file, each as a line with its line end.

    Args:
        pieces: The text: lines, with their ends, or for documents pieces of any size.
        shape: How the records are separated.
    """
    if shape is Shape.TABLE:
        return _rows(iter(pieces))
    if shape is Shape.LINES:
        return iter(pieces)
    return _elements(pieces, is_wrapped=shape is Shape.ARRAYS)


def _rows(lines: Iterator[str]) -> Iterator[str]:
    """Yield the rows of a table under its headings; a row may go over several lines."""
    rows = csv.reader(line.replace("\0", "") for line in lines)
    names = [name.removeprefix(BOM) for name in next(rows, [])]
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield f"{error}\n"
            continue
        if row:
            yield msgspec.json.encode(dict(zip(names, row, strict=False))).decode() + "\n"


def _elements(pieces: Iterable[str], *, is_wrapped: bool) -> Iterator[str]:
    """Yield the elements of the outermost arrays, or the outermost objects, in linear time.

    What follows the last whole element of a document that was cut is yielded, too.

    Args:
        pieces: The document.
        is_wrapped: Whether the records are elements of arrays.
    """
    scan = _Scan(is_wrapped)
    for piece in pieces:
        yield from scan.take(piece)
    if scan.begin is not None and scan.text:
        yield scan.text[scan.begin : scan.begin + _RECORD_LIMIT].translate(_BREAKS) + "\n"


class _Scan:
    """A position in a document, and the brackets that are open there.

    Args:
        is_wrapped: Whether the records are elements of arrays.

    Attributes:
        text: What is not read yet, from the beginning of an open record on.
        begin: Index in `text` where the open record begins; None outside of any.
    """

    def __init__(self, is_wrapped: bool) -> None:
        self.text = ""
        self.begin: int | None = None
        self._is_wrapped = is_wrapped
        self._at = 0
        self._outside: list[str] = []
        """Brackets around the records."""
        self._depth = 0
        """Brackets that are open inside the record."""

    def take(self, piece: str) -> Iterator[str]:
        """Read on; yield the records that end in a further piece of the document."""
        self.text += piece
        for found in _TOKEN.finditer(self.text, self._at):
            mark = found[0]
            if mark[0] == '"' and not found[1]:
                self._at = found.start()
                break
            self._at = found.end()
            if self._mark(mark, found.start()):
                yield self._record(self.begin or 0, self._at)
                self.begin = None
        else:
            self._at = len(self.text)
        kept = self._at if self.begin is None else self.begin
        self.text, self._at = self.text[kept:], self._at - kept
        if self.begin is not None:
            self.begin = 0
        if len(self.text) > 2 * _RECORD_LIMIT:
            yield self.text[:_RECORD_LIMIT].translate(_BREAKS) + "\n"
            self.text, self._at = "", 0
            self.begin, self._depth = None, 0

    def _mark(self, mark: str, start: int) -> bool:
        """Take a bracket or a string; return whether it ends a record."""
        if self.begin is not None:
            self._depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark, 0)
            return self._depth == 0
        is_inside = bool(self._outside) and self._outside[-1] == "["
        if mark[0] == '"':
            self.begin = start if is_inside and self._is_wrapped else None
            return self.begin is not None
        if mark in "]}":
            del self._outside[-1:]
        elif is_inside if self._is_wrapped else mark == "{":
            self.begin, self._depth = start, 1
        else:
            self._outside.append(mark)
        return False

    def _record(self, begin: int, end: int) -> str:
        text = self.text[begin:end].translate(_BREAKS)[:_RECORD_LIMIT]
        if text.startswith("["):
            text = "[" + text[1:].lstrip()
        if text.startswith('"'):
            with suppress(*UNREADABLE_JSON):
                text = str(msgspec.json.decode(text)).translate(_BREAKS)
        return text + "\n"


def begins_record(line: str) -> bool:
    """Whether a line is the first of a record: it begins with a time, or is JSON."""
    return _BEGINS_RECORD.match(line) is not None
