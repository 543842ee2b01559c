"""What a ConsumeBench does with the records it reads.

Source: kafka trunk, trogdor/.../trogdor/workload/TimestampRecordProcessor.java.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.contract import Json
from coordinator_sim.trogdor.generator_specs import RecordProcessor, TimestampRecordProcessor
from coordinator_sim.trogdor.java_numbers import as_single, shortest_single
from coordinator_sim.trogdor.workloads.clients import Received
from coordinator_sim.trogdor.workloads.histogram import Histogram

_STAMP_BYTES: Final = 8


class LatencyStatus(Struct, frozen=True, rename="camel"):
    """Latencies from the stamp in a record's value until it was read, in milliseconds."""

    average_latency_ms: float
    p50_latency_ms: int
    p95_latency_ms: int
    p99_latency_ms: int


class StampLatencies:
    """Takes the latencies of records whose values begin with an instant.

    Args:
        spec: Which latencies are told apart.
    """

    def __init__(self, spec: TimestampRecordProcessor) -> None:
        self._spec = spec
        self._histogram = Histogram(spec.bucket_count)

    def process(self, records: Sequence[Received], now_ms: int) -> None:
        """Count the latency of each record; one without a stamp is passed over."""
        low, step = self._spec.histogram_min_ms, self._spec.histogram_step_ms
        for record in records:
            if record.value is None or len(record.value) < _STAMP_BYTES:
                continue
            stamp_ms = int.from_bytes(record.value[:_STAMP_BYTES], "little", signed=True)
            # Java divides towards zero; what is below zero counts as zero either way.
            self._histogram.add(max(0, (now_ms - stamp_ms - low) // step))

    def status(self) -> dict[str, Json]:
        """The latencies so far."""
        low, step = self._spec.histogram_min_ms, self._spec.histogram_step_ms
        summary = self._histogram.summary()
        average = as_single(as_single(summary.average) * step)
        p50, p95, p99 = (value * step + low for value in summary.percentiles)
        found = LatencyStatus(shortest_single(as_single(average + low)), p50, p95, p99)
        status: dict[str, Json] = jackson.tree(found)
        return status


def processor_of(spec: RecordProcessor) -> StampLatencies:
    """What processes records by a spec.

    Raises:
        TypeError: the class of the spec is unknown (a bug here).
    """
    match spec:
        case TimestampRecordProcessor():
            return StampLatencies(spec)
    raise TypeError(f"no record processor for {type(spec).__name__}")
