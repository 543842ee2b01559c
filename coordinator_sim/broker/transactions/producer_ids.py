"""Producer ids: a broker takes blocks of them from the controller, and hands them out one by one.

Source: kafka 4.3, RPCProducerIdManager.java (block by block); ProducerIdControlManager.java;
ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE.
"""

from collections.abc import Callable
from typing import Final

from coordinator_sim.broker.metadata.changes import Change, ProducerIdsReserved
from coordinator_sim.broker.metadata.image import MetadataImage

BLOCK_SIZE: Final = 1000


class ProducerIds:
    """The current block of one broker.

    DEVIATION: Kafka asks for the next block when 90 % of one are used; here it is taken when its
    first id is needed, so several brokers may get their blocks in another order.

    Args:
        image: The metadata, which knows the ids that may be in use.
        change: Applies a change, journal first.
    """

    __slots__ = ("_change", "_end", "_image", "_next")

    def __init__(self, image: MetadataImage, change: Callable[[Change], None]) -> None:
        self._image = image
        self._change = change
        self._next = 0
        self._end = 0

    def next_producer_id(self) -> int:
        """Return a producer id that was never used before, not even before a restart."""
        if self._next == self._end:
            self._next = self._image.next_producer_id
            self._end = self._next + BLOCK_SIZE
            self._change(ProducerIdsReserved(self._end))
        producer_id = self._next
        self._next += 1
        return producer_id
