"""Files that were read before, told by what they hold: a file that was rotated has another name."""

import hashlib
from pathlib import Path
from typing import Final

from msgspec import Struct

_SAMPLE_BYTES: Final = 65_536


class FileMark(Struct, frozen=True):
    """Fingerprint of a file: its size, and a digest of both ends.

    Args:
        path: Path at which the file was read.
        size: Its size in bytes.
        digest: Of its first and last 64 KiB.
    """

    path: str
    size: int
    digest: str

    def is_of(self, other: "FileMark") -> bool:
        """Whether another file holds the same."""
        return (self.size, self.digest) == (other.size, other.digest)


def mark_of(path: Path, name: str = "") -> FileMark:
    """Return the mark of a file.

    Args:
        path: The file.
        name: What it is told by; empty for its path.

    Raises:
        OSError: It cannot be read.
    """
    size = path.stat().st_size
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(_SAMPLE_BYTES))
        file.seek(max(0, size - _SAMPLE_BYTES))
        digest.update(file.read(_SAMPLE_BYTES))
    return FileMark(name or str(path), size, digest.hexdigest())
