"""Chance of a real process: nothing is recorded, no seed gives it again."""

import secrets


class SystemChance:
    """The system's random numbers, as a port's jitter."""

    __slots__ = ()

    def draw(self, site: str, key: str, n: int) -> int:  # noqa: ARG002 - the Jitter protocol's names
        """A number in [0, n)."""
        return secrets.randbelow(n)
