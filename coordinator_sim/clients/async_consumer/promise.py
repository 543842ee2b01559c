"""A value that comes later, as Java's CompletableFuture: whoever waits for it is called at once."""

from collections.abc import Callable

Listener = Callable[[str | None, int], None]
"""Takes the name of the exception, None for success, and the present instant."""


class Promise:
    """An outcome and its listeners; completed at most once, later completions are ignored.

    Attributes:
        is_done: Whether the outcome is known.
        error: Name of the exception; None for success.
    """

    __slots__ = ("_listeners", "error", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self.error: str | None = None
        self._listeners: list[Listener] = []

    def complete(self, now_ms: int, error: str | None = None) -> None:
        """Set the outcome, and call the listeners in the order in which they came."""
        if self.is_done:
            return
        self.is_done, self.error = True, error
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(error, now_ms)

    def then(self, listener: Listener, now_ms: int) -> None:
        """Call the listener with the outcome: now if it is known, otherwise when it is."""
        if self.is_done:
            listener(self.error, now_ms)
        else:
            self._listeners.append(listener)


def kept() -> Promise:
    """Return a promise that succeeded already."""
    promise = Promise()
    promise.is_done = True
    return promise
