"""The fingerprint of a trace: equal runs have equal digests.

Storage of traces is elsewhere (`runs`).
"""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from coordinator_sim.trace.events import Source, TraceEvent

if TYPE_CHECKING:
    from coordinator_sim.trace.batches import EventBatch

_FLUSH_BYTES: Final = 1 << 16
_OBSERVED: Final = msgspec.structs.fields(TraceEvent)[
    TraceEvent.__struct_fields__.index("confidence")
].default


class TraceDigest:
    """SHA-256 over events as canonical JSON lines, in the order they are added.

    A line holds the columns of `TraceEvent` in declaration order, without `source_ref` and `raw`,
    which tell where the trace was read. Columns at their default are absent, attributes are sorted
    by name and bytes are base64. Run-wide facts such as the trace id are excluded.

    A SHA-256 cannot be put aside: one that was saved goes on from a line with its digest so far.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self._encoder = msgspec.json.Encoder(order="deterministic")
        self.count = 0
        """Events added so far."""

    def add(self, *events: TraceEvent) -> None:
        """Append events; their `seq` should be final, as a recorder stamps it."""
        buffer = self._buffer
        buffer += self._encoder.encode_lines(
            [
                event
                if event.raw is None and event.source_ref is None and event.confidence is _OBSERVED
                else _canonical(event)
                for event in events
            ]
        )
        self.count += len(events)
        if len(buffer) >= _FLUSH_BYTES:
            self._hash.update(buffer)
            buffer.clear()

    def add_batch(self, batch: "EventBatch", own_source: Source) -> None:
        """Append the events of a batch, numbered; a source that is the run's own is left out."""
        from coordinator_sim.trace.batch_json import json_lines, text_bytes

        if batch.details is None:
            self.add(*(_without(event, own_source) for event in batch.events()))
            return
        self._hash.update(self._buffer)
        self._buffer.clear()
        lines = json_lines(batch, own_source)
        if batch.objects is None:
            self._hash.update(text_bytes(lines))
            self.count += len(batch)
            return
        texts = iter(lines.to_pylist())
        for row in range(len(batch)):
            if batch.objects[row] is None:
                self._hash.update(next(texts).encode())
                self.count += 1
            else:
                (event,) = batch.take(slice(row, row + 1)).events()
                self.add(_without(event, own_source))
                self._hash.update(self._buffer)
                self._buffer.clear()

    def __getstate__(self) -> tuple[str, int]:
        return self.hexdigest(), self.count

    def __setstate__(self, state: tuple[str, int]) -> None:
        """Go on from a digest: its text stands for the events before."""
        self.__init__()  # type: ignore[misc]
        digest, self.count = state
        self._buffer += f"{digest}\n".encode()

    def hexdigest(self) -> str:
        """Return the digest of the events added so far, in lower-case hexadecimal."""
        self._hash.update(self._buffer)
        self._buffer.clear()
        return self._hash.hexdigest()


def _canonical(event: TraceEvent) -> TraceEvent:
    """The event without what the digest leaves out."""
    event = msgspec.structs.replace(event, raw=None, source_ref=None)
    # msgspec omits a float only if it is the default object itself, not its equal.
    if event.confidence == _OBSERVED:
        event = msgspec.structs.replace(event, confidence=_OBSERVED)
    return event


def digest_of(events: Iterable[TraceEvent]) -> str:
    """Return the digest of events in iteration order."""
    digest = TraceDigest()
    for event in events:
        digest.add(event)
    return digest.hexdigest()


def _without(event: TraceEvent, source: Source) -> TraceEvent:
    """The event without its source, where it is this one."""
    return msgspec.structs.replace(event, source=None) if event.source is source else event
