"""Decides whether the innermost loops run compiled; what they give is the same either way.

Compiled loops need numba, the extra `fast`. Loading it costs a process about 1.3 CPU-seconds, which
are won back over some twelve million records: so it is loaded once that many have been read, and
costs at most as much again as not to have it.
"""

from types import ModuleType
from typing import Final

LOAD_AFTER: Final = 12_000_000
"""Records that a process reads in numpy before it loads the compiled loops."""


class Loops:
    """The loops of a process: numpy at first, compiled once that pays."""

    __slots__ = ("_is_missing", "_left", "_module")

    def __init__(self) -> None:
        self._left = LOAD_AFTER
        self._module: ModuleType | None = None
        self._is_missing = False

    @property
    def current(self) -> ModuleType | None:
        """`compiled_loops`; None while numpy reads the columns."""
        return self._module if self._left <= 0 else None

    def load_after(self, records: int) -> None:
        """Use the compiled loops once so many more records have been read."""
        self._left = records

    def count(self, records: int) -> None:
        """Say that so many records are read now."""
        self._left -= records
        if self._left <= 0 and self._module is None and not self._is_missing:
            self.load()

    def load(self) -> bool:
        """Import the compiled loops; False where the extra `fast` is not installed."""
        try:
            from coordinator_sim.log.columns import compiled_loops
        except ImportError:
            # numba is missing, or is of a version that this numpy is too new for.
            self._is_missing = True
            return False
        self._module = compiled_loops
        return True


LOOPS: Final = Loops()
"""The loops of this process."""
