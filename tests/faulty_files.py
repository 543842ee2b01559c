"""A file system that goes wrong when a test wants it to."""

import os
from typing import Literal

from msgspec import Struct

from coordinator_sim.disk.files import Files

Verb = Literal["write", "read", "sync", "truncate", "open", "rename", "remove"]
"""What a file system can refuse."""


class Fault(Struct, kw_only=True):
    """What goes wrong at the disk, and when.

    Args:
        verb: Which is refused.
        errno: Of the `OSError`, as `errno.ENOSPC`.
        path: Part of the file's path, as `/orders-0/`; empty for any.
        after: How many such calls still go well before.
        times: How many are refused then; None for all.
        short: Bytes of a refused write that reach the file.
        hits: Counts those that were refused.
    """

    verb: Verb
    errno: int
    path: str = ""
    after: int = 0
    times: int | None = 1
    short: int = 0
    hits: int = 0


class FaultyFiles(Files):
    """A file system that goes wrong where its `faults` say so, and is sound where they do not."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Fault] = []

    def open(self, path: str) -> int:
        """Do what `Files.open` does."""
        self._refuse("open", path)
        return super().open(path)

    def write(self, fd: int, data: bytes | memoryview, position: int) -> int:
        """Do what `Files.write` does; a fault lets `short` bytes through first."""
        fault = self._due("write", self.paths[fd])
        if fault is None:
            return super().write(fd, data, position)
        if fault.short:
            super().write(fd, data[: fault.short], position)
        raise OSError(fault.errno, os.strerror(fault.errno), self.paths[fd])

    def read(self, fd: int, count: int, position: int) -> bytes:
        """Do what `Files.read` does."""
        self._refuse("read", self.paths[fd])
        return super().read(fd, count, position)

    def truncate(self, fd: int, size: int) -> None:
        """Do what `Files.truncate` does."""
        self._refuse("truncate", self.paths[fd])
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        """Do what `Files.sync` does."""
        self._refuse("sync", self.paths[fd])
        super().sync(fd)

    def rename(self, path: str, new: str) -> None:
        """Do what `Files.rename` does."""
        self._refuse("rename", path)
        super().rename(path, new)

    def remove(self, path: str) -> None:
        """Do what `Files.remove` does."""
        self._refuse("remove", path)
        super().remove(path)

    def _refuse(self, verb: Verb, path: str) -> None:
        fault = self._due(verb, path)
        if fault is not None:
            raise OSError(fault.errno, os.strerror(fault.errno), path)

    def _due(self, verb: Verb, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.verb != verb or fault.path not in path or fault.times == 0:
                continue
            if fault.after:
                fault.after -= 1
                continue
            fault.hits += 1
            if fault.times is not None:
                fault.times -= 1
            return fault
        return None
