"""Files behind URIs, through the Hadoop file systems that Spark's configuration names.

The one door of the driver to `hdfs://`, `s3a://`, `file:///` and whatever else a Spark session
knows: manifests, footers and pages go through it, tables through Spark itself. A `HadoopPath` has
those methods of `pathlib.Path` that reading a trace and writing a report call.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from coordinator_sim.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""A scheme of two letters at least: one letter is a drive."""
_AT_ONCE: Final = 1024 * 1024
"""Bytes that are read together."""
_NO_SCHEME: Final = "UnsupportedFileSystemException"
_NO_CLASS: Final = "ClassNotFoundException"
_NO_FILE: Final = "FileNotFoundException"


def is_uri(text: str) -> bool:
    """Whether a user named a file by its URI, not by a path of this machine."""
    return _URI.match(text) is not None


def location(text: str, spark: "SparkSession") -> Path:
    """Return what a user named: a path of this machine, or a file behind a URI.

    Args:
        text: A path or a URI.
        spark: The session, whose Hadoop file systems open URIs.

    Returns:
        A path, or a `HadoopPath`, which has the methods of one that a report calls.

    Raises:
        ConfigError: No file system of that scheme is known, or the URI is malformed.
    """
    if not is_uri(text):
        return Path(text)
    return cast("Path", HadoopPath(text.rstrip("/"), spark))


class HadoopPath:
    """A file or folder behind a URI.

    Args:
        uri: Its URI.
        spark: The session, whose Hadoop configuration counts.

    Raises:
        ConfigError: No file system of that scheme is known, or the URI is malformed.
    """

    def __init__(self, uri: str, spark: "SparkSession") -> None:
        self._uri = uri
        self._spark = spark
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other door to Hadoop
        java_context: Any = spark.sparkContext._jsc  # noqa: SLF001 - as above
        with _failures_named(uri):
            self._path = jvm.org.apache.hadoop.fs.Path(uri)
            self._files = self._path.getFileSystem(java_context.hadoopConfiguration())

    def __str__(self) -> str:
        """The URI."""
        return self._uri

    def __truediv__(self, name: str) -> "HadoopPath":
        """A file below this folder."""
        return HadoopPath(f"{self._uri}/{name}", self._spark)

    def __eq__(self, other: object) -> bool:
        """Whether both are one URI."""
        return isinstance(other, HadoopPath) and other._uri == self._uri

    def __hash__(self) -> int:
        """Of the URI."""
        return hash(self._uri)

    def __lt__(self, other: "HadoopPath") -> bool:
        """By the URI."""
        return self._uri < other._uri

    @property
    def parent(self) -> "HadoopPath":
        """The folder of this file."""
        return HadoopPath(self._uri.rpartition("/")[0], self._spark)

    def absolute(self) -> "HadoopPath":
        """Itself: a URI does not depend on the working directory."""
        return self

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        with _failures_named(self._uri):
            return bool(self._files.exists(self._path))

    def is_dir(self) -> bool:
        """Whether there is a folder."""
        with _failures_named(self._uri):
            return self.exists() and bool(self._files.getFileStatus(self._path).isDirectory())

    def is_file(self) -> bool:
        """Whether there is a file."""
        with _failures_named(self._uri):
            return self.exists() and bool(self._files.getFileStatus(self._path).isFile())

    def glob(self, pattern: str) -> Iterator["HadoopPath"]:
        """Yield what lies below and fits a pattern of names and `*`."""
        with _failures_named(self._uri):
            jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001 - as in the constructor
            wanted = jvm.org.apache.hadoop.fs.Path(f"{self._uri}/{pattern}")
            found = self._files.globStatus(wanted) or ()
            paths = [str(each.getPath().toString()) for each in found]
        yield from (HadoopPath(path, self._spark) for path in paths)

    def rglob(self, pattern: str) -> Iterator["HadoopPath"]:
        """Yield the files anywhere below whose name fits a pattern."""
        paths = []
        with _failures_named(self._uri):
            left = self._files.listFiles(self._path, True)  # noqa: FBT003 - Java has no keywords
            while left.hasNext():
                path = left.next().getPath()
                if fnmatchcase(str(path.getName()), pattern):
                    paths.append(str(path.toString()))
        yield from (HadoopPath(path, self._spark) for path in paths)

    def open(self, mode: str) -> io.BufferedReader:
        """Open the file to read bytes of it, from anywhere.

        Args:
            mode: `rb`, as for a path.
        """
        if mode != "rb":
            raise ValueError(f"{mode!r}: a file behind a URI is opened as 'rb'")
        with _failures_named(self._uri):
            size = int(self._files.getFileStatus(self._path).getLen())
            stream = self._files.open(self._path)
        return io.BufferedReader(_Reading(self._uri, stream, size), 64 * 1024)

    def read_bytes(self) -> bytes:
        """Read the whole file."""
        with self.open("rb") as file:
            return file.read()

    def write_text(self, text: str, encoding: str) -> None:
        """Write the whole file, in the place of an older one."""
        content = text.encode(encoding)
        with _failures_named(self._uri):
            stream = self._files.create(self._path, True)  # noqa: FBT003 - Java has no keywords
            try:
                for start in range(0, len(content), _AT_ONCE):
                    stream.write(bytearray(content[start : start + _AT_ONCE]))
            finally:
                stream.close()


class _Reading(io.RawIOBase):
    """A stream of Hadoop's as a file of Python's."""

    def __init__(self, uri: str, stream: Any, size: int) -> None:  # noqa: ANN401 - a Java object
        self._uri = uri
        self._stream = stream
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any buffer
        wanted = min(len(buffer), max(self._size - self._at, 0), _AT_ONCE)
        if not wanted:
            return 0
        with _failures_named(self._uri):
            self._stream.seek(self._at)
            told = bytes(self._stream.readNBytes(wanted))
        buffer[: len(told)] = told
        self._at += len(told)
        return len(told)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


@contextmanager
def _failures_named(uri: str) -> Iterator[None]:
    """Turn what Java says of a file into one line that names it."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    try:
        yield
    except Py4JJavaError as error:
        told = str(error.java_exception.toString()).splitlines()[0]
        if _NO_SCHEME in told or _NO_CLASS in told:
            raise ConfigError(
                f"{uri}: Spark knows no file system of this scheme; name its class and jars in "
                "Spark's configuration (for s3a: spark.jars.packages "
                "org.apache.hadoop:hadoop-aws of Spark's Hadoop)"
            ) from error
        if _NO_FILE in told:
            raise ConfigError(f"{uri}: no such file or folder") from error
        raise DataError(f"{uri}: {told.partition(': ')[2] or told}") from error
