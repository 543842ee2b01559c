"""The loggers of one worker and their levels, as `/admin/loggers` shows and sets them.

Nothing is logged through them. Source: kafka trunk, connect/runtime/.../Loggers.java.
"""

from typing import Final

from msgspec import Struct

ROOT: Final = "root"
LEVELS: Final = ("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL")
"""Log4j's levels."""


class LoggerLevel(Struct, frozen=True):
    """The level of one logger.

    Args:
        last_modified_ms: When the level was last set; None if never since the worker's start.
    """

    level: str
    last_modified_ms: int | None


class Loggers:
    """All loggers of a worker.

    Args:
        root_level: Level of every logger without a level of its own.
    """

    def __init__(self, root_level: str = "INFO") -> None:
        self._levels = {ROOT: LoggerLevel(root_level, None)}

    def level(self, logger: str) -> LoggerLevel | None:
        """Return the level of a logger; None when the logger does not exist."""
        return self._levels.get(ROOT if logger.lower() == ROOT else logger)

    def all_levels(self) -> dict[str, LoggerLevel]:
        """Return the loggers that have a level of their own, sorted by name."""
        return dict(sorted(self._levels.items()))

    def set_level(self, namespace: str, level: str, now_ms: int) -> tuple[str, ...]:
        """Set the level of a namespace and of all loggers below it.

        QUIRK: every logger whose name begins with the namespace is set, so `a.b` reaches `a.bc`.

        Args:
            namespace: A logger's name, or the beginning of several; `root` for all.
            level: One of `LEVELS`, in any case.
            now_ms: The present instant.

        Returns:
            The affected loggers, sorted, including those that have the level already.
        """
        if namespace.lower() == ROOT:
            reached = sorted(self._levels)
        else:
            known = {name for name in self._levels if name.startswith(namespace)} - {ROOT}
            reached = sorted({*known, namespace})
        wanted = level.upper()
        for name in reached:
            present = self._levels.get(name) or LoggerLevel(self._levels[ROOT].level, None)
            if present.level != wanted:
                present = LoggerLevel(wanted, now_ms)
            self._levels[name] = present
        return tuple(reached)
