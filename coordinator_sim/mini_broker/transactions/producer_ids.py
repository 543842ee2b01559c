"""Producer ids: a broker takes a block of them from the controller before it gives one away.

Source: kafka 4.3, RPCProducerIdManager.java (block by block); ProducerIdControlManager.java;
ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE.
"""

from collections.abc import Callable
from typing import Final

from coordinator_sim.mini_broker.changes import Change, ProducerIdsReserved
from coordinator_sim.mini_broker.image import ClusterImage

BLOCK_SIZE: Final = 1000


class ProducerIds:
    """The block of one broker.

    DEVIATION: Kafka asks for its next block when 90 % of one are gone; here it is taken when the
    first id of it is needed, so blocks of several brokers may follow each other in another order.

    Args:
        image: Knows which ids may be in use.
        change: Writes a change down before it takes effect.
    """

    __slots__ = ("_change", "_end", "_image", "_next")

    def __init__(self, image: ClusterImage, change: Callable[[Change], None]) -> None:
        self._image = image
        self._change = change
        self._next = 0
        self._end = 0

    def next_producer_id(self) -> int:
        """One that nobody had before, also in a life before this one."""
        if self._next == self._end:
            self._next = self._image.next_producer_id
            self._end = self._next + BLOCK_SIZE
            self._change(ProducerIdsReserved(self._end))
        producer_id = self._next
        self._next += 1
        return producer_id
