"""All access to the file system: reads, writes, flushes and renames.

A test can replace it, for example by one whose disk is full at the k-th write. Paths are strings,
not `Path`, because a directory of ten thousand partitions has many of them.
"""

import os
import shutil
from collections import OrderedDict
from pathlib import Path
from typing import Final, Protocol

_MODE: Final = 0o644
DAMAGED: Final = ".damaged"
"""Suffix of damaged files that are kept under another name."""
_MAX_NAME: Final = 255
"""Longest name of a file in bytes."""
OPEN_FILES: Final = 256
"""Segments that a log directory keeps open by default; a process may usually have 1,024 files."""


class Files:
    """The real file system. Every method raises `OSError` with the path when the system fails.

    Attributes:
        paths: Paths of open descriptors: the system names no file when a write fails.
    """

    def __init__(self) -> None:
        self.paths: dict[int, str] = {}

    def open(self, path: str) -> int:
        """Open a file for reads and writes at positions; it is created if absent."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        self.paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        self.paths.pop(fd, None)
        os.close(fd)

    def write(self, fd: int, data: bytes | memoryview, position: int) -> int:
        """Write at a position; return the number of bytes written, which may be fewer."""
        try:
            return os.pwrite(fd, data, position)
        except OSError as error:
            error.filename = self.paths.get(fd)
            raise

    def read(self, fd: int, count: int, position: int) -> bytes:
        """Read bytes at a position; fewer at the end of the file."""
        try:
            return os.pread(fd, count, position)
        except OSError as error:
            error.filename = self.paths.get(fd)
            raise

    def truncate(self, fd: int, size: int) -> None:
        """Set the length of a file."""
        try:
            os.ftruncate(fd, size)
        except OSError as error:
            error.filename = self.paths.get(fd)
            raise

    def sync(self, fd: int) -> None:
        """Return when everything written is on disk."""
        try:
            os.fsync(fd)
        except OSError as error:
            error.filename = self.paths.get(fd)
            raise

    def rename(self, path: str, new: str) -> None:
        """Rename a file or a folder, atomically."""
        Path(path).replace(new)

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when there is none."""
        Path(path).unlink(missing_ok=True)

    def remove_tree(self, path: str) -> None:
        """Remove a folder with its contents; nothing happens when there is none."""
        if Path(path).is_dir():
            shutil.rmtree(path)

    def make_folder(self, path: str) -> bool:
        """Make a folder with its parents; return False when it existed."""
        if Path(path).is_dir():
            return False
        Path(path).mkdir(parents=True)
        return True

    def read_whole(self, path: str) -> bytes | None:
        """The contents of a file; None when there is none."""
        try:
            return Path(path).read_bytes()
        except FileNotFoundError:
            return None

    def sync_folder(self, path: str) -> None:
        """Return when the names in a folder are on disk."""
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def write_all(self, fd: int, data: bytes | memoryview, position: int) -> None:
        """Write all bytes; some may be written when it raises."""
        written = self.write(fd, data, position)
        while written < len(data):
            written += self.write(fd, memoryview(data)[written:], position + written)

    def replace(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Replace the contents of a file, atomically."""
        new = f"{path}.tmp"
        fd = self.open(new)
        try:
            self.truncate(fd, 0)
            self.write_all(fd, data, 0)
            if sync:
                self.sync(fd)
        finally:
            self.close(fd)
        self.rename(new, path)

    def keep_aside(self, path: str, data: bytes | None = None) -> str:
        """Keep a damaged file or a part of it under a name that neither we nor Kafka read.

        Args:
            path: File or folder; renamed if `data` is None.
            data: A part of the file, to be copied.

        Returns:
            The new name: the old one with `.damaged`, and a number if that name is taken.
        """
        new, number = f"{path}{DAMAGED}", 1
        while Path(new).exists():
            number += 1
            new = f"{path}.{number}{DAMAGED}"
        if data is None:
            self.rename(path, new)
        else:
            self.replace(new, data, sync=True)
        return new

    def append(self, path: str, data: bytes, size: int) -> None:
        """Write bytes after the first `size` bytes of a file, and cut off everything after them."""
        fd = self.open(path)
        try:
            self.truncate(fd, size)
            self.write_all(fd, data, size)
        finally:
            self.close(fd)


class FileOwner(Protocol):
    """An object with a file that may be closed between two uses."""

    path: str

    def rest(self) -> None:
        """Drop data that can be read from disk again; called when the file was closed."""
        ...


class OpenFiles:
    """Cache of open descriptors; the least recently used one is closed first.

    Args:
        files: The file system.
        limit: Largest number of open descriptors.
    """

    def __init__(self, files: Files, limit: int = OPEN_FILES) -> None:
        self.files = files
        self._limit = limit
        self._fds: OrderedDict[FileOwner, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._fds)

    def fd(self, owner: FileOwner) -> int:
        """The descriptor of an owner's file."""
        fd = self._fds.get(owner)
        if fd is not None:
            self._fds.move_to_end(owner)
            return fd
        fd = self._fds[owner] = self.files.open(owner.path)
        if len(self._fds) > self._limit:
            oldest, unused = self._fds.popitem(last=False)
            self.files.close(unused)
            oldest.rest()
        return fd

    def close(self, owner: FileOwner) -> None:
        """Close an owner's file, if it is open."""
        fd = self._fds.pop(owner, None)
        if fd is not None:
            self.files.close(fd)


def put_aside_name(folder: str, ending: str) -> str:
    """The name of a partition's folder that is set aside. Source: LocalLog.logDirNameWithSuffix."""
    head, _, name = folder.rpartition("/")
    return f"{head}/{name[: _MAX_NAME - len(ending)]}{ending}"


def free_name(folder: str, tag: str, suffix: str) -> str:
    """An unused name by `put_aside_name`, with a number if the first one is taken."""
    new, number = put_aside_name(folder, f"{tag}{suffix}"), 1
    while Path(new).exists():
        number += 1
        new = put_aside_name(folder, f"{tag}.{number}{suffix}")
    return new
