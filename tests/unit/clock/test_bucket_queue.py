"""The heap under the timing wheel."""

from coordinator_sim.clock.timer_queue import BucketQueue


def drain(queue: BucketQueue[str]) -> list[str]:
    """The items as they come up."""
    items = []
    while (item := queue.first()) is not None:
        items.append(item)
        queue.remove_first()
    return items


def test_items_come_up_by_instant() -> None:
    """The earliest comes first."""
    queue = BucketQueue[str]()
    for at_ms in (5, 3, 9, 1, 7, 2, 8):
        queue.add(at_ms, str(at_ms))
    assert drain(queue) == ["1", "2", "3", "5", "7", "8", "9"]


def test_ties_come_up_as_java_sifts_them() -> None:
    """The last of equal items in the heap is sifted down past the others."""
    queue = BucketQueue[str]()
    for name in ("a", "b", "c", "d", "e"):
        queue.add(1, name)
    assert drain(queue) == ["a", "e", "d", "c", "b"]
