"""Random draws of a cluster from its seed, beside member ids; each kind has its own sequence."""

from collections.abc import Callable

from coordinator_sim.broker.faults.faults import Chance
from coordinator_sim.broker.records.fetch_sessions import DrawId
from coordinator_sim.kafka.seeded_ids import SeededIds

DrawBytes = Callable[[int], bytes]
"""Draws the given number of bytes."""


def chance(seed: int) -> Chance:
    """A source of draws for fault rules, with its own sequence."""
    ids = SeededIds(seed)
    return lambda: int(ids.new_uuid()[:8], 16) / 2**32


def drawn_ids(seed: int) -> DrawId:
    """A source of fetch session ids, with its own sequence."""
    ids = SeededIds(seed)
    return lambda low, high: low + int(ids.new_uuid()[:8], 16) % (high - low)


def drawn_bytes(seed: int) -> DrawBytes:
    """A source of nonces and salts, with its own sequence."""
    ids = SeededIds(seed)

    def draw(count: int) -> bytes:
        drawn = b"".join(bytes.fromhex(ids.new_uuid().replace("-", "")) for _ in range(count))
        return drawn[:count]

    return draw
