"""Fewer records at once where deliveries keep failing, so that one bad record is found.

Source: kafka 4.3.1, core/.../share/SharePartition.java, shouldThrottleRecordsDelivery and
acquireSubsetBatchRecords.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.broker.shares.in_flight_batch import InFlightBatch
from coordinator_sim.broker.shares.in_flight_state import InFlightState

_LEAST_THROTTLED: Final = 2
"""Deliveries after which a record is throttled at the earliest."""

_LEAST_ISOLATED: Final = 2
"""A delivery count limit up to which the last delivery is like any other."""


class DeliveryThrottle:
    """From which delivery on fewer records are handed out at once.

    Args:
        limit: How often a record is delivered at most.
    """

    __slots__ = ("_limit", "_throttled_from")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._throttled_from = max(_LEAST_THROTTLED, -(-limit // 2))

    def holds_back(self, batch: InFlightBatch, first_offset: int, last_offset: int) -> bool:
        """Whether available records of a batch were delivered so often.

        Source: SharePartition.shouldThrottleRecordsDelivery.
        """
        return any(
            state.is_acquirable and state.delivery_count >= self._throttled_from
            for first, last, state in batch.parts()
            if not batch.is_split or (first_offset <= last and first <= last_offset)
        )

    def is_last(self, state: InFlightState) -> bool:
        """Whether the next delivery is the last one, which a record has alone."""
        return self._limit > _LEAST_ISOLATED and state.delivery_count == self._limit - 1

    def was_last(self, state: InFlightState) -> bool:
        """Whether this delivery is the last one."""
        return self._limit > _LEAST_ISOLATED and state.delivery_count == self._limit

    def bound(self, batch_size: int, state: InFlightState) -> int | None:
        """The most records that one acquisition may take with this one; None if not throttled.

        The bound is half of `batch_size` at the first throttled delivery, and halves with each
        further delivery; it is at least 1.
        """
        beyond = state.delivery_count - self._throttled_from
        return None if beyond < 0 else max(1, batch_size >> (beyond + 1))


def acquire_offsets(
    batch: InFlightBatch,
    offsets: tuple[int, int],
    member_id: str,
    throttle: DeliveryThrottle,
    max_records: int | None,
) -> Iterator[tuple[int, int, InFlightState]]:
    """Hand single records of a split batch to a member; yields each run of them.

    Args:
        batch: Of the records.
        offsets: The first and the last one that may be acquired.
        member_id: The member.
        throttle: Bounds the number by failed deliveries.
        max_records: Bounds the number, if it is one.

    Source: SharePartition.acquireSubsetBatchRecords.
    """
    count = 0
    throttled_max: int | None = None
    for first, last, state in batch.runs_in(*offsets):
        if not state.is_acquirable:
            continue
        is_last = throttle.is_last(state)
        if is_last and count:
            break
        if throttled_max is None:
            throttled_max = throttle.bound(batch.size, state)
        # Kafka fails at the first record that has a lock; those after it stay as they are. A bound
        # that is found when as many records were acquired never ends it.
        bounds = (max_records, throttled_max, count + 1 if is_last or state.lock else None)
        left = [each - count for each in bounds if each is not None and each > count]
        end = min([last - first + 1, *left])
        batch.cut((first, first + end))
        state.acquire(member_id)
        yield first, first + end - 1, state
        count += end
        if throttle.was_last(state) or count in (max_records, throttled_max):
            break
