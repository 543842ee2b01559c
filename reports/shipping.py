"""Carries this package to Spark workers that do not have it: a zip of its code.

Workers need the libraries it imports, none of which is part of the zip: they have native code.
"""

import atexit
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES: Final = ("coordinator_sim", "coordinator_sim_reports", "coordinator_sim_scenarios")
ZIP_NAME: Final = "coordinator_sim_code.zip"
_LEFT_OUT: Final = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache"})
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The first instant that a zip can say: the same code gives the same bytes."""


def is_local(master: str) -> bool:
    """Whether a master runs tasks on this machine, in the driver's working directory."""
    return master == "local" or master.startswith("local[")


def ship_code(spark: "SparkSession", directory: Path) -> Path:
    """Have every worker of a session import this package from a zip, which is returned.

    Call it before the first job. A worker that has the package installed uses the zip too, so all
    of them run the driver's code.

    Args:
        spark: The session.
        directory: Where to write the zip, which workers fetch from the driver: it must be there for
            as long as the session.
    """
    path = directory / ZIP_NAME
    write_code(path)
    spark.sparkContext.addPyFile(str(path))
    return path


def ship_for_good(spark: "SparkSession") -> None:
    """Ship the code to the workers of a cluster until this process ends; once for a session.

    Args:
        spark: The session; on this machine its workers import the package themselves.
    """
    context = spark.sparkContext
    if is_local(str(context.master)) or any(
        str(file).endswith(ZIP_NAME) for file in context.listFiles
    ):
        return
    directory = Path(mkdtemp(prefix="coordinator-sim-code-"))
    atexit.register(rmtree, directory, ignore_errors=True)
    ship_code(spark, directory)


def write_code(path: Path) -> None:
    """Write the package's modules and tables, wherever they are installed, as a zip."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            root = Path(import_module(package).__path__[0])
            for file in _files(root):
                name = "/".join((package, *file.relative_to(root).parts))
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, file.read_bytes())


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not _LEFT_OUT.intersection(path.parts):
            yield path
