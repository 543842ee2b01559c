"""Member ids drawn from a seed, the same ones as the Java oracle draws from it.

Source: java.util.SplittableRandom and java.util.UUID.randomUUID (OpenJDK 17).
"""

from collections import deque
from typing import Final

_GAMMA: Final = 0x9E3779B97F4A7C15
_MASK: Final = 0xFFFFFFFFFFFFFFFF


class SeededIds:
    """Random UUIDs from one seed.

    Args:
        seed: Any signed 64-bit number.
    """

    def __init__(self, seed: int = 0) -> None:
        self._state = seed & _MASK
        self._scripted: deque[str] = deque()

    def script(self, uuid: str) -> None:
        """Give out this UUID before drawing any more."""
        self._scripted.append(uuid)

    def new_uuid(self) -> str:
        """A random UUID, version 4, lower case with dashes."""
        if self._scripted:
            return self._scripted.popleft()
        drawn = bytearray(self._next_byte() for _ in range(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        text = drawn.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def _next_byte(self) -> int:
        """The low byte of the next draw. Source: SplittableRandom.nextInt and mix32."""
        self._state = z = (self._state + _GAMMA) & _MASK
        z = (z ^ (z >> 33)) * 0x62A9D9ED799705F5 & _MASK
        return ((z ^ (z >> 28)) * 0xCB24D0A5C88C35B3 & _MASK) >> 32 & 0xFF
