"""The one door to the file system: what is written, read, flushed and renamed goes through here.

So a test can put another in its place, whose disk is full at the k-th write. Paths are strings: a
directory of ten thousand partitions has many of them.
"""

import os
import shutil
from collections import OrderedDict
from pathlib import Path
from typing import Final, Protocol

_MODE: Final = 0o644
DAMAGED: Final = ".damaged"
"""Suffix of what is put aside."""
_MAX_NAME: Final = 255
"""Bytes of a file's name."""
OPEN_FILES: Final = 256
"""Segments that a log directory keeps open by default; a process may usually have 1,024 files."""


class Files:
    """The file system as it is. Every verb raises `OSError` where the system does, with the path.

    Attributes:
        paths: Of the open descriptors: the system names no file when a write fails.
    """

    def __init__(self) -> None:
        self.paths: dict[int, str] = {}

    def open(self, path: str) -> int:
        """A descriptor to read and write at positions; the file is made if absent."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        self.paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        """Let go of a descriptor."""
        self.paths.pop(fd, None)
        os.close(fd)

    def write(self, fd: int, data: bytes | memoryview, position: int) -> int:
        """Write at a position; how many bytes went, fewer maybe than there were."""
        try:
            return os.pwrite(fd, data, position)
        except OSError as error:
            error.filename = self.paths.get(fd)
            raise

    def read(self, fd: int, count: int, position: int) -> bytes:
        """Bytes at a position; fewer at the end of the file."""
        try:
            return os.pread(fd, count, position)
        except OSError as error:
            error.filename = self.paths.get(fd)
            raise

    def truncate(self, fd: int, size: int) -> None:
        """Make a file that long."""
        try:
            os.ftruncate(fd, size)
        except OSError as error:
            error.filename = self.paths.get(fd)
            raise

    def sync(self, fd: int) -> None:
        """Return when the medium has what was written."""
        try:
            os.fsync(fd)
        except OSError as error:
            error.filename = self.paths.get(fd)
            raise

    def rename(self, path: str, new: str) -> None:
        """Give a file or a folder another name, in one step."""
        Path(path).replace(new)

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when there is none."""
        Path(path).unlink(missing_ok=True)

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all that is in it; nothing happens when there is none."""
        if Path(path).is_dir():
            shutil.rmtree(path)

    def make_folder(self, path: str) -> bool:
        """Make a folder, with those above it; False when it was there."""
        if Path(path).is_dir():
            return False
        Path(path).mkdir(parents=True)
        return True

    def read_whole(self, path: str) -> bytes | None:
        """What a file holds; None when there is none."""
        try:
            return Path(path).read_bytes()
        except FileNotFoundError:
            return None

    def sync_folder(self, path: str) -> None:
        """Return when the medium has the names in a folder."""
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def write_all(self, fd: int, data: bytes | memoryview, position: int) -> None:
        """Write all of it; some may have gone when it raises."""
        written = self.write(fd, data, position)
        while written < len(data):
            written += self.write(fd, memoryview(data)[written:], position + written)

    def replace(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Let a file hold these bytes, all of them or those that it held before."""
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
        """Keep what is damaged under another name, which neither we nor Kafka read.

        Args:
            path: File or folder; it goes away where `data` is None.
            data: A part of the file, to be copied.

        Returns:
            The new name: the old one with `.damaged`, and a number where that is taken.
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
        """Put bytes behind the first `size` of a file, and nothing after them."""
        fd = self.open(path)
        try:
            self.truncate(fd, size)
            self.write_all(fd, data, size)
        finally:
            self.close(fd)


class FileOwner(Protocol):
    """Something with a file that may be closed between two uses."""

    path: str

    def rest(self) -> None:
        """Its file was closed: let go of what is read again from disk when needed."""
        ...


class OpenFiles:
    """Descriptors of files in use, those used longest ago closed first.

    Args:
        files: The file system.
        limit: How many are open at most.
    """

    __slots__ = ("_fds", "_limit", "files")

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
    """The name of a folder that is to be no partition's. Source: LocalLog.logDirNameWithSuffix."""
    head, _, name = folder.rpartition("/")
    return f"{head}/{name[: _MAX_NAME - len(ending)]}{ending}"


def free_name(folder: str, tag: str, suffix: str) -> str:
    """A name as of `put_aside_name` that nothing has; with a number where the first is taken."""
    new, number = put_aside_name(folder, f"{tag}{suffix}"), 1
    while Path(new).exists():
        number += 1
        new = put_aside_name(folder, f"{tag}.{number}{suffix}")
    return new
