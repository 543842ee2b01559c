"""Recording of a served cluster as a trace on disk, like that of a simulated run.

Events become lines at once, and a thread writes them. When the thread is too far behind, the
cluster waits: nothing is dropped, and the waits are counted.

Files written by a thread, so that the caller normally does not wait for the disk.

The queue of the thread is bounded. When it is full, the caller waits: nothing is dropped.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import structs

from coordinator_sim.errors import ConfigError, described, naming
from coordinator_sim.server.control.models import TraceView
from coordinator_sim.trace.events import RunInfo, TraceEvent
from coordinator_sim.trace.schema import EVENTS_DIR, MANIFEST_NAME

CHUNK_BYTES: Final = 1 << 18
"""Bytes of a file that are collected before they are queued: switching threads costs time."""
CHUNKS: Final = 64

_Chunk = tuple[BinaryIO, bytearray]


class WriteBehind:
    """The writing thread, which starts with the first file, and its queue.

    Args:
        chunks: Size of the queue in chunks.

    Attributes:
        stalls: How often a caller had to wait for room.
    """

    def __init__(self, chunks: int = CHUNKS) -> None:
        self.stalls = 0
        self._failure: OSError | None = None
        self._waiting: queue.Queue[_Chunk | None] = queue.Queue(chunks)
        self._thread: threading.Thread | None = None

    def open(self, path: Path) -> "LaterFile":
        """Create a file, to be written from its beginning.

        Raises:
            OSError: it cannot be created.
        """
        file = path.open("wb", buffering=0)
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="write-behind", daemon=True)
            self._thread.start()
        return LaterFile(self, file)

    def put(self, file: BinaryIO, data: bytearray) -> None:
        """Queue bytes to be written; they must not change any more.

        Raises:
            OSError: earlier bytes could not be written.
        """
        self._check()
        try:
            self._waiting.put_nowait((file, data))
        except queue.Full:
            self.stalls += 1
            self._waiting.put((file, data))

    def settle(self) -> None:
        """Return when everything is written.

        Raises:
            OSError: some bytes could not be written.
        """
        self._waiting.join()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """Return when the thread has ended."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()

    def _write(self) -> None:
        while (chunk := self._waiting.get()) is not None:
            file, data = chunk
            try:
                if self._failure is None:
                    _write_all(file, data)
            except OSError as error:
                self._failure = error
            finally:
                self._waiting.task_done()


class LaterFile:
    """One file whose bytes reach the disk later.

    Args:
        behind: The writing thread.
        file: The file, unbuffered.
    """

    def __init__(self, behind: WriteBehind, file: BinaryIO) -> None:
        self._behind = behind
        self._file = file
        self._gathered = bytearray()

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            OSError: earlier bytes could not be written.
        """
        self._gathered += data
        if len(self._gathered) >= CHUNK_BYTES:
            self._hand_over()

    def flush(self) -> None:
        """Return when all is written.

        Raises:
            OSError: some bytes could not be written.
        """
        self._hand_over()
        self._behind.settle()

    def close(self) -> None:
        """Return when all is written and the file is closed.

        Raises:
            OSError: some bytes could not be written.
        """
        try:
            self.flush()
        finally:
            self._file.close()

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, bytearray()
        self._behind.put(self._file, gathered)


def _write_all(file: BinaryIO, data: bytearray) -> None:
    """Write all bytes; a single write may take only a part, for example on a nearly full disk."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


_LOG: Final = logging.getLogger(__name__)
_Events = tuple[TraceEvent, ...]
_PAGE_BYTES: Final = 4_096


class _Recording:
    """One trace in progress."""

    def __init__(self, directory: Path, info: RunInfo, *, overwrite: bool) -> None:
        from coordinator_sim.runs.run_directory import (
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
        """Record events; an error ends the trace and is logged, but not raised."""
        if self.failure is not None:
            return
        try:
            for event in events:
                self._writer.record(event)
            self.count += len(events)
        except Exception as error:  # noqa: BLE001 - else the brokers would stop
            self._failed(error)

    def end(self) -> None:
        """Finish the trace and return when all is written; a failed one leaves no trace."""
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
    """Starts and stops traces of one served cluster.

    Args:
        info: Gives the facts of the run, called when a trace begins.
        scratch: Makes a directory for a trace without one.

    Attributes:
        changed: Called when a recording begins or ends.
    """

    def __init__(self, info: Callable[[], RunInfo], scratch: Callable[[], Path]) -> None:
        self._info = info
        self._scratch = scratch
        self._recording: _Recording | None = None
        self._last = TraceView(recording=False)
        self.changed: Callable[[], None] = lambda: None

    def take(self, events: _Events) -> None:
        """Record events while a trace is on; waits when the disk cannot keep up."""
        if self._recording is not None:
            self._recording.take(events)

    def start(
        self, directory: str | Path | None, *, overwrite: bool = False, name: str | None = None
    ) -> None:
        """Start a trace.

        Args:
            directory: Directory of the trace, created if absent; None for a temporary one.
            overwrite: Whether an earlier trace there is replaced.
            name: What reports call the run; None for the cluster's id.

        Raises:
            ConfigError: the directory has an earlier trace or other files, or a trace is on.
            OSError: the directory cannot be created or written; the error names it.
        """
        if self._recording is not None:
            raise ConfigError(f"a trace is under way in {self._recording.directory}: stop it first")
        path = self._scratch() if directory is None else Path(directory)
        info = structs.replace(self._info(), scenario=name)
        self._recording = _Recording(path, info, overwrite=overwrite)
        self.changed()

    async def stop(self) -> TraceView:
        """Stop the current trace and return when its directory is complete."""
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
        """The state of the current trace, or of the last one."""
        if self._recording is None:
            return self._last
        return _view(self._recording, is_on=True)


def _check_room(directory: Path) -> None:
    """Make a directory, and detect a full disk now: a thread writes the events later.

    Raises:
        OSError: it cannot be created, or a page cannot be written.
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
