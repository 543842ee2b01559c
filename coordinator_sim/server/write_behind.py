"""Files written by a thread, so that the caller normally does not wait for the disk.

The queue of the thread is bounded. When it is full, the caller waits: nothing is dropped.
"""

import queue
import threading
from pathlib import Path
from typing import BinaryIO, Final

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

    __slots__ = ("_behind", "_file", "_gathered")

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

    def close(self) -> None:
        """Return when all is written.

        Raises:
            OSError: some bytes could not be written.
        """
        try:
            self._hand_over()
            self._behind.settle()
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
