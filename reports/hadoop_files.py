"""Files behind URIs, through the Hadoop file systems that Spark's configuration names.

The one door of the driver to `hdfs://`, `s3a://`, `file:///` and whatever else a Spark session
knows: manifests, footers and pages go through it, whole files and folders are copied by it, tables
go through Spark itself. A `HadoopPath` has those methods of `pathlib.Path` that finding files,
reading a trace and writing a report call.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
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
_NO_BUCKET: Final = "UnknownStoreException"


def is_uri(text: str) -> bool:
    """Whether a user named a file by its URI, not by a path below a folder called like a scheme."""
    found = _URI.match(text)
    return found is not None and not Path(found[0]).exists()


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
    found = HadoopPath(text.rstrip("/"), spark)
    found.check()
    return cast("Path", found)


def check_folder(out: Path, wanted_for: str) -> None:
    """Refuse a file where a directory is to be written.

    Args:
        out: A path, or a file behind a URI; it need not be there.
        wanted_for: What is to be written there, in a word.

    Raises:
        ConfigError: It is a file.
    """
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file; name a directory for the {wanted_for}")


@dataclass(frozen=True, slots=True)
class FileSize:
    """The `stat` result of a file behind a URI.

    Args:
        st_size: Its size in bytes.
    """

    st_size: int


class HadoopPath:
    """A file or folder behind a URI.

    Args:
        uri: Its URI.
        spark: The session, whose Hadoop configuration counts.
        listed_size: Bytes of a file that a folder's listing named; None to ask the file system.
    """

    def __init__(self, uri: str, spark: "SparkSession", listed_size: int | None = None) -> None:
        self._uri = uri
        self._spark = spark
        self._listed_size = listed_size

    @cached_property
    def _path(self) -> Any:  # noqa: ANN401 - a Java object
        return self._java_path(self._uri)

    @cached_property
    def _files(self) -> Any:  # noqa: ANN401 - a Java object
        with _failures_named(self._uri):
            return self._path.getFileSystem(self._settings)

    @property
    def _settings(self) -> Any:  # noqa: ANN401 - a Java object
        java_context: Any = self._spark.sparkContext._jsc  # noqa: SLF001 - as below
        return java_context.hadoopConfiguration()

    def _java_path(self, text: str) -> Any:  # noqa: ANN401 - a Java object
        # PySpark has no other door to Hadoop.
        jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001
        with _failures_named(self._uri):
            return jvm.org.apache.hadoop.fs.Path(text)

    def check(self) -> None:
        """Check that its file system is known.

        Raises:
            ConfigError: No file system of that scheme is known, or the URI is malformed.
        """
        _ = self._files

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
        """The hash of the URI."""
        return hash(self._uri)

    def __lt__(self, other: "HadoopPath") -> bool:
        """By the URI."""
        return self._uri < other._uri

    @property
    def parent(self) -> "HadoopPath":
        """The folder of this file."""
        return HadoopPath(self._uri.rpartition("/")[0], self._spark)

    @property
    def name(self) -> str:
        """The last part of the URI."""
        return self._uri.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot on."""
        return PurePosixPath(self.name).suffix

    def absolute(self) -> "HadoopPath":
        """Itself: a URI does not depend on the working directory."""
        return self

    def resolve(self) -> "HadoopPath":
        """Itself: file systems behind URIs have no links."""
        return self

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        with _failures_named(self._uri):
            return bool(self._files.exists(self._path))

    def stat(self) -> FileSize:
        """Return the size of the file."""
        if self._listed_size is not None:
            return FileSize(self._listed_size)
        with _failures_named(self._uri):
            return FileSize(int(self._files.getFileStatus(self._path).getLen()))

    def iterdir(self) -> Iterator["HadoopPath"]:
        """Yield what lies in the folder."""
        yield from self.glob("*")

    def is_dir(self) -> bool:
        """Whether there is a folder."""
        if self._listed_size is not None:
            return False
        with _failures_named(self._uri):
            return self.exists() and bool(self._files.getFileStatus(self._path).isDirectory())

    def is_file(self) -> bool:
        """Whether there is a file."""
        if self._listed_size is not None:
            return True
        with _failures_named(self._uri):
            return self.exists() and bool(self._files.getFileStatus(self._path).isFile())

    def glob(self, pattern: str) -> Iterator["HadoopPath"]:
        """Yield what lies below and fits a pattern of names and `*`."""
        with _failures_named(self._uri):
            wanted = self._java_path(f"{self._uri}/{pattern}")
            found = self._files.globStatus(wanted) or ()
            paths = [str(each.getPath().toString()) for each in found]
        yield from (HadoopPath(path, self._spark) for path in paths)

    def rglob(self, pattern: str) -> Iterator["HadoopPath"]:
        """Yield the files anywhere below whose name fits a pattern."""
        paths = []
        with _failures_named(self._uri):
            left = self._files.listFiles(self._path, True)  # noqa: FBT003 - Java has no keywords
            while left.hasNext():
                status = left.next()
                path = status.getPath()
                if fnmatchcase(str(path.getName()), pattern):
                    paths.append((str(path.toString()), int(status.getLen())))
        yield from (HadoopPath(path, self._spark, size) for path, size in paths)

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
        with TemporaryDirectory(prefix="coordinator-sim-read-") as scratch:
            copy = Path(scratch) / "file"
            self.copy_here(copy)
            return copy.read_bytes()

    def read_text(self, encoding: str) -> str:
        """Read the whole file."""
        return self.read_bytes().decode(encoding)

    def mkdir(self, *, parents: bool, exist_ok: bool) -> None:
        """Make the folder and those around it, as `parents` and `exist_ok` of a path."""
        if not (parents and exist_ok):
            raise ValueError("a folder behind a URI is made with parents and exist_ok")
        with _failures_named(self._uri):
            self._files.mkdirs(self._path)

    def copy_here(self, target: Path) -> None:
        """Copy the file, or the folder with all that is in it, to this machine.

        Args:
            target: What the copy is called; its folder is made.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        with _failures_named(self._uri):
            self._copy(self._files, self._path, *self._of_this_machine(target))

    def copy_from(self, source: Path) -> None:
        """Copy a file or folder of this machine here, in the place of an older file.

        Args:
            source: What is copied; it stays.
        """
        with _failures_named(self._uri):
            self._files.mkdirs(self._path.getParent())
            self._copy(*self._of_this_machine(source), self._files, self._path)

    def _of_this_machine(self, path: Path) -> tuple[Any, Any]:
        """The file system of this machine without files of checksums, and a path in it."""
        jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001 - as above
        # Not by its URI: Hadoop would take `%3A` for three letters of a name.
        here = jvm.org.apache.hadoop.fs.Path("file", None, path.absolute().as_posix())
        files = jvm.org.apache.hadoop.fs.RawLocalFileSystem()
        files.initialize(here.toUri(), self._settings)
        return files, here

    def _copy(self, files: Any, path: Any, to_files: Any, to_path: Any) -> None:  # noqa: ANN401 - Java objects
        """Copy a file or folder; it stays, and an older file in its place is replaced."""
        jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001 - as above
        copy = jvm.org.apache.hadoop.fs.FileUtil.copy
        copy(files, path, to_files, to_path, False, True, self._settings)  # noqa: FBT003

    def remove(self) -> None:
        """Remove the file, or the folder with all that is in it; nothing where there is none."""
        with _failures_named(self._uri):
            self._files.delete(self._path, True)  # noqa: FBT003 - Java has no keywords

    def rename(self, target: "HadoopPath") -> None:
        """Call the file or folder by another URI, of which there is nothing yet.

        Raises:
            DataError: The file system refuses.
        """
        with _failures_named(self._uri):
            there = self._java_path(str(target))
            self._files.mkdirs(there.getParent())
            is_done = bool(self._files.rename(self._path, there))
        if not is_done:
            raise DataError(f"{self._uri}: the file system would not rename it to {target}")

    def write_text(self, text: str, encoding: str) -> None:
        """Write the whole file, in the place of an older one."""
        self.write_bytes(text.encode(encoding))

    def write_bytes(self, content: bytes) -> None:
        """Write the whole file, in the place of an older one."""
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
        if _NO_BUCKET in told:
            raise ConfigError(f"{uri}: no such bucket") from error
        raise DataError(f"{uri}: {told.partition(': ')[2] or told}") from error
