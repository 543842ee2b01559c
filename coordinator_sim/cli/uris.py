"""What a user names by URIs: opened by Spark, so only where a command runs on it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session_of(master: str | None, named: Iterable[str]) -> "Iterator[SparkSession | None]":
    """Yield a session of Spark; None where no master is named.

    Args:
        master: Spark master URL, or None.
        named: Paths and URIs that the command is given.

    Raises:
        ConfigError: A URI is named, and no master.
        MissingDependencyError: The `spark` extra or a Java runtime is missing.
    """
    from coordinator_sim_reports.hadoop_files import is_uri

    if master is None:
        for each in named:
            if is_uri(each):
                raise ConfigError(
                    f"{each} is a URI, which is opened through Spark's file systems: add --spark "
                    "MASTER, such as --spark local[2], or name a path of this machine"
                )
        yield None
        return
    from coordinator_sim_reports.session import check_extra, spark_session

    check_extra()
    with spark_session(master, small=True) as spark:
        yield spark


@contextmanager
def session_for_uris(
    named: Iterable[str], master: str = "local[1]"
) -> "Iterator[SparkSession | None]":
    """Yield a session of Spark where a URI is named, and else None: paths need none.

    Args:
        named: Paths and URIs that the command is given.
        master: Spark master URL.

    Raises:
        MissingDependencyError: A URI is named; the `spark` extra or a Java runtime is missing.
    """
    from coordinator_sim_reports.hadoop_files import is_uri

    with session_of(master if any(map(is_uri, named)) else None, ()) as spark:
        yield spark


def located(named: str, spark: "SparkSession | None") -> Path:
    """Return a path of this machine, or a file behind a URI, which has the methods of one.

    Raises:
        ConfigError: No file system of a URI's scheme is known.
    """
    if spark is None:
        return Path(named)
    from coordinator_sim_reports.hadoop_files import location

    return location(named, spark)
