"""One entry of a broker's log, and its layout in Kafka's own configuration."""

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

_US_PER_SECOND: Final = 1_000_000

INFO: Final = "INFO"
WARN: Final = "WARN"
ERROR: Final = "ERROR"


class Entry(Struct, frozen=True):
    """Arguments of one call of a logger.

    Args:
        logger: Name of the logging class.
        message: Message with the prefix by which a class names its broker.
        level: Level as log4j prints it.
    """

    logger: str
    message: str
    level: str = INFO


def layout(entry: Entry, ts_us: int) -> str:
    """Return the line of an entry, without a line end; the time is UTC, in whole milliseconds.

    Source: config/log4j.properties and config/log4j2.yaml, pattern `[%d] %p %m (%c)%n`.
    """
    at = datetime.fromtimestamp(ts_us // _US_PER_SECOND, UTC)
    millis = ts_us % _US_PER_SECOND // 1_000
    return f"[{at:%Y-%m-%d %H:%M:%S},{millis:03}] {entry.level} {entry.message} ({entry.logger})"
