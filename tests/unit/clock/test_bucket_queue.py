"""The heap under the timing wheel."""

from coordinator_sim.clock.timer_queue import Bucket, BucketQueue


def drained(*buckets: Bucket) -> list[Bucket]:
    """The buckets as they come up after all were queued."""
    queue = BucketQueue()
    for bucket in buckets:
        queue.add(bucket)
    drained = []
    while queue:
        drained.append(queue[0])
        queue.remove_first()
    return drained


def test_buckets_come_up_by_start() -> None:
    """The earliest comes first."""
    buckets = drained(*(Bucket(start_ms, 1) for start_ms in (5, 3, 9, 1, 7, 2, 8)))
    assert [bucket.start_ms for bucket in buckets] == [1, 2, 3, 5, 7, 8, 9]


def test_ties_come_up_as_java_sifts_them() -> None:
    """The last of equal buckets in the heap is sifted down past the others."""
    buckets = drained(*(Bucket(1, tick_ms) for tick_ms in (1, 2, 3, 4, 5)))
    assert [bucket.tick_ms for bucket in buckets] == [1, 5, 4, 3, 2]
