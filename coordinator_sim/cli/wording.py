"""Numbers, names and times in the words of the commands' stories."""

from typing import Final

_NAMES_SHOWN: Final = 4


def listed(names: tuple[str, ...]) -> str:
    """A few names, and how many more."""
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def duration(duration_ms: int) -> str:
    """A duration as people say it."""
    if duration_ms < 1000:  # noqa: PLR2004 - a second
        return f"{duration_ms} ms"
    return f"{duration_ms / 1000:.3f} s"
