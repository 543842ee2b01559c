"""What is served, recorded as a trace on disk: the same as a simulated run leaves.

Events become lines at once, and a thread writes them. When it is too far behind the cluster waits:
nothing is dropped, and the waits are counted.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from coordinator_sim.errors import ConfigError, described, naming
from coordinator_sim.server.control.models import TraceView
from coordinator_sim.server.write_behind import WriteBehind
from coordinator_sim.trace.events import RunInfo, TraceEvent
from coordinator_sim.trace.schema import EVENTS_DIR, MANIFEST_NAME

_LOG: Final = logging.getLogger(__name__)
_Events = tuple[TraceEvent, ...]
_PAGE_BYTES: Final = 4_096


class _Recording:
    """One trace under way."""

    def __init__(self, directory: Path, info: RunInfo, *, overwrite: bool) -> None:
        from coordinator_sim.ingest.run_directory import (
            RunDirectoryWriter,
            check_replaceable,
            holds_trace,
        )

        check_replaceable(directory)
        if not overwrite and holds_trace(directory):
            raise ConfigError(
                f"{directory} holds a trace: name another directory, or replace it by --overwrite"
            )
        self.directory = directory
        self.count = 0
        self.behind = WriteBehind()
        self.failure: Exception | None = None
        with naming(directory):
            _check_room(directory)
            self._writer = RunDirectoryWriter(
                directory, info, format="jsonl", open_file=self.behind.open
            )

    def take(self, events: _Events) -> None:
        """Record them; what goes wrong ends the trace, and nobody else hears of it."""
        if self.failure is not None:
            return
        try:
            for event in events:
                self._writer.record(event)
            self.count += len(events)
        except Exception as error:  # noqa: BLE001 - else the brokers would stop
            self._failed(error)

    def end(self) -> None:
        """Return when all is written; a trace that failed is none."""
        try:
            with self._writer:
                if self.failure is not None:
                    raise self.failure  # noqa: TRY301 - for the writer, which leaves no trace then
        except Exception as error:  # noqa: BLE001 - else the trace could not be stopped
            if self.failure is None:
                self._failed(error)
        self.behind.end()

    def _failed(self, error: Exception) -> None:
        _LOG.error("the trace in %s ends here: %s", self.directory, described(error))
        self.failure = error


class Tracing:
    """Begins and ends traces of one served cluster.

    Args:
        info: What the whole run shares, asked when a trace begins.
        scratch: Makes a directory for a trace that names none.

    Attributes:
        changed: Called when a recording begins or ends.
    """

    __slots__ = ("_info", "_last", "_recording", "_scratch", "changed")

    def __init__(self, info: Callable[[], RunInfo], scratch: Callable[[], Path]) -> None:
        self._info = info
        self._scratch = scratch
        self._recording: _Recording | None = None
        self._last = TraceView(recording=False)
        self.changed: Callable[[], None] = lambda: None

    def take(self, events: _Events) -> None:
        """Record events, if anything is recorded; waits when the disk cannot keep up."""
        if self._recording is not None:
            self._recording.take(events)

    def start(self, directory: str | Path | None, *, overwrite: bool = False) -> None:
        """Begin a trace.

        Args:
            directory: Made if absent; None for one of its own.
            overwrite: Whether an earlier trace there is replaced.

        Raises:
            ConfigError: the directory holds an earlier trace, or something that is no trace, or a
                trace is under way.
            OSError: the directory cannot be made or written to; the error names it.
        """
        if self._recording is not None:
            raise ConfigError(f"a trace is under way in {self._recording.directory}: stop it first")
        path = self._scratch() if directory is None else Path(directory)
        self._recording = _Recording(path, self._info(), overwrite=overwrite)
        self.changed()

    async def stop(self) -> TraceView:
        """End the trace under way; its directory is whole then."""
        recording = self._recording
        if recording is not None:
            self._recording = None
            self.changed()
            await asyncio.to_thread(recording.end)
            self._last = _view(recording, is_on=False)
        return self._last

    def lines(self) -> Iterator[bytes] | None:
        """The events of the last finished trace as JSON lines; None when there is none."""
        if self._recording is not None or self._last.directory is None:
            return None
        path = Path(self._last.directory) / EVENTS_DIR / f"{EVENTS_DIR}.jsonl"
        return _lines(path)

    def view(self) -> TraceView:
        """What is recorded, or was last."""
        if self._recording is None:
            return self._last
        return _view(self._recording, is_on=True)


def _check_room(directory: Path) -> None:
    """Make a directory, and refuse a full disk at once: events are written later, by a thread.

    Raises:
        OSError: it cannot be made, or a page cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    probe = directory / f"{MANIFEST_NAME}.partial"
    try:
        probe.write_bytes(bytes(_PAGE_BYTES))
    finally:
        probe.unlink(missing_ok=True)


def _lines(path: Path) -> Iterator[bytes]:
    if path.is_file():
        with path.open("rb") as lines:
            yield from lines


def _view(recording: _Recording, *, is_on: bool) -> TraceView:
    return TraceView(
        recording=is_on and recording.failure is None,
        directory=str(recording.directory),
        events=recording.count,
        stalls=recording.behind.stalls,
    )
