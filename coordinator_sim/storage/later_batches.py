"""A group coordinator's batches, kept as they came until somebody wants bytes."""

from typing import Final

from coordinator_sim.protocol.records import LogBatch, LogKey
from coordinator_sim.wire.log_batches import BatchForm, encode_batch

_HEADER_BYTES: Final = 61
_RECORD_BYTES: Final = 100
"""About one offset commit, key and value (measured on recorded segments: 70 to 140)."""


class LaterLogBatch:
    """A batch of the offsets topic that becomes bytes at the first read.

    Args:
        batch: With records, without a marker.
        form: What the broker adds.
    """

    __slots__ = ("_batch", "form", "size_hint")

    def __init__(self, batch: LogBatch, form: BatchForm) -> None:
        self._batch = batch
        self.form = form
        self.size_hint = _HEADER_BYTES + _RECORD_BYTES * len(batch.records)

    def encoded(self) -> bytes:
        """The whole batch."""
        return encode_batch(self._batch, self.form)

    def keys(self) -> tuple[LogKey, ...]:
        """Of its records; none where a transaction's fate decides what stays."""
        if self._batch.producer_id >= 0:
            return ()
        return tuple(record.key for record in self._batch.records)
