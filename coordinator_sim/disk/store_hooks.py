"""Events of a partition's store, to which its log directory listens."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class StoreHooks:
    """Callbacks for events of a store; None for no call.

    Attributes:
        delete: Deletes the folder in the store's place.
        grown: Called on the first append after it was set.
        log_start: Called with a new log start, which a file above the folder keeps.
        mended: Called with a line on a missing or damaged file beside the batches.
        replace: Called before segments are replaced by fewer or smaller ones.
        waiting: Called when `FileStore.flush_deadline_ms` gets a value.
    """

    delete: Callable[[], None] | None = None
    grown: Callable[[], None] | None = None
    log_start: Callable[[int], None] | None = None
    mended: Callable[[str], None] | None = None
    replace: Callable[[], None] | None = None
    waiting: Callable[[], None] | None = None
