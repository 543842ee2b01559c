"""Reads what `kafka-consumer-groups --describe` prints, once or again and again.

The tables have no time: that of the line above them counts, as `date` or `watch` writes it.

Source: ConsumerGroupCommand of kafka 2.8 (Scala), 3.9 and 4.3 (Java).
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from coordinator_sim.logtext.reading.instants import Instant, InstantReader
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.logtext.reading.text import clean
from coordinator_sim.trace.events import Event, OffsetEntry, Source, TimeKind, TraceEvent
from coordinator_sim.trace.group_snapshots import DESCRIBED

_COORDINATOR: Final = re.compile(r"(COORDINATOR|:\d{1,5}) +\((?:ID|-?\d+)\)")
_C_DATE: Final = re.compile(
    r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d(?: [AP]M)?)"
    r"( [A-Z]{3,5}| [+-]\d\d:?\d\d)? (\d{4})\b"
)
"""Time of C's locale. Source: date of GNU coreutils, watch of procps."""
_WHOLE_HOURS: Final = re.compile(r"(?<=\d\d:\d\d)((?: [AP]M)? [+-]\d\d)(?= \d{4}\b)")
"""The name of a zone that has none, such as `+05` of Asia/Tashkent."""
_COUNTS: Final = ("PARTITION", "#PARTITIONS", "#MEMBERS")
"""Columns of numbers, of which each table has one."""
_NONE: Final = "-"
_STRATEGY: Final = "ASSIGNMENT-STRATEGY"
_ATTRS: Final = {
    "LAG": "lag",
    "LOG-END-OFFSET": "log_end",
    "CURRENT-EPOCH": "member_epoch",
    "TARGET-EPOCH": "target_epoch",
    "TARGET-ASSIGNMENT-EPOCH": "target_epoch",
    "ASSIGNMENT": "partitions",
    "CURRENT-ASSIGNMENT": "partitions",
    "TARGET-ASSIGNMENT": "target",
    "UPGRADE": "upgrade",
    "STATE": "state",
}
"""Columns that become attributes."""
_WITHOUT_TIME: Final = "row of a table without a time above it"


def read_descriptions(
    lines: Iterable[str], reader: InstantReader, source_ref: str, summary: IngestSummary
) -> Iterator[TraceEvent]:
    """Yield an event for each row of the tables.

    Args:
        lines: The text.
        reader: Reads the times between the tables.
        source_ref: Names the text in the events.
        summary: Receives the counts.
    """
    at: Instant | None = None
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        summary.lines += 1
        text = clean(line)
        words = _COORDINATOR.sub(r"\1", text).replace("), ", "),").split()
        if found := reader.find_all(year_first(text)):
            at, names = found[0], []
            summary.known += 1
        elif words[:1] == ["GROUP"] and not set(_COUNTS).isdisjoint(words):
            names = words
            summary.known += 1
        elif (row := _row(names, words)) and at is not None:
            summary.parsed += 1
            event = _event(row, at, number, source_ref)
            summary.count_event(event)
            yield event
        elif row:
            summary.count_unparsed(_WITHOUT_TIME)


def year_first(text: str) -> str:
    """Return a text with the times of C's locale in an order that `InstantReader` knows."""
    return _C_DATE.sub(r"\5 \1 \2 \3\4", _WHOLE_HOURS.sub(r"\g<1>00", text))


def _row(names: list[str], words: list[str]) -> dict[str, str]:
    """Return the columns of a row that have a value, by name; empty for a line that is no row."""
    if _STRATEGY in names and len(words) == len(names) - 1:
        words = [*words[:2], _NONE, *words[2:]]  # No strategy is printed of an empty group.
    if not names or len(words) < len(names):
        return {}
    words = _ids_joined(names, words)
    last = len(names) - 1
    row = dict(zip(names, [*words[:last], " ".join(words[last:])], strict=True))
    none = _NONE if "LAG" in row else ""  # A member without partitions has a row of its own.
    if not all(row[name].isdecimal() or row[name] == none for name in _COUNTS if name in row):
        return {}
    return {name: value for name, value in row.items() if value != _NONE}


def _ids_joined(names: list[str], words: list[str]) -> list[str]:
    """Return the words of a row, those of an id around its host as one: ids may have spaces."""
    if "HOST" not in names or "CONSUMER-ID" not in names:
        return words
    member, host = names.index("CONSUMER-ID"), names.index("HOST")
    at = next((at for at in range(host, len(words)) if words[at].startswith("/")), host)
    ends = member + 1 + at - host, len(words) - len(names) + host + 2
    joined = [*words[:member], " ".join(words[member : ends[0]]), *words[ends[0] : at + 1]]
    return [*joined, " ".join(words[at + 1 : ends[1]]), *words[ends[1] :]]


def _event(row: dict[str, str], at: Instant, number: int, source_ref: str) -> TraceEvent:
    entries: tuple[OffsetEntry, ...] = ()
    if "PARTITION" in row:
        offset = _number(row.get("CURRENT-OFFSET"))
        entries = (
            OffsetEntry(row["TOPIC"], int(row["PARTITION"]), -1 if offset is None else offset),
        )
    return TraceEvent(
        event=Event.LIFECYCLE,
        ts_us=at.ts_us,
        ts_err_us=at.err_us,
        ts_kind=TimeKind.LOGGED,
        seq=number,
        source=Source.GROUP_DESCRIPTION,
        source_ref=source_ref,
        group_id=row["GROUP"],
        member_id=row.get("CONSUMER-ID"),
        group_instance_id=row.get("GROUP-INSTANCE-ID"),
        client_id=row.get("CLIENT-ID"),
        client_host=row.get("HOST"),
        members=_number(row.get("#MEMBERS")),
        generation=_number(row.get("GROUP-EPOCH")),
        protocol_name=row.get(_STRATEGY),
        offsets=entries,
        attrs={"sign": DESCRIBED}
        | {attr: row[name] for name, attr in _ATTRS.items() if name in row},
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
