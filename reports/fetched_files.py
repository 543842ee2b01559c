"""Files behind URIs for readers in Python: copies on this machine, and on the workers of a cluster.

Python has no door to Hadoop's file systems in a worker. The driver copies what is to be read, each
file once, and Spark hands the copies to every worker that runs a task.
"""

import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from msgspec import Struct

from coordinator_sim_reports.hadoop_files import HadoopPath
from coordinator_sim_reports.shipping import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEFT_OUT: Final = frozenset({"", ".", ".."})


class FetchedAt(Struct, frozen=True):
    """Where workers see the copies; called with a path of the driver, it returns theirs.

    Args:
        here: Folder of the copies on the driver.
        there: The same folder as tasks see it, below their working directory on a cluster.
    """

    here: str = ""
    there: str = ""

    def __call__(self, path: Path) -> Path:
        """Return where a worker reads a file; what is no copy is under the same path there."""
        if not self.here or not path.is_relative_to(self.here):
            return path
        return Path(self.there).absolute() / path.relative_to(self.here)


class FetchedFiles:
    """Copies of files behind URIs; they are there as long as their folder and the session.

    Args:
        spark: The session.
        folder: Where the copies of this machine are.

    Attributes:
        at: Where workers see them.
        names: What a user calls each copy.
    """

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self._spark = spark
        self._root = folder.resolve() / "fetched"
        self.at = FetchedAt()
        self.names: dict[Path, str] = {}

    def fetch(self, files: Iterable[Path]) -> dict[Path, str]:
        """Copy files behind URIs; may be called once.

        Args:
            files: Paths of this machine, and files behind URIs.

        Returns:
            A path of this machine for each, and what a user calls it, in their order.

        Raises:
            ConfigError: One is not there.
            DataError: One cannot be read.
        """
        found: dict[Path, str] = {}
        for file in files:
            if not isinstance(file, HadoopPath):
                found[file] = str(file)
                continue
            uri = str(file)
            scheme, _, rest = uri.partition(":/")
            parts = [part for part in rest.split("/") if part not in _LEFT_OUT]
            copy = self._root.joinpath(scheme, *parts)
            file.copy_here(copy)
            found[copy] = self.names[copy] = uri
        if self.names:
            self.at = FetchedAt(str(self._root), self._shown())
        return found

    def _shown(self) -> str:
        """The folder of the copies as workers see it, after it was sent to those of a cluster."""
        context = self._spark.sparkContext
        if is_local(str(context.master)):
            return str(self._root)
        name = f"coordinator-sim-{uuid4().hex}"
        archive = self._root.parent / f"{name}.tar"
        with tarfile.open(archive, "w") as packed:
            packed.add(self._root, name)
        context.addArchive(str(archive))
        # An archive is unpacked below a folder of its own name, in the working directory of tasks.
        return f"{archive.name}/{name}"
