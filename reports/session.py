"""Starts and stops the Spark session of a report."""

import importlib.util
import logging
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from coordinator_sim.errors import MissingDependencyError, remedy
from coordinator_sim_reports.java import find_java, make_java_home
from coordinator_sim_reports.shipping import is_local, ship_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[2]"
_PACKAGES: Final = {
    "report": ("duckdb", "jinja2"),
    "spark": ("pyspark", "duckdb", "pandas", "jinja2"),
}
"""Of each extra of reports."""
# An exception ends the job for us: Spark's own report of it would be a second one.
_LOG4J: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.console.type = Console
appender.console.name = stderr
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
logger.spark.name = org.apache.spark
logger.spark.level = fatal
logger.shutdown.name = org.apache.spark.util.ShutdownHookManager
logger.shutdown.level = off
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
_LOCAL: Final[dict[str, bool | float | int | str | None]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.shuffle.compress": "false",
    "spark.shuffle.checksum.enabled": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.s3a.fast.upload.buffer": "bytebuffer",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""Settings of a local master: compressing its shuffle files took a fifth of the CPU, and sums over
them find nothing that a disk of this host does not.

Hadoop starts a chmod for each file that it makes here, and else makes two more beside each: a
report of forty tables started 560 processes. S3's uploads cannot be buffered in that local file
system: they are buffered in memory.
"""
_SMALL: Final[dict[str, bool | float | int | str | None]] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for small data: a plan costs more than its run, and a job more than its rows.

Java code for each expression took a quarter of a small report's CPU: it is compiled anew each time.
"""
FEWEST_PARTITIONS: Final = 2
"""As many as a local master has cores: each one more is a task more in every shuffle."""
SMALL_EVENTS: Final = 200_000
"""Number of events below which a job ends before generated code has paid for its compilation."""
BRIEF_EVENTS: Final = 5_000_000
"""Number of events below which optimised machine code has not paid for its compilation, nor plans
that change while they run for being made again after each shuffle."""
_GROUPS_IN_MEMORY: Final = 20_000
"""Keys of an aggregation of objects that a task holds before it sorts its rows; Spark's own: 128.

A table by group or by member was sorted twice for it.
"""
_EVENTS_A_PARTITION: Final = 250_000
"""Rows of a shuffle partition: some tens of megabytes, which a core sorts in memory."""
_MOST_PARTITIONS: Final = 4_000
"""More would cost the driver more than they save a worker."""
_BRIEF_HEAP: Final = "512m"
"""Heap of a brief job: it grows to its limit before it is collected, and a quarter is enough."""
_BRIEF_JVM: Final = (
    " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m -XX:+UseSerialGC"
    " -XX:MetaspaceSize=256m"
)
"""JVM flags of a brief job: the optimising compiler took a third of its CPU without any gain.

Without it a JVM has 48 MB for machine code, which Spark fills: code was swept and compiled again.
The memory of classes grows from 21 MB on with a whole collection each time: it starts larger.
"""

_LAUNCHER_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM flags of the program that writes Spark's command line, which is done before it is warm."""

_ARENAS: Final = "2"
"""Most pools of the C library's memory in a JVM: with one for each thread they held 100 MB more."""


def check_extra(extra: Literal["report", "spark"] = "spark") -> None:
    """Check that the packages of an extra are installed.

    Raises:
        MissingDependencyError: one is missing; the message says what to install.
    """
    for package in _PACKAGES[extra]:
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(f"reports need {package}: {remedy(extra)}")


@contextmanager
def spark_session(
    master: str = DEFAULT_MASTER,
    *,
    shuffle_partitions: int = FEWEST_PARTITIONS,
    adaptive: bool = True,
    small: bool = False,
    brief: bool = False,
) -> Iterator["SparkSession"]:
    """Yield a session that is stopped at the end; an active session is used and left alone.

    A local master is bound to the loopback address and needs no name resolution. Python workers
    are this interpreter; those of a cluster are the one that PYSPARK_PYTHON names, if it is set,
    and get the code of this package. What the user's Spark configuration says of SQL counts more
    than what is chosen here.

    Args:
        master: Spark master URL.
        shuffle_partitions: Upper bound; adaptive execution merges small ones. See `partitions_for`.
        adaptive: Whether plans may change while they run.
        small: Whether the data is small: start and plan fast rather than run fast; one shuffle
            partition.
        brief: Whether a local JVM compiles fast rather than well, as for small data, with a
            quarter of the heap.

    Raises:
        MissingDependencyError: the `spark` extra or a Java runtime is missing.
    """
    check_extra()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with tempfile.TemporaryDirectory(prefix="coordinator-sim-spark-") as scratch:
        builder = _builder(master, Path(scratch))
        if brief and is_local(master):
            builder = builder.config("spark.driver.memory", _BRIEF_HEAP)
        with _interrupt_held() as pressed:
            started = _start(builder, master, Path(scratch), brief=small or brief)
        with _quiet_interrupt():
            try:
                if pressed:
                    raise KeyboardInterrupt
                _choose(started, shuffle_partitions, adaptive=adaptive, small=small)
                if not is_local(master):
                    ship_code(started, Path(scratch))
                yield started
            finally:
                started.stop()


@contextmanager
def _interrupt_held() -> Iterator[list[int]]:
    """Hold Ctrl-C back until the end of the block: a JVM that is starting would outlive us.

    PySpark's own handler, which it sets while it starts, is removed: it asks the JVM to cancel its
    jobs in the middle of another request. Stopping the session cancels them too.
    """
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """Keep py4j from logging Ctrl-C with a traceback, and PySpark from warning about it."""
    root, silence = logging.getLogger(), logging.NullHandler()
    if not root.handlers:
        root.addHandler(silence)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark", RuntimeWarning)
            yield
    finally:
        root.removeHandler(silence)


def fit_to(spark: "SparkSession", events: int) -> None:
    """Choose the settings of plans for traces that were opened, or made, in a session.

    Args:
        spark: The session.
        events: Number of the traces' events.
    """
    _choose(
        spark,
        partitions_for(events),
        adaptive=events >= BRIEF_EVENTS,
        small=events < SMALL_EVENTS,
    )


def partitions_for(events: int) -> int:
    """Return the shuffle partitions that fit a trace.

    Args:
        events: Number of its events.
    """
    fitting = -(-events // _EVENTS_A_PARTITION)
    return min(max(fitting, FEWEST_PARTITIONS), _MOST_PARTITIONS)


def _builder(master: str, scratch: Path) -> "SparkSession.Builder":
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(master)
        .appName("coordinator-sim report")
        .config("spark.ui.enabled", value=False)
        .config("spark.ui.showConsoleProgress", value=False)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.pyspark.enabled", value=True)
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
    )
    return builder.config(map=_LOCAL if is_local(master) else {})


def _choose(spark: "SparkSession", shuffle_partitions: int, *, adaptive: bool, small: bool) -> None:
    """Choose what the user's configuration leaves open."""
    chosen: dict[str, bool | float | int | str | None] = {
        "spark.sql.shuffle.partitions": shuffle_partitions,
        "spark.sql.adaptive.enabled": "true" if adaptive else "false",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": _GROUPS_IN_MEMORY,
        **(_SMALL if small else {}),
    }
    told = spark.sparkContext.getConf()
    for name in [*_SMALL, *chosen]:
        if told.contains(name):
            continue
        if name in chosen:
            spark.conf.set(name, str(chosen[name]))
        else:
            spark.conf.unset(name)


def _start(
    builder: "SparkSession.Builder", master: str, scratch: Path, *, brief: bool
) -> "SparkSession":
    """Start the JVM with an environment of its own; the caller's is restored."""
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    java_options = f"-Dlog4j2.configurationFile={log4j.as_uri()}"
    if brief and is_local(master):
        java_options += _BRIEF_JVM
    own = sys.executable
    of_workers = own if is_local(master) else os.environ.get("PYSPARK_PYTHON", own)
    environment = {
        "PYSPARK_PYTHON": of_workers,
        "PYSPARK_DRIVER_PYTHON": own,
        "SPARK_LAUNCHER_OPTS": _LAUNCHER_JVM,
        "MALLOC_ARENA_MAX": _ARENAS,
    }
    if os.name == "posix":
        environment["JAVA_HOME"] = str(make_java_home(find_java(), scratch / "java"))
    if is_local(master):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        return builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate()
    finally:
        for name, value in before.items():
            _restore(name, value)


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
