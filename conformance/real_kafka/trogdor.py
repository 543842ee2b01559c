"""Apache Kafka's own Trogdor: the commands that start its coordinator and agents."""

import os
from pathlib import Path
from typing import Final

from coordinator_sim_conformance.real_kafka.kafka import HERE, JARS_VARIABLE, resolve_jars
from coordinator_sim_conformance.trogdor_cases.processes import Daemons

TROGDOR_VERSION: Final = "4.3.1"
"""Newest release whose Trogdor is published."""

_PACKAGE: Final = "org.apache.kafka.trogdor"
_JVM: Final = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"


def trogdor_jars() -> Path:
    """Return the folder with the jars of Trogdor, resolved by Maven on first use.

    Raises:
        MissingDependencyError: Maven is missing, or cannot resolve them.
    """
    root = Path(os.environ.get(JARS_VARIABLE, HERE / "target"))
    lib = root / f"trogdor-{TROGDOR_VERSION}" / "lib"
    if not any(lib.glob("trogdor-*.jar")):
        resolve_jars(TROGDOR_VERSION, lib, "-Ptrogdor")
    return lib


def java_daemons() -> Daemons:
    """Return the daemons of Apache Kafka.

    Raises:
        MissingDependencyError: Java or Maven is missing, or Maven cannot resolve the jars.
    """
    java = ("java", *_JVM, _QUIET, "-cp", f"{trogdor_jars()}{os.sep}*")
    return Daemons(
        coordinator=(*java, f"{_PACKAGE}.coordinator.Coordinator"),
        agent=(*java, f"{_PACKAGE}.agent.Agent"),
    )
