"""Request logs and partitions that are read in another process, by the readers of this one."""

import io
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import Kind
from coordinator_sim.ingest.readers import Reading, read_exchanges
from coordinator_sim.ingest.saved_state import decoded, encoded
from coordinator_sim.ingest.segments import PartitionLog
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.batches import Names
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.exchange import Exchange

_AT_ONCE: Final = 10_000
"""Exchanges or events that are made bytes of together."""
_SIZE_BYTES: Final = 8


class ReadRequests(Struct, frozen=True):
    """What came of a request log.

    Args:
        summary: Counts of its lines.
        problem: Why it could not be read to its end.
        first_us: See `TimedExchanges`.
        wait_us: See `TimedExchanges`.
        exchanges: See `unpacked`.
    """

    summary: IngestSummary
    problem: str | None
    first_us: int
    wait_us: int
    exchanges: bytes


def read_request_log(task: tuple[Path, Import], zone: tzinfo, *, keep_raw: bool) -> ReadRequests:
    """Read the requests of a file.

    Args:
        task: The file as its reader sees it, and as the user named it.
        zone: Zone of the times that name none.
        keep_raw: Whether exchanges keep their line.

    Raises:
        OSError: The file is not there.
    """
    path, named = task
    path.stat()
    one = Import(path, named.kind, more=named.more, day_first=named.day_first)
    reading = Reading(zone, keep_raw, frozenset(), lambda _path, _used: None, Names())
    told = read_exchanges(Kind.REQUEST_LOG, one, reading)
    name = named.name
    packed = _packed(replace(exchange, source_ref=name) for exchange in told.exchanges)
    return ReadRequests(one.summary, one.problem, told.first_us, told.wait_us, packed)


def read_partition(
    log: PartitionLog, root: Path, at: Callable[[Path], Path]
) -> tuple[PartitionLog, bytes]:
    """Read the segments that were added to a partition; return it after that, and its events.

    Args:
        log: The partition.
        root: Folder that relative paths are of.
        at: See `PartitionLog.move`.

    Raises:
        DataError: Two copies of the partition differ.
        OSError: A segment is not there.
    """
    log.move(root, at)
    packed = _packed(log.events())
    return log, packed


def unpacked(path: Path) -> Iterator[Any]:
    """Yield the exchanges or events of which such bytes are in a file, some at a time in memory."""
    with path.open("rb") as file:
        while size := int.from_bytes(file.read(_SIZE_BYTES)):
            yield from decoded(file.read(size), str(path))


def _packed(told: Iterable[Exchange] | Iterable[TraceEvent]) -> bytes:
    packed = io.BytesIO()
    rest = iter(told)
    while some := list(islice(rest, _AT_ONCE)):
        own = encoded(some)
        packed.write(len(own).to_bytes(_SIZE_BYTES) + own)
    return packed.getvalue()
