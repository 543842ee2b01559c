"""What a run of a group costs: moves, interruptions, standstill, work without an owner.

The definitions are those of `replay/sharing`, so that both protocols have one set of figures.
"""

from collections.abc import Iterable

from msgspec import Struct

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.replay.sharing import SharingCosts
from coordinator_sim.replay.strategies import Owners, fewest_moves, moves_between


class Window(Struct, frozen=True):
    """The time that counts, milliseconds of the trace."""

    from_ms: int
    until_ms: int


class Ledger:
    """Adds up who works on what, and what each target moves.

    Args:
        size: Number of partitions.
        window: What is outside costs nothing.
        dropped: Gets the partitions that lose a working owner within the window.
    """

    def __init__(self, size: int, window: Window, dropped: set[object]) -> None:
        self._size = size
        self._window = window
        self._dropped = dropped
        self._now_ms = window.from_ms
        self._counts = False
        self._workers: Owners = {}
        self._worked: set[object] = set()
        self._since: dict[object, int] = {}
        self._targets: Owners = {}
        self._settled: Owners = {}
        self._keys: tuple[str, ...] = ()
        self._counts_target = False
        self.targets = 0
        self._moved = self._needless = self._interrupted = 0
        self._stopped_ms = self._unowned_ms = self._longest_ms = 0

    # -- who works ---------------------------------------------------------------------------

    def opens(self, now_ms: int) -> None:
        """Note that the group has a member: from here on partitions that lost their owner cost."""
        self._go(now_ms)
        self._counts = True

    def closes(self, now_ms: int) -> None:
        """Note that the group is empty: nobody is there who could work."""
        self._go(now_ms)
        self._counts = False
        self._since.clear()

    def works(self, key: str, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Note that a member works on further partitions."""
        self._go(now_ms)
        for each in partitions:
            self._workers[each] = key
            self._worked.add(each)
            self._end_gap(each, now_ms)

    def drops(self, key: str, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Note that a member works on these no more."""
        self._go(now_ms)
        for each in partitions:
            if self._workers.get(each) != key:
                continue
            del self._workers[each]
            self._since[each] = now_ms
            if self._is_within(now_ms):
                self._interrupted += 1
                self._dropped.add(each)

    def _end_gap(self, partition: object, now_ms: int) -> None:
        since_ms = self._since.pop(partition, None)
        if since_ms is not None and self._is_within(since_ms):
            length_ms = min(now_ms, self._window.until_ms) - since_ms
            self._longest_ms = max(self._longest_ms, length_ms)

    def _is_within(self, at_ms: int) -> bool:
        return self._window.from_ms <= at_ms <= self._window.until_ms

    def _go(self, to_ms: int) -> None:
        """Go on in time, and count what nobody works on meanwhile."""
        from_ms = self._now_ms
        self._now_ms = max(from_ms, min(to_ms, self._window.until_ms))
        length_ms = self._now_ms - from_ms
        if not self._counts or not length_ms:
            return
        if self._worked and not self._workers:
            self._stopped_ms += length_ms
        self._unowned_ms += (len(self._worked) - len(self._workers)) * length_ms

    # -- what moves --------------------------------------------------------------------------

    def computed(self, keys: tuple[str, ...], now_ms: int) -> None:
        """Note that a new target was computed for these members; `given` reports its contents."""
        self._settle()
        self._keys = keys
        self._counts_target = self._is_within(now_ms)
        self.targets += self._counts_target

    def given(self, key: str, partitions: Iterable[TopicPartition]) -> None:
        """Note what the newest target gives to a member whose part is another than before."""
        for each in partitions:
            self._targets[each] = key

    def _settle(self) -> None:
        """Compare the newest target with the one before."""
        if self._settled and self._counts_target:
            moved = moves_between(self._settled, self._targets)
            self._moved += moved
            if moved:
                fewest = fewest_moves(self._settled, self._targets, self._keys)
                self._needless += max(0, moved - fewest)
        self._settled = dict(self._targets)
        self._counts_target = False

    def costs(self, strategy: str, *, is_uniform: bool) -> SharingCosts:
        """Return the costs; nothing can be noted afterwards."""
        self._go(self._window.until_ms)
        self._settle()
        for partition in list(self._since):
            self._end_gap(partition, self._window.until_ms)
        return SharingCosts(
            strategy=strategy,
            items=self._size,
            rebalances=self.targets,
            moved=self._moved,
            needless=self._needless if is_uniform else None,
            stopped_ms=self._stopped_ms,
            unowned_ms=self._unowned_ms,
            interrupted=self._interrupted,
            longest_ms=self._longest_ms,
        )
