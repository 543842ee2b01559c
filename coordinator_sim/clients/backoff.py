"""Exponential backoff in whole milliseconds, and the source of a port's random choices."""

from typing import Final, Protocol

from msgspec import Struct

_UNIT: Final = 10_000
_SPREAD: Final = 2_000
"""20 percent of `_UNIT`: CommonClientConfigs.RETRY_BACKOFF_JITTER."""


class Jitter(Protocol):
    """Source of a port's random choices. 0 is always the neutral choice."""

    def draw(self, site: str, key: str, n: int) -> int:
        """Return a number in [0, n), n at least 1, chosen for this site and key."""
        ...


class _NoJitter:
    """The neutral choice always: factor 1, first node."""

    __slots__ = ()

    def draw(self, site: str, key: str, n: int) -> int:  # noqa: ARG002 - the Jitter protocol's names
        """Return zero."""
        return 0


NO_JITTER: Final[Jitter] = _NoJitter()
"""Jitter that never deviates; backoffs are then exact powers of two."""


class ExponentialBackoff(Struct, frozen=True, gc=False):
    """`initial_ms * 2^attempts`, at most `max_ms`, within 20 percent either way.

    DEVIATION: computed in integers; Java multiplies doubles and truncates, which can differ by
    one millisecond at the cap before jitter. No client can tell this from jitter.

    Source: kafka trunk, clients/.../common/utils/ExponentialBackoff.java, backoff.
    """

    initial_ms: int
    max_ms: int

    def backoff_ms(self, attempts: int, jitter: Jitter, *, site: str, key: str) -> int:
        """Return the wait before attempt number `attempts + 1`; `attempts` counts from 0.

        Returns:
            Milliseconds, 0 to `max_ms`. When `initial_ms` is not below `max_ms` there is no
            growth and no jitter.
        """
        if self.initial_ms >= self.max_ms:
            return self.max_ms
        term = min(max(self.initial_ms, 0) << min(attempts, 40), self.max_ms)
        drawn = jitter.draw(site, key, 2 * _SPREAD + 1)
        deviation = drawn if drawn <= _SPREAD else drawn - (2 * _SPREAD + 1)
        return min(term * (_UNIT + deviation) // _UNIT, self.max_ms)
