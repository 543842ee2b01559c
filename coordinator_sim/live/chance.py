"""Random choices of a real process: not recorded, and not reproducible by a seed."""

import secrets


class SystemChance:
    """The system's random numbers, as a port's jitter."""

    def draw(self, site: str, key: str, n: int) -> int:  # noqa: ARG002 - the Jitter protocol's names
        """Return a random number in [0, n)."""
        return secrets.randbelow(n)
