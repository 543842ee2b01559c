"""What a cluster draws from its seed beside member ids, each kind apart from the others."""

from collections.abc import Callable

from coordinator_sim.mini_broker.faults import Chance
from coordinator_sim.mini_broker.fetch_sessions import DrawId
from coordinator_sim.protocol.seeded_ids import SeededIds

DrawBytes = Callable[[int], bytes]
"""Draws so many bytes."""


def chance(seed: int) -> Chance:
    """Draws for fault rules, apart from those of member ids."""
    ids = SeededIds(seed)
    return lambda: int(ids.new_uuid()[:8], 16) / 2**32


def drawn_ids(seed: int) -> DrawId:
    """Draws ids of fetch sessions, apart from those of members."""
    ids = SeededIds(seed)
    return lambda low, high: low + int(ids.new_uuid()[:8], 16) % (high - low)


def drawn_bytes(seed: int) -> DrawBytes:
    """Draws nonces and salts, apart from everything else."""
    ids = SeededIds(seed)

    def draw(count: int) -> bytes:
        drawn = b"".join(bytes.fromhex(ids.new_uuid().replace("-", "")) for _ in range(count))
        return drawn[:count]

    return draw
