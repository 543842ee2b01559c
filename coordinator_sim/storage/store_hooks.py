"""Whom a partition's store tells of what it does: the log directory that it is in."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class StoreHooks:
    """What is called when something happens to a store; None calls nobody.

    Attributes:
        delete: Removes the folder instead of the store, where others know of it.
        grown: Hears of the first append since it was set.
        log_start: Hears where the log starts, which a file above the folder keeps.
        mended: Hears in a line of a file beside the batches that was missing or damaged.
        replace: Called before segments are replaced by fewer or smaller ones.
        waiting: Hears that `FileStore.flush_deadline_ms` says something.
    """

    delete: Callable[[], None] | None = None
    grown: Callable[[], None] | None = None
    log_start: Callable[[int], None] | None = None
    mended: Callable[[str], None] | None = None
    replace: Callable[[], None] | None = None
    waiting: Callable[[], None] | None = None
